// Takes launches in about the order of time, and sends them to a sink in bins, by scope and, if
// wanted, one by one.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/activity/activity.h"
#include "model/activity/device_timeline.h"
#include "spans/cupti/aggregate/graph_templates.h"

namespace jouleprof::cupti {

struct AggregatorOptions {
  Duration bin = std::chrono::milliseconds{1};
  Duration fine = std::chrono::minutes{10};  // from then on bins are wide
  bool events = false;
  // The largest delay of a record behind others that began at the same time.
  Duration settle = std::chrono::seconds{1};
  std::size_t most_waiting = 1'000'000;  // 48 MB: beyond, late ones get a smaller share of time
};

// A launch of a graph that was received as one record is distributed over the graph's nodes, where
// an earlier launch was recorded node by node. One without a record gets its time from the launches
// around it (UnrecordedLaunch). Thread safety: one thread.
class ActivityAggregator {
 public:
  explicit ActivityAggregator(model::ActivitySink& sink, AggregatorOptions options = {});

  // Describes a device; ignored after the device was sent to the sink.
  void device(const model::TracedDevice& device);
  void add(const Activity& activity);
  void add(const UnrecordedLaunch& launch);

  // Orders what has waited long enough; `all`: everything. `dropped`: records may be missing.
  void settle(bool all, bool dropped);
  // Sends the sink the chunks that have ended by what was settled; after `all`, everything. The
  // scopes in them must have been defined before.
  void send();

  std::uint64_t activities() const { return activities_; }
  std::uint64_t late() const { return late_; }
  std::uint64_t graph_launches() const { return graph_launches_; }
  std::uint64_t graph_expanded() const { return graph_expanded_; }
  std::uint64_t unplaced() const { return unplaced_; }  // of an unknown device
  // How often a graph was launched of which no valid launch is recorded node by node: once for
  // each, and again after each launch whose nodes were not valid.
  std::uint64_t unknown_graphs() const { return unknown_asked_ + templates_.unconfirmed(); }
  std::uint64_t node_launches() const { return templates_.launches(); }

 private:
  struct Order {
    std::int64_t start;
    std::uint32_t index;
  };

  model::DeviceTimeline& timeline(std::uint32_t ordinal);
  void leave_out_partial_launches();
  void take_nodes(bool dropped);
  void expand_graphs(std::int64_t until);
  void end_copies();
  std::int64_t watermark(bool all);

  model::ActivitySink& sink_;
  AggregatorOptions options_;
  std::unordered_map<std::uint32_t, model::TracedDevice> known_;  // by ordinal
  std::vector<std::uint32_t> indices_;                            // by ordinal; kNone: not sent
  std::vector<model::DeviceTimeline> timelines_;                  // in the order of sending
  GraphTemplates templates_;
  std::unordered_set<std::uint32_t> unknown_graphs_;
  std::uint64_t unknown_asked_ = 0;
  std::vector<Activity> waiting_;
  std::vector<UnrecordedLaunch> unrecorded_;            // not yet placed
  std::unordered_set<std::uint32_t> unrecorded_calls_;  // the correlations of all unrecorded ones
  std::vector<Order> order_;
  std::vector<Activity> later_;
  std::size_t waiting_graphs_ = 0;
  std::size_t first_new_ = 0;  // in waiting_, since nodes were last taken ...
  bool new_nodes_ = false;     // ... and whether any is there
  std::int64_t newest_ = INT64_MIN;
  std::int64_t settled_ = INT64_MIN;
  bool is_all_ = false;  // what was settled last
  std::uint64_t activities_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t graph_launches_ = 0;
  std::uint64_t graph_expanded_ = 0;
  std::uint64_t unplaced_ = 0;
};

// Identifiers of kernel signatures.
// Defines each signature to the sink when it is first needed. Bounded: beyond 20,000 signatures of
// kernels grid and block are left out; beyond 100,000 names all others share the signature "other
// kernels".
class KernelClasses {
 public:
  struct Limits {
    std::size_t shapes = 20'000;
    std::size_t names = 100'000;
  };
  using Shape = std::array<std::uint32_t, 3>;

  explicit KernelClasses(model::ActivitySink& sink) : KernelClasses(sink, Limits{}) {}
  KernelClasses(model::ActivitySink& sink, Limits limits);

  // `name` may be null. Until the next renew() the same pointer means the same name.
  std::uint32_t kernel(const char* name, const Shape& grid, const Shape& block) {
    Cached& slot = cache_[hash(name, grid, block)];
    if (slot.name == name && slot.round == round_ && slot.grid == grid && slot.block == block) {
      return slot.id;
    }
    slot = {name, grid, block, round_, named_kernel(name == nullptr ? "" : name, grid, block)};
    return slot.id;
  }
  std::uint32_t copy(unsigned copy_kind, std::uint64_t bytes);  // CUPTI's copy kind
  std::uint32_t set(std::uint64_t bytes);
  std::uint32_t graph(std::uint32_t id);

  // Whether the number of a kernel, copy, set or graph is that of a collective.
  bool is_collective(std::uint32_t id) const { return collective_[id]; }

  // The driver may reuse the memory of a name: call this about once a second.
  void renew() { ++round_; }

 private:
  struct Cached {
    const char* name = nullptr;
    Shape grid{};
    Shape block{};
    std::uint32_t round = 0;
    std::uint32_t id = 0;
  };
  struct Key {
    std::uint32_t name = 0;
    Shape grid{};
    Shape block{};
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };

  static constexpr std::size_t kCache = 1 << 14;
  static std::size_t hash(const char* name, const Shape& grid, const Shape& block) {
    std::uint64_t x = reinterpret_cast<std::uintptr_t>(name) * 0x9E3779B97F4A7C15ULL;
    x += (std::uint64_t{grid[0]} << 32 | block[0]) * 0xC2B2AE3D27D4EB4FULL;
    x += (std::uint64_t{grid[1]} << 32 | grid[2]) * 0x165667B19E3779F9ULL;
    x += (std::uint64_t{block[1]} << 32 | block[2]) * 0x27D4EB2F165667C5ULL;
    return static_cast<std::size_t>((x ^ x >> 31) >> 7) % kCache;
  }

  std::uint32_t named_kernel(std::string_view name, const Shape& grid, const Shape& block);
  std::uint32_t sized(model::ActivityKind kind, const std::string& name, std::uint64_t bytes,
                      std::vector<std::uint32_t>& ids);
  std::uint32_t define(const model::KernelClass& kernel_class);

  model::ActivitySink& sink_;
  Limits limits_;
  std::vector<bool> collective_;  // by number
  std::uint32_t round_ = 1;
  std::vector<Cached> cache_ = std::vector<Cached>(kCache);
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<Key, std::uint32_t, KeyHash> kernels_;
  std::uint32_t others_ = model::kNone;
  std::array<std::vector<std::uint32_t>, 11> copies_;  // by kind and binary logarithm
  std::vector<std::uint32_t> sets_;
  std::unordered_map<std::uint32_t, std::uint32_t> graphs_;
};

// "GPU-..." or "MIG-...", by `kind`; empty where all sixteen bytes are zero.
std::string uuid_text(const char* kind, std::span<const unsigned char, 16> uuid);

}  // namespace jouleprof::cupti
