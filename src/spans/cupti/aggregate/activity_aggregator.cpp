#include "spans/cupti/aggregate/activity_aggregator.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include "abi/cuda_abi.h"
#include "base/median.h"
#include "base/process/dynlib.h"
#include "model/activity/collective.h"
#include "spans/cupti/aggregate/graph_templates.h"

namespace jouleprof::cupti {
namespace {

// --- The times of launches of CUDA graphs without a record ---

// A launch of the same graph, recorded whole or node by node.
struct Neighbour {
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
  const Activity* record = nullptr;

  void add(const Activity& a) {
    begin = std::min(begin, a.start);
    end = std::max(end, a.end);
    record = &a;
  }
  std::int64_t duration() const { return end - begin; }
};

Activity placed(const UnrecordedLaunch& launch, const std::vector<Activity>& waiting) {
  std::map<std::int32_t, Neighbour> others;  // by the number of calls after it
  for (const Activity& a : waiting) {
    if (a.graph != launch.graph) continue;
    others[static_cast<std::int32_t>(a.correlation - launch.correlation)].add(a);
  }
  Activity out;
  out.start = out.end = launch.begin;
  out.device = model::kNone;
  out.scope = launch.scope;
  out.graph = launch.graph;
  out.correlation = launch.correlation;
  out.whole_graph = true;
  const auto after = others.upper_bound(0);
  if (after != others.begin()) out.start = std::max(out.start, std::prev(after)->second.end);
  const Neighbour* alike = after != others.end()     ? &after->second
                           : after != others.begin() ? &std::prev(after)->second
                                                     : nullptr;
  if (alike == nullptr) return out;
  out.device = alike->record->device;
  out.stream = alike->record->stream;
  out.kernel_class = alike->record->kernel_class;
  out.end = out.start + alike->duration();
  if (after != others.end()) out.end = std::max(std::min(out.end, after->second.begin), out.start);
  return out;
}

// Launches of one graph run one after the other: an unrecorded one begins at its call or, if that
// is later, at the end of the launch before it, takes as long as a launch next to it, and ends at
// the latest when the next one begins.
//
// Returns those of `unrecorded` that were called before `until`, as whole launches, and removes
// them from it. Those without another launch of their graph in `waiting` are returned without a
// duration, on no known device.
std::vector<Activity> place_unrecorded(std::vector<UnrecordedLaunch>& unrecorded,
                                       const std::vector<Activity>& waiting, std::int64_t until) {
  std::vector<Activity> out;
  std::erase_if(unrecorded, [&](const UnrecordedLaunch& launch) {
    if (launch.begin >= until) return false;
    out.push_back(placed(launch, waiting));
    return true;
  });
  return out;
}

// --- The aggregator ---

model::Launch launch_of(const Activity& a) {
  return {HostTime{Duration{a.start}},
          HostTime{Duration{a.end}},
          a.kernel_class,
          a.scope,
          a.stream,
          a.collective};
}

constexpr std::uint32_t kMostDevices = 1024;
constexpr std::int64_t kLongCopy = 50'000;  // nanoseconds
constexpr std::size_t kMostUnknownGraphs = 10'000;

constexpr std::array<const char*, 11> kCopies{
    "memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA", "memcpy AtoH", "memcpy AtoA",
    "memcpy AtoD", "memcpy DtoA", "memcpy DtoD", "memcpy HtoH", "memcpy PtoP"};

// A device as CUDA's driver describes it, where CUPTI has no record of it: from the driver that the
// process has loaded; what the driver does not have stays empty.
model::TracedDevice driver_device(std::uint32_t ordinal) {
  namespace cuda = abi::cuda;
  model::TracedDevice device;
  device.ordinal = ordinal;
  // Only the one that is there already: loading a driver is not for us.
  const DynLib driver = DynLib::loaded(cuda::kLibrary);
  cuda::fn::DeviceGet* get = nullptr;
  cuda::fn::DeviceGetUuid* board = nullptr;
  cuda::fn::DeviceGetUuid_v2* part = nullptr;
  driver.bind(get, "cuDeviceGet");
  driver.bind(board, "cuDeviceGetUuid");
  driver.bind(part, "cuDeviceGetUuid_v2");
  cuda::Device handle = 0;
  cuda::Uuid of_board{};
  if (get != nullptr && board != nullptr &&
      get(&handle, static_cast<int>(ordinal)) == cuda::kSuccess &&
      board(&of_board, handle) == cuda::kSuccess) {
    device.uuid = uuid_text("GPU-", of_board.bytes);
    cuda::Uuid of_part{};
    if (part != nullptr && part(&of_part, handle) == cuda::kSuccess &&
        std::memcmp(of_part.bytes, of_board.bytes, sizeof of_part.bytes) != 0) {
      device.uuid = uuid_text("MIG-", of_part.bytes);
    }
  }
  return device;
}

}  // namespace

ActivityAggregator::ActivityAggregator(model::ActivitySink& sink, AggregatorOptions options)
    : sink_(sink), options_(options) {}

void ActivityAggregator::device(const model::TracedDevice& device) {
  known_[device.ordinal] = device;
}

void ActivityAggregator::add(const Activity& activity) {
  ++activities_;
  if (activity.whole_graph) {
    ++graph_launches_;
    ++waiting_graphs_;
    if (!templates_.has(activity.graph) && unknown_asked_ < kMostUnknownGraphs) {
      unknown_asked_ += unknown_graphs_.insert(activity.graph).second ? 1 : 0;
    }
  } else if (activity.graph != 0) {
    new_nodes_ = true;
  }
  newest_ = std::max(newest_, activity.end);
  waiting_.push_back(activity);
}

void ActivityAggregator::add(const UnrecordedLaunch& launch) {
  unrecorded_.push_back(launch);
  unrecorded_calls_.insert(launch.correlation);
}

std::int64_t ActivityAggregator::watermark(bool all) {
  if (all) return INT64_MAX;
  std::int64_t mark = newest_ - options_.settle.count();
  if (waiting_.size() > options_.most_waiting) {
    std::vector<std::int64_t> starts;
    starts.reserve(waiting_.size());
    for (const Activity& a : waiting_) starts.push_back(a.start);
    mark = std::max(mark, upper_median(std::move(starts)));
  }
  return std::max(mark, settled_);
}

void ActivityAggregator::expand_graphs(std::int64_t until) {
  if (waiting_graphs_ == 0) return;
  later_.clear();
  waiting_graphs_ = 0;
  for (const Activity& a : waiting_) {
    if (!a.whole_graph) {
      later_.push_back(a);
    } else if (a.start >= until) {
      ++waiting_graphs_;
      later_.push_back(a);
    } else if (templates_.expand(a, later_)) {
      ++graph_expanded_;
    } else {
      later_.push_back(a);
    }
  }
  waiting_.swap(later_);
}

// Of an unrecorded launch the memsets and copies may be recorded node by node nevertheless (CUPTI
// 13.0): they are no shape of the graph, and the launch as a whole has their time.
void ActivityAggregator::leave_out_partial_launches() {
  const auto first = waiting_.begin() + static_cast<std::ptrdiff_t>(first_new_);
  const auto partial = std::remove_if(first, waiting_.end(), [&](const Activity& a) {
    return a.is_node() && unrecorded_calls_.contains(a.correlation);
  });
  waiting_.erase(partial, waiting_.end());
}

void ActivityAggregator::take_nodes(bool dropped) {
  if (std::exchange(new_nodes_, false)) {
    leave_out_partial_launches();
    std::unordered_set<std::uint32_t> invalid;
    for (std::size_t i = first_new_; i < waiting_.size(); ++i) {
      if (waiting_[i].is_node()) invalid.insert(waiting_[i].graph);
    }
    for (const Activity& node : mend_overwritten(waiting_, first_new_, unrecorded_)) {
      templates_.observe(node);
      invalid.erase(node.graph);
    }
    for (const std::uint32_t graph : invalid) unknown_graphs_.erase(graph);
    const auto graphs = static_cast<std::size_t>(
        std::ranges::count_if(waiting_, [](const Activity& a) { return a.whole_graph; }));
    graph_launches_ += graphs - waiting_graphs_;  // those that were mended
    waiting_graphs_ = graphs;
  }
  templates_.settle(dropped);
}

// A stream runs one after the other, so that a copy has ended when the next of its stream begins.
// The record of the last copy before a pause may end when the pause does, or long after it (CUPTI
// of CUDA 13): it would take half the time of all kernels that ran since.
void ActivityAggregator::end_copies() {
  using Stream = std::pair<std::uint32_t, std::uint32_t>;       // with its device
  std::map<Stream, std::map<std::int64_t, std::int64_t>> next;  // of long copies, by their start
  for (const Activity& a : waiting_) {
    if (a.copy && a.end - a.start > kLongCopy) next[{a.device, a.stream}][a.start] = a.end;
  }
  if (next.empty()) return;
  for (const Activity& a : waiting_) {
    const auto copies = next.find({a.device, a.stream});
    if (copies == next.end()) continue;
    const auto after = copies->second.lower_bound(a.start);  // it began before all from here on
    if (after != copies->second.begin()) {
      std::int64_t& end = std::prev(after)->second;
      end = std::min(end, a.start);
    }
  }
  for (Activity& a : waiting_) {
    if (a.copy && a.end - a.start > kLongCopy) a.end = next[{a.device, a.stream}][a.start];
  }
}

void ActivityAggregator::settle(bool all, bool dropped) {
  is_all_ = all;
  take_nodes(dropped);
  if (waiting_.empty()) return;
  const std::int64_t until = watermark(all);
  for (const Activity& launch : place_unrecorded(unrecorded_, waiting_, until)) add(launch);
  expand_graphs(until);
  end_copies();

  order_.clear();
  later_.clear();
  for (std::size_t i = 0; i != waiting_.size(); ++i) {
    if (waiting_[i].start < until) {
      order_.push_back({waiting_[i].start, static_cast<std::uint32_t>(i)});
    } else {
      later_.push_back(waiting_[i]);
    }
  }
  const auto earlier = [](const Order& a, const Order& b) { return a.start < b.start; };
  if (!std::ranges::is_sorted(order_, earlier)) {
    std::ranges::stable_sort(order_, earlier);
  }
  for (const Order& o : order_) {
    const Activity& a = waiting_[o.index];
    if (a.device >= kMostDevices) {
      ++unplaced_;
    } else if (!timeline(a.device).add(launch_of(a))) {
      ++late_;
    }
  }
  waiting_.swap(later_);
  first_new_ = waiting_.size();
  settled_ = all ? newest_ : until;
}

void ActivityAggregator::send() {
  const HostTime until{Duration{settled_}};
  for (model::DeviceTimeline& timeline : timelines_) {
    const auto emit = [this](const model::ActivityChunk& chunk) { sink_.add(chunk); };
    is_all_ ? timeline.emit_until(until, emit) : timeline.emit_ended(until, emit);
  }
}

model::DeviceTimeline& ActivityAggregator::timeline(std::uint32_t ordinal) {
  if (ordinal >= indices_.size()) indices_.resize(ordinal + 1, model::kNone);
  std::uint32_t& index = indices_[ordinal];
  if (index == model::kNone) {
    index = static_cast<std::uint32_t>(timelines_.size());
    const auto found = known_.find(ordinal);
    sink_.define(index, found != known_.end() ? found->second : driver_device(ordinal));
    timelines_.emplace_back(index, options_.bin, options_.fine, options_.events);
  }
  return timelines_[index];
}

KernelClasses::KernelClasses(model::ActivitySink& sink, Limits limits)
    : sink_(sink), limits_(limits) {}

std::size_t KernelClasses::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t x = key.name;
  for (const Shape& shape : {key.grid, key.block}) {
    for (const std::uint32_t n : shape) x = (x ^ n) * 0x9E3779B97F4A7C15ULL ^ x >> 29;
  }
  return x;
}

std::uint32_t KernelClasses::define(const model::KernelClass& kernel_class) {
  const auto id = static_cast<std::uint32_t>(collective_.size());
  sink_.define(id, kernel_class);
  collective_.push_back(kernel_class.kind == model::ActivityKind::kKernel &&
                        !model::collective_kind(kernel_class.name).empty());
  return id;
}

std::uint32_t KernelClasses::named_kernel(std::string_view name, const Shape& grid,
                                          const Shape& block) {
  std::string text(name);
  auto found = names_.find(text);
  if (found == names_.end()) {
    if (names_.size() >= limits_.names) {
      if (others_ == model::kNone) {
        others_ = define({model::ActivityKind::kKernel, "other kernels", {}, {}, 0});
      }
      return others_;
    }
    found = names_.emplace(text, static_cast<std::uint32_t>(names_.size())).first;
  }
  Key key{found->second, grid, block};
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  if (kernels_.size() >= limits_.shapes) {
    key.grid = key.block = {};
    if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  }
  const std::uint32_t id =
      define({model::ActivityKind::kKernel, std::move(text), key.grid, key.block, 0});
  kernels_.emplace(key, id);
  return id;
}

std::uint32_t KernelClasses::sized(model::ActivityKind kind, const std::string& name,
                                   std::uint64_t bytes, std::vector<std::uint32_t>& ids) {
  const auto power = static_cast<std::size_t>(std::bit_width(bytes));
  if (ids.empty()) ids.assign(65, model::kNone);
  if (ids[power] == model::kNone) {
    ids[power] = define({kind, name, {}, {}, std::bit_floor(bytes)});
  }
  return ids[power];
}

std::uint32_t KernelClasses::copy(unsigned copy_kind, std::uint64_t bytes) {
  if (copy_kind >= kCopies.size()) copy_kind = 0;
  return sized(model::ActivityKind::kMemcpy, kCopies[copy_kind], bytes, copies_[copy_kind]);
}

std::uint32_t KernelClasses::set(std::uint64_t bytes) {
  return sized(model::ActivityKind::kMemset, "memset", bytes, sets_);
}

std::uint32_t KernelClasses::graph(std::uint32_t id) {
  // Programs with thousands of graphs have one class for those beyond.
  if (graphs_.size() >= 1000) id = 0;
  const auto [place, fresh] = graphs_.try_emplace(id, model::kNone);
  if (fresh) {
    place->second = define({model::ActivityKind::kGraph,
                            id == 0 ? "other graphs" : fmt::format("graph {}", id),
                            {},
                            {},
                            0});
  }
  return place->second;
}

std::string uuid_text(const char* kind, std::span<const unsigned char, 16> uuid) {
  if (std::ranges::all_of(uuid, [](unsigned char b) { return b == 0; })) return {};
  std::string text = kind;
  for (std::size_t i = 0; i != uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", uuid[i]);
  }
  return text;
}

}  // namespace jouleprof::cupti
