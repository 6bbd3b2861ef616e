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
#include "importers/torch/torch_event.h"
#include "model/activity/profiled_trace.h"
#include "model/recording.h"

namespace jouleprof::importers {

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
