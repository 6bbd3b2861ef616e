// Reads a trace that torch.profiler wrote (Kineto's Chrome JSON).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/activity/activity.h"
#include "model/activity/profiled_trace.h"
#include "model/recording.h"

namespace jouleprof::importers {

// One event of a trace that torch.profiler wrote.

struct TorchEvent {
  enum class Kind {
    kOther,
    kWork,    // of the GPU: a kernel, copy or set
    kLaunch,  // a call of CUDA's runtime or driver, which may have launched work
    kRange,   // on the CPU: an operator, a Python function or module, the user's own
  };

  Kind kind = Kind::kOther;
  Duration ts{};  // since the file's base time
  Duration duration{};
  std::string_view category;
  std::string_view name;  // as written: a JSON string with its quotes
  std::string_view pid;   // as written
  std::string_view tid;
  std::string_view args;  // as written; empty when there are none
  std::optional<std::int64_t> device;
  std::optional<std::int64_t> stream;
  std::optional<std::int64_t> correlation;
  std::string_view grid;  // as written
  std::string_view block;
  std::uint64_t bytes = 0;
};

// `text` is one event. Nothing when it has no time, as metadata may.
std::optional<TorchEvent> parse_torch_event(std::string_view text);

// What ran, of a kWork event.
model::KernelClass class_of(const TorchEvent& event);

// Converts a file's times to host time; fast for neighbouring times.
class TorchClock {
 public:
  TorchClock(RealTime base, const ClockMap& clocks) : base_(base), clocks_(&clocks) {}
  RealTime real(Duration ts) const { return base_ + ts; }
  HostTime host(Duration ts);

 private:
  RealTime base_;
  const ClockMap* clocks_;
  std::int64_t tenth_ = -1;  // of a second, for which `offset_` holds
  Duration offset_{};
};

class TorchTrace {
 public:
  // Reads the file once. `power` is the recording of the same time: its clock points map the file's
  // wall time to host time, and its visible GPUs are the file's, in order. Memory: about 100 bytes
  // a kernel, independent of the file's other events. Errors: as GzipReader; corrupt when it is no
  // trace; invalid_argument when it was annotated before; unavailable when the two have no time in
  // common, or the file's time is unknown.
  static Result<TorchTrace> read(const std::filesystem::path& path, const model::Recording& power);

  const model::ProfiledTrace& profiled() const { return profiled_; }

  // Reads the file again and passes its pieces, in order, to `take`, until that returns false. One
  // piece is in memory at a time. Errors: as GzipReader; corrupt when the file changed since
  // read().
  Result<void> for_each_piece(const std::function<bool(const model::TracePiece&)>& take) const;

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  template <typename Value>
  using Names = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;

  Result<void> scan(std::optional<RealTime> base);
  void take(const TorchEvent& event, TorchClock& clock);
  std::uint32_t class_of_event(const TorchEvent& event);
  std::uint32_t thread_of(const TorchEvent& event);
  void join();
  void bin();
  Result<void> check(const model::Recording& power) const;

  std::optional<std::uint32_t> thread(std::string_view pid, std::string_view tid) const;

  std::filesystem::path path_;
  model::ProfiledTrace profiled_;
  bool annotated_ = false;
  std::vector<model::Domain> gpus_;
  Names<std::uint32_t> classes_;
  Names<std::uint32_t> threads_;
  std::string key_;
};

}  // namespace jouleprof::importers
