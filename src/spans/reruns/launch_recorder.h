// The launches of this process: of each kernel the newest ones of each size, with all that it takes
// to launch them again.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "abi/cuda_abi.h"
#include "abi/cupti_abi.h"
#include "spans/reruns/driver_api.h"

namespace jouleprof::reruns {

// Memory that a memset had set before a launch that uses it. Kernels whose blocks wait for one
// another count in such memory: without it, the second launch may never end.
struct Cleared {
  abi::cuda::DevicePtr address = 0;
  std::uint64_t count = 0;  // of elements
  unsigned value = 0;
  unsigned element_bytes = 1;

  std::uint64_t bytes() const { return count * element_bytes; }
  bool operator==(const Cleared&) const = default;
};

struct Launch {
  std::vector<unsigned char> parameters;  // all, at their offsets
  std::vector<Cleared> cleared;
  // What of the parameters was an address as the kernel's code was unloaded: of constants in it,
  // too, which went with it.
  std::vector<std::uint64_t> addresses;
  std::uint64_t number = 0;  // of the last launch with these parameters that was looked at
};

constexpr const char* kMemset = "memset";
constexpr const char* kMemoryFreed = "its memory was freed";

// Launches that differ in addresses only.
struct Variant {
  std::uint64_t launches = 0;
  std::uint64_t last_used = 0;
  std::vector<Launch> kept;  // the newest with different parameters
};

struct Shape {
  abi::cuda::Function function = nullptr;
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  unsigned shared_bytes = 0;
  // Hash of the attributes that the launch itself has: the parameters of a kernel fit to its
  // clusters.
  std::uint64_t attributes = 0;

  bool operator==(const Shape&) const = default;
};

// Memsets are kernels, too: they are named kMemset, have no function, and their launches only
// clear. The first extent of their grid is the number of bits of their size in bytes, and the block
// is 0.
struct RecordedKernel {
  Shape shape;
  std::string name;
  abi::cuda::Context context = nullptr;
  std::vector<std::pair<std::size_t, std::size_t>> layout;  // offset and bytes of each parameter
  bool packed = false;                                      // handed over in one buffer
  std::string why_not;  // it can't be launched again; empty: it can
  std::vector<abi::cuda::LaunchAttribute> attributes;
  std::map<std::uint64_t, Variant> variants;  // by what is no address in their parameters
  std::uint64_t given_way = 0;                // launches of variants that are no longer kept
  std::vector<std::uint8_t> strange;          // by word of the parameters: values that are neither
                                              // small nor addresses
  std::shared_ptr<const std::string> code;    // a cubin: of a kernel whose code was unloaded
};

// Whether a word is as large as an address of the GPU's memory.
constexpr bool may_be_address(std::uint64_t word) { return word >> 32 != 0 && word >> 57 == 0; }

// Bounded: 64 MiB of parameters and as much unloaded code, 4096 kernels. What does not fit is
// counted.
// Thread safety: all functions from any thread.
class LaunchRecorder {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  static constexpr std::size_t kMostCode = std::size_t{64} << 20;
  static constexpr std::size_t kMostKernels = 4096;
  static constexpr std::size_t kMostVariants = 16;  // of a kernel; then the least recent one goes
  static constexpr std::size_t kMostKept = 8;       // of a variant
  static constexpr std::uint64_t kMostCleared = std::uint64_t{1} << 20;  // bytes of one memset

  // `driver` outlives it.
  explicit LaunchRecorder(const DriverApi& driver) : driver_(driver) { forget_addresses(); }

  // The callbacks of the driver's calls.
  void on_call(abi::cupti::DriverCall call, const abi::cupti::CallbackData& data) noexcept;
  // The code that this thread's call is about to unload: JAX drops what it compiled before it ends.
  void on_unload(const abi::cupti::ModuleData& code) noexcept;

  // From now on nothing is recorded, and launches of threads but the calling one are counted.
  // `hold`: they and what else writes memory of the GPU wait in these threads until end_reruns(),
  // of the same thread.
  void begin_reruns(bool hold = false) noexcept;
  void end_reruns() noexcept;
  std::uint64_t launches_of_others() const { return others_.load(std::memory_order_relaxed); }

  // Drops what was recorded: of a time after which frees of memory were not seen.
  void clear();

  // What was recorded, without launches whose memory was freed since. Where no other is left, those
  // stay whose memory was allocated again as a whole.
  std::vector<RecordedKernel> kernels() const;
  std::uint64_t launches() const { return launches_.load(std::memory_order_relaxed); }
  // Launches that were not recorded, because there was no room.
  std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  struct Call;  // a launch, however it is made
  void wait_for_reruns();
  struct ShapeHash {
    std::size_t operator()(const Shape& shape) const noexcept;
  };

  void changed(abi::cupti::DriverCall call, const abi::cupti::CallbackData& data);
  void launched(const Call& call);
  void add_node(const abi::cuda::NodeParameters* node, const abi::cupti::CallbackData& data);
  void node_added(abi::cuda::GraphNode node);
  RecordedKernel* kernel_of(const Call& call);
  void describe(RecordedKernel& kernel) const;
  std::uint64_t stands_for(const RecordedKernel& kernel);
  void drop_launches(RecordedKernel& kernel);
  bool decides(const RecordedKernel& kernel, const Launch& launch) const;
  void keep(RecordedKernel& kernel, const Call& call);
  void keep(RecordedKernel& kernel, Launch launch, std::uint64_t size, std::uint64_t counts);
  bool is_address(std::uint64_t word, std::uint8_t& strange);
  void forget_addresses();
  void find_cleared(std::uint64_t address, Launch& launch) const;
  void cleared(const Cleared& memset, abi::cuda::Context context);
  // Kernels of a module or library; unloaded() is at the end of the call.
  template <class Code>
  void unload(abi::cuda::Result (*owner_of)(Code*, abi::cuda::Function), Code code);
  void unloaded();
  void note_addresses(Launch& launch) const;
  void freed(abi::cuda::DevicePtr begin, std::uint64_t bytes);
  enum class Memory { kGone, kAgain, kKept };
  Memory memory_of(const Launch& launch) const;
  bool is_allocated(abi::cuda::DevicePtr address) const;

  const DriverApi& driver_;
  std::atomic<bool> rerunning_{false};
  std::atomic<bool> holding_{false};
  std::mutex held_mutex_;
  std::condition_variable held_;
  std::atomic<std::uint64_t> others_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> launches_{0};

  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<Shape, RecordedKernel, ShapeHash> kernels_;
  std::map<unsigned, RecordedKernel> sets_;  // by the number of bits of their size
  std::deque<RecordedKernel> gone_;          // whose code was unloaded
  std::map<std::thread::id, std::vector<RecordedKernel*>> unloading_;  // of them, by a call
  std::unordered_map<abi::cuda::GraphNode, RecordedKernel*> nodes_;
  std::deque<Cleared> recent_;       // memsets, the newest last
  std::bitset<4096> cleared_pages_;  // of kMostCleared bytes, by their remainders: of `recent_`
  std::map<abi::cuda::DevicePtr, std::uint64_t> allocated_;  // that parameters pointed to
  std::array<std::uint64_t, 4096> pages_;         // by their remainders: all of one is allocated
  std::unordered_set<std::uint64_t> numbers_;     // large, and no addresses
  std::array<std::uint64_t, 4096> words_;         // by their hashes: of `numbers_`
  std::unordered_set<std::uint64_t> conditions_;  // handles of conditional nodes of graphs
  // By begin and bytes: the number of the last launch before.
  std::map<std::pair<abi::cuda::DevicePtr, std::uint64_t>, std::uint64_t> freed_;
  std::size_t bytes_ = 0;
  std::size_t code_bytes_ = 0;
  std::uint64_t number_ = 0;  // of launches
  std::uint64_t random_ = 0x9E3779B97F4A7C15u;
};

}  // namespace jouleprof::reruns
