// One recording, analysed once and asked many times: what every report, verb and comparison takes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/activity_profile.h"
#include "model/power_step.h"
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

// Timelines are built at the first question that needs them, and each answer is kept: the profile
// and the activity of every part that was asked for. Nothing of the recording is cut off before the
// analysis, so that a part and the whole stand on the same timelines.
// Thread safety: none, const functions included. References stay valid as long as the Run.
class Run {
 public:
  explicit Run(model::Recording recording);
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  const model::Recording& recording() const;

  // Errors: invalid_argument when the part is empty, lies outside of what was recorded, or no
  // moment of the recording is known; corrupt when the recording has neither a time nor windows.
  Result<PartSpan> span(const Part& part = {}) const;

  // The energy of every domain, process and window name. A domain whose energy is unavailable is in
  // the result with its reason. Windows that another tool measured may be all that a profile has
  // (Profile::has_span()). Errors: as span().
  const Result<model::Profile>& profile(const Part& part = {}) const;

  // Joules by kernel, layer, range and phase: one profile for each GPU on which something was
  // traced, and for a CPU on which layers were timed. Empty when nothing was traced. Errors:
  // invalid_argument when the part is empty; corrupt when an activity chunk can't be decoded.
  const Result<std::vector<model::ActivityProfile>>& activity(const Part& part = {}) const;

  // The energy of the domain at this place of the recording's list. Errors: as
  // EnergyTimeline::energy(); unavailable, with the reason, for a domain without a reading.
  Result<model::Measurement> energy(std::size_t domain, HostTime begin, HostTime end) const;
  Result<model::Measurement> energy(std::size_t domain, const model::Window& window) const;

  // The mean power of the domain at this place over each step: of the whole recording, idle before
  // and after the work included, or of a part. Steps without a reading are left out; empty when the
  // domain has none at all or the step is not positive.
  std::vector<model::PowerStep> curve(std::size_t domain, Duration step,
                                      const Part& part = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jouleprof::analysis
