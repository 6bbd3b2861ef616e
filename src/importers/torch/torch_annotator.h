// Writes torch.profiler's trace again, with energies.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "importers/torch/torch_trace.h"
#include "model/activity_profile.h"
#include "model/kernel_powers.h"
#include "model/power_step.h"

namespace jouleprof::importers {

// The power of a domain over time, for a counter track.
struct PowerTrack {
  std::string name;  // "gpu0 power (W)"
  std::vector<model::PowerStep> steps;
};

// What was annotated.
struct TorchAnnotation {
  std::uint64_t kernels = 0;         // with an energy
  std::uint64_t without_energy = 0;  // not covered by the recording, or of a GPU it does not know
  std::uint64_t ranges = 0;          // operators and the like that launched kernels
};

class TorchAnnotator {
 public:
  // `profiles` are the attribution of `trace`. Both must outlive it.
  TorchAnnotator(const TorchTrace& trace, const std::vector<model::ActivityProfile>& profiles);

  // Every byte of the file, and (docs/formats.md):
  //  - in the "args" of each kernel, copy and set its energy with its interval;
  //  - in those of each operator, Python function and range of the user's the sum over the kernels
  //    that its thread launched within it;
  //  - behind the last event, counter tracks and one event that says what made all this.
  // A file that is cut off is closed after its last whole event.
  // Errors: as TorchTrace::read(). What `out` can't take shows in its state.
  Result<TorchAnnotation> write(std::ostream& out, const std::vector<PowerTrack>& tracks,
                                const std::string& version);

 private:
  // What a thread had launched up to a call, that call's kernels included.
  struct Launched {
    Duration ts{};
    model::JoulesRange sum;
    std::uint64_t kernels = 0;
  };
  struct Device {
    const model::ActivityProfile* profile = nullptr;
    std::vector<std::uint32_t> rows;  // by class of the trace; kNone: none
    std::vector<Duration> totals;     // by row: of all launches
  };

  const model::ActivityRow* row_of(const TorchTrace::Launch& launch) const;
  std::optional<model::JoulesRange> energy_of(const TorchTrace::Launch& launch) const;
  void sum_up();
  std::string kernel_args(const TorchTrace::Launch& launch);
  std::string range_args(const TorchEvent& event);
  void write_tail(std::ostream& out, const std::vector<PowerTrack>& tracks,
                  const std::string& version, bool first) const;

  const TorchTrace& trace_;
  std::vector<Device> devices_;
  std::vector<std::vector<Launched>> threads_;
  TorchAnnotation done_;
};

}  // namespace jouleprof::importers
