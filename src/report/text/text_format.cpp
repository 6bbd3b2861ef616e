#include "report/format.h"
#include "report/traced.h"

namespace jouleprof::report {
namespace {

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  if (options.by) {
    const auto activity = traced_activity(run, part);
    if (!activity) return tl::unexpected(activity.error());
    out << activity_to_text(**activity, *options.by, options.text);
    return {};
  }
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  out << to_text(*profile, options.text);
  return {};
}

}  // namespace

extern const Format text_format;
constinit const Format text_format{.name = "text",
                                   .extension = ".txt",
                                   .shows = "the summary, or a table of --by, for people",
                                   .has_tables = true,
                                   .write = write};

}  // namespace jouleprof::report
