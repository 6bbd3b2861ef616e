#include "analysis/run.h"

#include <fmt/format.h>

#include <chrono>
#include <list>
#include <utility>

#include "analysis/activity/layer_time.h"
#include "analysis/collectives/collectives.h"
#include "analysis/kernels/kernel_attribution.h"
#include "analysis/levels/board_levels.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/profile_builder.h"
#include "analysis/repeated/repeated_windows.h"
#include "analysis/serving/serving.h"
#include "analysis/slices/activity_slices.h"
#include "analysis/slices/process_slicer.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/windows/windows.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;
using Activity = std::vector<model::ActivityProfile>;
using Slices = std::vector<model::ActivitySlices>;

// One result for each requested part; references to them stay valid.
template <typename T>
using Kept = std::list<std::pair<Part, Result<T>>>;

template <typename T, typename Make>
const Result<T>& find_or_make(Kept<T>& kept, const Part& part, const Make& make) {
  for (const auto& [known, answer] : kept) {
    if (known == part) return answer;
  }
  return kept.emplace_back(part, make()).second;
}

}  // namespace

struct Run::State {
  model::Recording recording;
  std::optional<Timelines> built;
  std::optional<WorkSpan> known_work;
  std::vector<std::optional<BoardLevels>> known_levels;  // by domain
  std::optional<std::vector<std::optional<RepeatedWindows>>> known_repeated;
  Kept<model::Profile> profiles;
  Kept<Activity> activities;
  Kept<Slices> slices;
  Kept<model::ProcessSlices> process_slices;
  Kept<model::CollectiveProfile> collectives;
  Kept<model::ServingProfile> servings;

  Timelines& timelines() {
    if (!built) {
      built = timelines_of(recording);
      mark_windows(*built, recording.windows);
      known_work = work_span(recording, *built);
    }
    return *built;
  }

  const std::optional<WorkSpan>& work() {
    timelines();
    return known_work;
  }

  Result<PartSpan> span(const Part& part) {
    const auto& run = recording.run;
    if (run.source == "run" && !run.work_begin) {
      return fail(Errc::kUnavailable,
                  run.being_written ? "the command has not been started yet: nothing of it is in "
                                      "this recording"
                  : run.complete ? "the command was not started, because the run was interrupted "
                                   "before: it has no result and no energy"
                                 : "the tool was ended before it started the command: nothing of "
                                   "the command is in this recording");
    }
    if (!work()) {
      if (recording.imported_windows.empty()) {
        return fail(Errc::kCorrupt,
                    "the recording holds neither readings nor the time of the work");
      }
      if (!part.is_whole()) {
        return fail(Errc::kInvalidArgument,
                    "the recording holds only windows without a time, so it has no parts; leave "
                    "out --from and --to");
      }
      return fail(Errc::kUnavailable,
                  "the recording holds only windows without a time, so that it has no power over "
                  "time; use report --by window, or export --format windows");
    }
    const PartSpan chosen{part.from ? known_work->begin + *part.from : known_work->begin,
                          part.to ? known_work->begin + *part.to : known_work->program_end};
    const auto seconds_of = [&](HostTime t) { return known_work->seconds_of(t); };
    if (chosen.end <= chosen.begin && !part.is_whole()) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("the part from {:.3f} s to {:.3f} s is empty; the work took {:.3f} s",
                              seconds_of(chosen.begin), seconds_of(chosen.end),
                              seconds_of(known_work->end)));
    }
    if (chosen.end < chosen.begin) {
      return fail(Errc::kCorrupt, "the recording's work ends before it begins");
    }
    if (chosen.end == chosen.begin && run.work_begin && !run.work_end) {
      return fail(Errc::kUnavailable,
                  run.being_written ? "no reading since the begin of the command is in this "
                                      "recording yet: report it again in a second"
                                    : "the tool was ended before it wrote a reading since the "
                                      "begin of the command: its energy is unknown. `jouleprof "
                                      "export` lists the readings before");
    }
    if (chosen.end == chosen.begin && !recording.run.work_begin &&
        recording.imported_windows.empty()) {
      return fail(Errc::kCorrupt,
                  "the recording's sensors have readings of one moment only: there is no time of "
                  "which the energy is known. `jouleprof export` lists the readings");
    }
    const RecordedSpan& recorded = known_work->recorded;
    if (chosen.begin < recorded.begin - 1s || chosen.end > recorded.end + 1s) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format(
              "the part from {:.3f} s to {:.3f} s lies outside of the recording, {:.3f} s to "
              "{:.3f} s",
              seconds_of(chosen.begin), seconds_of(chosen.end), seconds_of(recorded.begin),
              seconds_of(recorded.end)));
    }
    return chosen;
  }

  // Of a domain with a timeline, before attribution to kernels.
  const BoardLevels& levels(std::size_t domain) {
    known_levels.resize(recording.domains.size());
    auto& known = known_levels[domain];
    if (!known) {
      const auto& what = recording.domains[domain];
      const HostTime begin = work() ? work()->begin : HostTime{};
      const HostTime end = work() ? work()->end : HostTime{};
      known = board_levels(*timelines()[domain], what, recording, begin, end);
      if (known->is_board) {
        const OtherUsers users = unlisted_users(recording, what, begin, end);
        known->shared |= users == OtherUsers::kSure;
        known->may_be_shared = users != OtherUsers::kNone;
      }
    }
    return *known;
  }

  // Of all windows of the recording, whatever the part.
  std::vector<CommonEnergy> repeated() {
    std::vector<CommonEnergy> out(recording.domains.size());
    if (!known_repeated) {
      known_repeated.emplace(recording.domains.size());
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (!timelines()[i]) continue;
        (*known_repeated)[i] = RepeatedWindows::fit(recording.windows, *timelines()[i]);
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (const auto& one = (*known_repeated)[i]) {
        out[i] = [&one](std::span<const model::Window* const> w) { return one->sum(w); };
      }
    }
    return out;
  }

  Result<model::Profile> profile(const Part& part, const Result<Activity>& activity,
                                 const Result<model::CollectiveProfile>& of_ranks,
                                 ProcessSlicer* slicer = nullptr) {
    ProfileInput input{recording, timelines(), {}, {}, {}, {}, {}, {}, nullptr, slicer};
    if (!work() && part.is_whole() && !recording.imported_windows.empty()) {
      return build_profile(input);
    }
    const auto chosen = span(part);
    if (!chosen) return tl::unexpected(chosen.error());
    input.work = *work();
    input.begin = chosen->begin;
    input.end = chosen->end;
    if (activity) input.activity = *activity;
    if (of_ranks) input.collectives = &*of_ranks;
    input.common = repeated();
    for (std::size_t i = 0; i < recording.domains.size(); ++i) {
      input.levels.emplace_back();
      if (!timelines()[i]) continue;
      input.levels.back() = levels(i);
      for (const auto& a : input.activity) {
        if (a.domain.id == recording.domains[i].id) {
          input.levels.back() = with_held_power(std::move(input.levels.back()), a);
        }
      }
    }
    return build_profile(input);
  }

  // Traced activity may exceed the readings, so parts are not checked against them. `also`: for the
  // kernels of each GPU.
  Result<Activity> activity(const Part& part, const OnAttributed& also = {}) {
    Activity out;
    if (recording.traces.empty() || !work()) return out;
    if (part.from && part.to && *part.to <= *part.from) return tl::unexpected(span(part).error());
    std::optional<HostTime> from;
    std::optional<HostTime> to;
    if (part.from) from = work()->begin + *part.from;
    if (part.to) to = work()->begin + *part.to;
    for (std::size_t i = 0; i < recording.domains.size(); ++i) {
      const auto& domain = recording.domains[i];
      auto& timeline = timelines()[i];
      const bool gpu = domain.kind == model::DomainKind::kGpu;
      if (!timeline || (!gpu && domain.kind != model::DomainKind::kCpu)) continue;
      auto made = gpu ? attribute_kernels(recording, domain, *timeline, levels(i), from, to, also)
                      : attribute_layer_time(recording, domain, *timeline, levels(i), from, to);
      if (!made) return tl::unexpected(made.error());
      if (*made) out.push_back(std::move(**made));
    }
    return out;
  }
};

Run::Run(model::Recording recording) : state_(std::make_unique<State>()) {
  state_->recording = std::move(recording);
  add_traced_processes(state_->recording);
}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;
Run::~Run() = default;

const model::Recording& Run::recording() const { return state_->recording; }

Result<PartSpan> Run::span(const Part& part) const { return state_->span(part); }

const Result<model::Profile>& Run::profile(const Part& part) const {
  return find_or_make(state_->profiles, part,
                      [&] { return state_->profile(part, activity(part), collectives(part)); });
}

const Result<model::CollectiveProfile>& Run::collectives(const Part& part) const {
  return find_or_make(state_->collectives, part, [&]() -> Result<model::CollectiveProfile> {
    const auto& made = activity(part);
    if (!made) return forward_error(made);
    return collectives_of(recording(), *made);
  });
}

const Result<Slices>& Run::activity_slices(std::size_t most_cells, const Part& part) const {
  return find_or_make(state_->slices, part, [&]() -> Result<Slices> {
    Slices out;
    const auto add = [&](const AttributedKernels& made) {
      const SliceRequest request{state_->work()->begin, most_cells};
      out.push_back(analysis::activity_slices(recording(), made.table, made.model, made.rows,
                                              made.gain, made.profile, request));
    };
    auto made = state_->activity(part, add);
    if (!made) return forward_error(made);
    find_or_make(state_->activities, part, [&] { return std::move(made); });
    return out;
  });
}

const Result<model::ProcessSlices>& Run::process_slices(std::size_t most_cells,
                                                        const Part& part) const {
  return find_or_make(state_->process_slices, part, [&]() -> Result<model::ProcessSlices> {
    const auto& traced = activity_slices(most_cells, part);
    if (!traced) return forward_error(traced);
    const auto chosen = state_->span(part);
    if (!chosen) return forward_error(chosen);
    ProcessSlicer slicer(recording(), chosen->begin, chosen->end,
                         {state_->work()->begin, most_cells / 2}, *traced);
    auto made = state_->profile(part, activity(part), collectives(part), &slicer);
    if (!made) return forward_error(made);
    find_or_make(state_->profiles, part, [&] { return std::move(made); });
    return slicer.finish();
  });
}

const Result<model::ServingProfile>& Run::serving(const Part& part) const {
  return find_or_make(state_->servings, part, [&]() -> Result<model::ServingProfile> {
    const auto chosen = state_->span(part);
    if (!chosen) return forward_error(chosen);
    std::vector<ServingBoard> boards;
    for (std::size_t i = 0; i < recording().domains.size(); ++i) {
      auto& timeline = state_->timelines()[i];
      if (recording().domains[i].kind != model::DomainKind::kGpu || !timeline) continue;
      boards.push_back({&recording().domains[i], &*timeline, &state_->levels(i)});
    }
    return attribute_serving(recording(), boards, chosen->begin, chosen->end, !part.is_whole());
  });
}

const Result<Activity>& Run::activity(const Part& part) const {
  return find_or_make(state_->activities, part, [&] { return state_->activity(part); });
}

Result<model::Measurement> Run::energy(std::size_t domain, HostTime begin, HostTime end) const {
  auto& timeline = state_->timelines().at(domain);
  if (!timeline) {
    return fail(Errc::kUnavailable, unavailable_reason(recording(), recording().domains[domain]));
  }
  return timeline->energy(begin, end);
}

Result<model::Measurement> Run::energy(std::size_t domain, const model::Window& window) const {
  return energy(domain, window.begin, window.end);
}

std::vector<model::PowerStep> Run::curve(std::size_t domain, Duration step, const Part& part,
                                         model::StepErrors errors) const {
  auto& timeline = state_->timelines().at(domain);
  const auto& work = state_->work();
  if (!work || !timeline) return {};
  return timeline->curve(part.from ? work->begin + *part.from : work->recorded.begin,
                         part.to ? work->begin + *part.to : work->recorded.end, step, errors);
}

}  // namespace jouleprof::analysis
