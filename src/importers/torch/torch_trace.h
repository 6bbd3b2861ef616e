// What ran when, of a trace that torch.profiler wrote (Kineto's Chrome JSON).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "importers/torch/torch_event.h"
#include "model/recording.h"

namespace jouleprof::importers {

// Converts a file's times to host time: fast for times that lie near each other.
class TorchClock {
 public:
  TorchClock(RealTime base, const ClockMap& clocks) : base_(base), clocks_(&clocks) {}
  RealTime real(Duration ts) const { return base_ + ts; }
  HostTime host(Duration ts);
  Duration file_time(RealTime real) const { return real - base_; }

 private:
  RealTime base_;
  const ClockMap* clocks_;
  std::int64_t tenth_ = -1;  // of a second, for which `offset_` holds
  Duration offset_{};
};

class TorchTrace {
 public:
  // One kernel, copy or set.
  struct Launch {
    HostTime begin{};
    Duration duration{};
    std::uint32_t kernel_class = 0;
    std::uint32_t device = 0;
    std::uint32_t stream = 0;
    std::uint32_t launched = model::kNone;  // index into launched()
  };
  // The call that launched it.
  struct Call {
    Duration ts{};
    std::uint32_t correlation = 0;
    std::uint32_t thread = 0;  // of threads()
  };

  // Reads the file once. `power` is the recording that knows the power of the time: its clock
  // points tie the file's wall time to host time, and its visible GPUs are the file's, in order.
  // Annotating takes about 100 bytes of memory a kernel, whatever else the file holds.
  // Errors: as GzipReader; corrupt when it is no trace; invalid_argument when it was annotated
  // before; unavailable when the two have no time in common, or a time can't be had.
  static Result<TorchTrace> read(const std::filesystem::path& path, const model::Recording& power);

  const std::filesystem::path& path() const { return path_; }
  // The activity, for attribution with the readings of `power`.
  const model::Trace& trace() const { return trace_; }
  const std::vector<Launch>& launches() const { return launches_; }  // in the file's order
  const std::vector<Call>& calls() const { return calls_; }
  std::optional<std::uint32_t> thread(std::string_view pid, std::string_view tid) const;
  // The domain of a device of the file; nothing when `power` knows none.
  std::optional<model::DomainId> domain_of(std::uint32_t device) const;
  TorchClock clock() const { return {base_, clocks_}; }
  const ClockMap& clocks() const { return clocks_; }
  RealTime begin() const { return begin_; }  // of all events
  RealTime end() const { return end_; }
  bool cut_off() const { return cut_off_; }

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

  std::filesystem::path path_;
  ClockMap clocks_;
  RealTime base_{};
  RealTime begin_ = RealTime::max();
  RealTime end_ = RealTime::min();
  bool cut_off_ = false;
  bool annotated_ = false;
  model::Trace trace_;
  std::vector<model::Domain> gpus_;
  std::vector<Launch> launches_;
  std::vector<Call> calls_;
  Names<std::uint32_t> classes_;
  Names<std::uint32_t> threads_;
  std::string key_;
};

}  // namespace jouleprof::importers
