#include "report/format/traced.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "report/activity/fold_layers.h"

namespace jouleprof::report {

Result<const std::vector<model::ActivityProfile>*> traced_activity(const analysis::Run& run,
                                                                   const analysis::Part& part) {
  const auto& activity = run.activity(part);
  if (!activity) return tl::unexpected(activity.error());
  if (!activity->empty()) return &*activity;
  const model::Recording& recording = run.recording();
  if (!recording.traces.empty() && !part.is_whole()) {
    return fail(Errc::kUnavailable, "no kernel or layer ran in this part of the recording");
  }
  std::string why;
  for (const auto& trace : recording.traces) {
    if (!trace.status.problem.empty()) {
      why += fmt::format("\n  pid {} ({}): {}", trace.pid, trace.program, trace.status.problem);
    }
  }
  for (const auto& warning : recording.warnings) why += "\n  " + warning.text;
  return fail(Errc::kUnavailable,
              fmt::format("the recording has no trace of kernels or layers; record one with: "
                          "jouleprof run --kernels -- COMMAND{}",
                          why));
}

Result<const model::Profile*> profile_with_windows(const analysis::Run& run,
                                                   const analysis::Part& part) {
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  if (!profile->windows.empty()) return &*profile;
  return fail(Errc::kUnavailable,
              "no windows were recorded; open some with jouleprof.window() or the C API");
}

Result<void> write_table_or_summary(
    const analysis::Run& run, const analysis::Part& part, const FormatOptions& options,
    std::ostream& out,
    const std::function<std::string(const std::vector<model::ActivityProfile>&)>& table,
    const std::function<std::string(const model::Profile&)>& summary) {
  if (options.by) {
    const auto activity = traced_activity(run, part);
    if (!activity) return tl::unexpected(activity.error());
    if (options.by->fold) {
      std::vector<model::ActivityProfile> folded;
      for (const auto& profile : **activity) folded.push_back(fold_layers(profile));
      out << table(folded);
      return {};
    }
    out << table(**activity);
    return {};
  }
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  out << summary(*profile);
  return {};
}

Result<analysis::PartSpan> readings_span(const analysis::Run& run, const analysis::Part& part) {
  const auto span = run.span(part);
  if (!part.is_whole()) return span;
  if (!span && span.error().code == Errc::kCorrupt) return span;
  return analysis::PartSpan{HostTime::min(), HostTime::max()};
}

}  // namespace jouleprof::report
