// One analysed recording: the input of every report, verb and comparison.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/activity/collective.h"
#include "model/activity/serving.h"
#include "model/domain.h"
#include "model/process/process.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// A part of the recording, as time since the work began. An absent end is the work's own.
struct Part {
  std::optional<Duration> from;
  std::optional<Duration> to;

  bool is_whole() const { return !from && !to; }
  bool operator==(const Part&) const = default;
};

// A part in host time.
struct PartSpan {
  HostTime begin{};
  HostTime end{};

  bool contains(HostTime t) const { return t >= begin && t <= end; }
};

// The first query that needs timelines builds them. The profile and activity of each requested part
// are kept. Timelines always cover the whole recording, so that a part and the whole agree. Thread
// safety: none, const functions included. References stay valid as long as the Run.
class Run {
 public:
  explicit Run(model::Recording recording);
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  const model::Recording& recording() const;

  // Errors: unavailable where a command was never started; invalid_argument for an empty part, one
  // outside of the recording, or windows without a time only; corrupt without time and windows.
  Result<PartSpan> span(const Part& part = {}) const;

  // The energy of each domain, process and window name. A domain whose energy is unavailable has a
  // reason. A profile may consist of imported windows only (Profile::has_span()). Errors: as
  // span().
  const Result<model::Profile>& profile(const Part& part = {}) const;

  // Energy by kernel, layer, range and phase: one profile for each GPU with traced activity, and
  // for a CPU with timed layers. Empty without any. Errors: invalid_argument when the part is
  // empty; corrupt when an activity chunk cannot be decoded.
  const Result<std::vector<model::ActivityProfile>>& activity(const Part& part = {}) const;

  // Energies of the rows of activity() by time, for each GPU with traced activity; `most_cells`:
  // energies of one row over one slice, in all. To ask before any activity() or profile() of the
  // part saves a second attribution. Errors: as activity()'s.
  const Result<std::vector<model::ActivitySlices>>& activity_slices(std::size_t most_cells,
                                                                    const Part& part = {}) const;

  // Energies of processes by time. As activity_slices(): to ask before profile(). Errors: as
  // profile()'s.
  const Result<model::ProcessSlices>& process_slices(std::size_t most_cells,
                                                     const Part& part = {}) const;

  // Collectives of the traced ranks. Empty without any. Errors: as activity()'s.
  const Result<model::CollectiveProfile>& collectives(const Part& part = {}) const;

  // The energy of each request of the inference servers that recorded their steps. Empty without
  // any. Errors: as span(); corrupt, where steps cannot be decoded.
  const Result<model::ServingProfile>& serving(const Part& part = {}) const;

  // `domain`: index into the recording's list. Errors: as EnergyTimeline::energy(); unavailable,
  // with a reason, for a domain without readings.
  Result<model::Measurement> energy(std::size_t domain, HostTime begin, HostTime end) const;
  Result<model::Measurement> energy(std::size_t domain, const model::Window& window) const;

  // The mean power of a domain over each step of the whole recording, idle time before and after
  // the work included, or of a part. Steps without readings are left out. Empty for a domain
  // without readings or a step that is not positive.
  std::vector<model::PowerStep> curve(std::size_t domain, Duration step, const Part& part = {},
                                      model::StepErrors errors = model::StepErrors::kLeftOut) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jouleprof::analysis
