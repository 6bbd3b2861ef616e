#include "report/format/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/activity/activity.h"

namespace jouleprof::report {

#define JOULEPROF_FORMAT(name) extern const Format name##_format;
#include "report/formats.inc"
#undef JOULEPROF_FORMAT

namespace {

constexpr std::array kFormats{
#define JOULEPROF_FORMAT(name) &name##_format,
#include "report/formats.inc"
#undef JOULEPROF_FORMAT
};

// What to record for rows of `by`, on a machine like this one.
std::string missing_trace_text(const model::Recording& recording, ActivityBy by) {
  const bool has_gpu = std::ranges::any_of(recording.domains, [](const auto& domain) {
    return domain.kind == model::DomainKind::kGpu && !domain.name.empty();
  });
  if (dimension(by).of_layers) {
    return fmt::format(
        "the recording has no trace of layers: it was made without --layers, or no traced process "
        "called a module of PyTorch\n  record one with: jouleprof run --layers -- COMMAND, where "
        "COMMAND runs a model of PyTorch in Python{}",
        has_gpu ? "" : "\n  without a GPU, layers of PyTorch are estimated by their run time");
  }
  for (const auto& trace : recording.traces) {
    if (trace.status.ended || trace.status.activities == 0) continue;
    return fmt::format(
        "the recording has no trace of {}s: {} (pid {}) was traced, but ended, as after _exit or a "
        "signal, before it had sent any, which it does once a second\n  let it run for longer, or "
        "end by exit() or a return from main",
        to_string(by), trace.program.empty() ? "a program" : printable(trace.program), trace.pid);
  }
  return fmt::format(
      "the recording has no trace of {}s; record one with: jouleprof run --kernels -- COMMAND{}",
      to_string(by),
      has_gpu ? ""
              : "\n  no GPU was measured in this recording, and kernels need an NVIDIA GPU; "
                "layers of PyTorch do not: jouleprof run --layers -- COMMAND");
}

}  // namespace

std::span<const Format* const> formats() { return kFormats; }

const Format* find_format(std::string_view name) {
  const auto found =
      std::ranges::find_if(kFormats, [&](const Format* f) { return f->name == name; });
  return found == kFormats.end() ? nullptr : *found;
}

const Format* format_of_file(std::string_view path) {
  const Format* best = nullptr;
  for (const Format* format : kFormats) {
    std::string_view name = path;
    if (!format->is_packed && name.ends_with(".gz")) name.remove_suffix(3);
    if (!name.ends_with(format->extension)) continue;
    if (best == nullptr || format->extension.size() > best->extension.size()) best = format;
  }
  return best;
}

Result<const std::vector<model::ActivityProfile>*> traced_activity(const analysis::Run& run,
                                                                   const analysis::Part& part,
                                                                   ActivityBy by) {
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
  return fail(Errc::kUnavailable, missing_trace_text(recording, by) + why);
}

namespace {

Result<const model::Profile*> profile_with_windows(const analysis::Run& run,
                                                   const analysis::Part& part) {
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  if (!profile->windows.empty()) return &*profile;
  return fail(Errc::kUnavailable,
              "no windows were recorded; open some with jouleprof.window() or the C API");
}

Result<const model::ServingProfile*> served_requests(const analysis::Run& run,
                                                     const analysis::Part& part) {
  const auto& made = run.serving(part);
  if (!made) return forward_error(made);
  if (made->requests.empty()) {
    if (const auto& whole = run.serving({});
        !part.is_whole() && whole && !whole->requests.empty()) {
      return fail(Errc::kUnavailable,
                  "no request was served in this part of the recording; choose other times");
    }
    return fail(Errc::kUnavailable,
                "the recording has no requests of an inference server; record them with "
                "`jouleprof run --serving -- COMMAND`, where the command uses jouleprof.serving "
                "(docs/serving.md)");
  }
  return &*made;
}

Result<const model::CollectiveProfile*> traced_collectives(const analysis::Run& run,
                                                           const analysis::Part& part) {
  if (const auto activity = traced_activity(run, part); !activity) {
    return tl::unexpected(activity.error());
  }
  const auto& made = run.collectives(part);
  if (!made) return forward_error(made);
  if (!made->empty()) return &*made;
  std::string why = "no kernel of a collective operation (NCCL, RCCL, NVSHMEM) was traced";
  for (const auto& problem : made->problems) why += "\n  " + problem;
  return fail(Errc::kUnavailable, why);
}

}  // namespace

Result<void> write_table_or_summary(const analysis::Run& run, const analysis::Part& part,
                                    const FormatOptions& options, const TableWriters& writers,
                                    std::ostream& out) {
  const auto write = [&out](const auto& made, const auto& writer) -> Result<void> {
    if (!made) return forward_error(made);
    out << writer(**made);
    return {};
  };
  if (options.serving) return write(served_requests(run, part), writers.serving);
  if (options.windows) return write(profile_with_windows(run, part), writers.windows);
  if (options.collectives && writers.collectives) {
    return write(traced_collectives(run, part), writers.collectives);
  }
  if (options.by) {
    const auto activity = traced_activity(run, part, options.by->by);
    if (!activity) return tl::unexpected(activity.error());
    bool has_many = false;
    std::vector<model::ActivityProfile> folded;
    if (options.by->fold || options.by->fold_many) {
      constexpr std::size_t kMany = 12;
      for (const auto& profile : **activity) {
        folded.push_back(fold_layers(profile));
        for (const auto& row : folded.back().by_layer) {
          has_many = has_many || (row.folded && row.folded->count >= kMany);
        }
      }
    }
    out << writers.activity(options.by->fold || has_many ? folded : **activity);
    return {};
  }
  const auto& profile = run.profile(part);
  if (!profile) return tl::unexpected(profile.error());
  const auto text = writers.summary(*profile);
  if (!text) return forward_error(text);
  out << *text;
  return {};
}

Result<std::optional<Costs>> requested_costs(const analysis::Run& run, const analysis::Part& part,
                                             const FormatOptions& options) {
  if (!options.costs.any()) return std::nullopt;
  auto made = costs_of(run, part, options.costs, options.text.whole_machine);
  if (!made) return forward_error(made);
  return std::move(*made);
}

Result<analysis::PartSpan> readings_span(const analysis::Run& run, const analysis::Part& part) {
  const auto span = run.span(part);
  if (!part.is_whole()) return span;
  if (!span && span.error().code == Errc::kCorrupt) return span;
  return analysis::PartSpan{HostTime::min(), HostTime::max()};
}

std::string rank_name(const model::CollectiveRank& rank) {
  return rank.rank.global ? fmt::format("rank {}", *rank.rank.global)
                          : fmt::format("pid {}", rank.pid);
}

}  // namespace jouleprof::report
