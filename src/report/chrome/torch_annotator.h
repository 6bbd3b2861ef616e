// Writes a trace of torch.profiler again, with energies.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "model/activity/activity_profile.h"
#include "model/activity/profiled_trace.h"
#include "model/domain.h"
#include "report/chrome/chrome_trace.h"

namespace jouleprof::report {

// The power of a domain over time, for a counter track.
struct CounterTrack {
  std::string name;  // "gpu0 power (W)"
  std::vector<model::PowerStep> steps;
};

// What was annotated.
struct TorchAnnotation {
  std::uint64_t kernels = 0;         // with an energy
  std::uint64_t without_energy = 0;  // outside the recording's time, or of a GPU it does not have
  std::uint64_t ranges = 0;          // operators and the like that launched kernels
};

class TorchAnnotator {
 public:
  // `profiles` are the attribution of the trace's activity. All references must outlive it.
  TorchAnnotator(const model::ProfiledTrace& trace,
                 const std::vector<model::ActivityProfile>& profiles,
                 const std::vector<CounterTrack>& tracks, std::string version);

  // Writes one piece of the trace; the pieces in order give every byte of it, and
  // (docs/formats.md):
  //  - in "args" of each kernel, copy and set its energy with its interval;
  //  - in "args" of each operator, Python function and user's range the sum over the kernels that
  //    its thread launched within it;
  //  - after the last event, the counter tracks and one event that describes the annotation.
  // What `out` cannot take shows in its state.
  void write(std::ostream& out, const model::TracePiece& piece);
  const TorchAnnotation& annotation() const { return done_; }

 private:
  // All that a thread launched up to a call, that call's kernels included.
  struct Launched {
    Duration ts{};
    JoulesRange sum;
    std::uint64_t kernels = 0;
  };
  struct Device {
    const model::ActivityProfile* profile = nullptr;
    std::vector<std::uint32_t> rows;  // by class of the trace; kNone: none
    std::vector<Duration> totals;     // by row: of all launches
  };
  using Launch = model::ProfiledTrace::Launch;
  const model::ActivityRow* row_of(const Launch& launch) const;
  // Absent also of a launch whose duration the trace has not, or as no time.
  std::optional<JoulesRange> energy_of(const Launch& launch) const;
  void sum_by_call();
  std::string launch_args(const Launch& launch);
  std::string range_args(const model::TracePiece& range);
  void write_tail(std::ostream& out, bool first) const;

  const model::ProfiledTrace& trace_;
  const std::vector<CounterTrack>& tracks_;
  std::string version_;
  std::vector<Device> devices_;
  std::vector<std::vector<Launched>> threads_;
  TorchAnnotation done_;
};

}  // namespace jouleprof::report
