#include "spans/cupti/record_modes.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <new>

namespace jouleprof::cupti {
namespace {

namespace abi = abi::cupti;
using std::chrono::milliseconds;
using std::chrono::seconds;

// Launches may take long where much waits for the device.
constexpr Duration kMostWaiting = std::chrono::milliseconds{200};

timespec after(Duration wait) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t nanoseconds = now.tv_nsec + wait.count();
  return {now.tv_sec + static_cast<time_t>(nanoseconds / 1'000'000'000),
          static_cast<long>(nanoseconds % 1'000'000'000)};
}

// Of MemsetRecords.
constexpr Duration kShortestLook = std::chrono::milliseconds{500};
constexpr std::uint64_t kUnknown = UINT64_MAX;  // recorded, like a large one

std::uint64_t flat(const void* parameters, std::uint64_t element) {
  if (parameters == nullptr) return kUnknown;
  return static_cast<const abi::MemsetParameters*>(parameters)->count * element;
}

std::uint64_t rows(const void* parameters, std::uint64_t element) {
  if (parameters == nullptr) return kUnknown;
  const auto& set = *static_cast<const abi::MemsetRowsParameters*>(parameters);
  return set.width * set.height * element;
}

// When GraphSampler has launches recorded node by node.
constexpr Duration kFirst = milliseconds{20};
constexpr Duration kShortest = milliseconds{5};
constexpr Duration kLongest = milliseconds{100};
constexpr Duration kRarest = seconds{60};

}  // namespace

void GraphMode::start() {
  may_switch_.store(true);
  record(true);
}

void GraphMode::stop() {
  may_switch_.store(false);
  if (whole_.load()) api_.disable(abi::ActivityKind::kGraphTrace);
}

void GraphMode::record(bool whole) noexcept {
  const auto result = whole ? api_.enable(abi::ActivityKind::kGraphTrace)
                            : api_.disable(abi::ActivityKind::kGraphTrace);
  // A CUPTI without such records goes on node by node.
  if (result == abi::Result::kSuccess) {
    whole_.store(whole);
  } else {
    may_switch_.store(false);
  }
}

bool GraphMode::on_launch(abi::Site site, abi::GraphExec graph) noexcept {
  // A thread may have been in a launch when callbacks began.
  static constinit thread_local Within within = Within::kNothing;
  if (site == abi::Site::kEnter) {
    if (within == Within::kNothing) begin_launch(graph, within);
    return within == Within::kUnrecorded;
  }
  if (within == Within::kNothing) return false;
  if (within == Within::kUnrecorded) end_unrecorded();
  within = Within::kNothing;
  pthread_rwlock_unlock(&in_use_);
  const bool nodes = nodes_wanted_.load(std::memory_order_relaxed);
  if (nodes != whole_.load(std::memory_order_relaxed)) return false;
  if (pthread_rwlock_trywrlock(&in_use_) != 0) return false;  // after the next launch
  if (may_switch_.load() && nodes == whole_.load()) record(!nodes);
  pthread_rwlock_unlock(&in_use_);
  return false;
}

void GraphMode::begin_launch(abi::GraphExec graph, Within& within) noexcept {
  // Not while another thread launches: its launch would not be recorded either. Then the next one.
  if (slow_count_.load() != 0 && whole_.load() && is_slow(graph) &&
      pthread_rwlock_trywrlock(&in_use_) == 0) {
    if (may_switch_.load() && whole_.load()) {
      on_destruction(graph);  // slow no longer
      api_.disable(abi::ActivityKind::kConcurrentKernel);
      api_.disable(abi::ActivityKind::kGraphTrace);
      within = Within::kUnrecorded;
      return;
    }
    pthread_rwlock_unlock(&in_use_);
  }
  if (pthread_rwlock_rdlock(&in_use_) != 0) return;
  within = Within::kLaunch;
  const bool can_settle = api_.graph_exec_id != nullptr && may_switch_.load() && !every_.load();
  if (can_settle && !whole_.load()) note_slow(graph);
}

void GraphMode::end_unrecorded() noexcept {
  record(true);
  api_.enable(abi::ActivityKind::kConcurrentKernel);
}

void GraphMode::note_slow(abi::GraphExec graph) noexcept {
  try {
    const std::scoped_lock lock(slow_mutex_);
    slow_.insert(graph);
    slow_count_.store(slow_.size());
  } catch (...) {  // no memory: the graph stays slow
  }
}

bool GraphMode::is_slow(abi::GraphExec graph) noexcept {
  const std::scoped_lock lock(slow_mutex_);
  return slow_.contains(graph);
}

void GraphMode::on_destruction(abi::GraphExec graph) noexcept {
  if (slow_count_.load() == 0) return;
  const std::scoped_lock lock(slow_mutex_);
  slow_.erase(graph);
  slow_count_.store(slow_.size());
}

// Whether launches are recorded whole from here on, until in_use_ is unlocked.
bool GraphMode::hold_whole() noexcept {
  const timespec until = after(kMostWaiting);
  while (may_switch_.load()) {
    if (pthread_rwlock_rdlock(&in_use_) != 0) break;
    if (whole_.load()) return true;
    pthread_rwlock_unlock(&in_use_);
    if (pthread_rwlock_clockwrlock(&in_use_, CLOCK_MONOTONIC, &until) != 0) break;
    if (may_switch_.load() && !whole_.load()) record(true);
    pthread_rwlock_unlock(&in_use_);
  }
  return false;
}

void GraphMode::on_instantiation(abi::Site site) noexcept {
  static constinit thread_local bool within = false;
  if (site == abi::Site::kEnter) {
    within = within || (!every_.load() && hold_whole());
  } else if (within) {
    within = false;
    pthread_rwlock_unlock(&in_use_);
  }
}

void GraphMode::on_creation() noexcept {
  // Not held: this graph must never be launched as a whole, so that nodes stay from now on.
  if (!whole_.load() && !every_.load()) may_switch_.store(false);
}

void GraphMode::on_update() noexcept {
  if (!may_switch_.load()) return;
  const timespec until = after(kMostWaiting);
  if (pthread_rwlock_clockwrlock(&in_use_, CLOCK_MONOTONIC, &until) != 0) return;
  if (whole_.load()) record(false);
  may_switch_.store(false);
  pthread_rwlock_unlock(&in_use_);
}

void GraphNodes::created(std::uint64_t node, std::uint32_t scope) noexcept {
  if (scope == model::kNone) return;
  try {
    const std::scoped_lock lock(mutex_);
    if (scopes_.size() < kMost) scopes_.insert_or_assign(node, scope);
  } catch (...) {  // no memory: the node stays without a scope
  }
}

void GraphNodes::cloned(std::uint64_t node, std::uint64_t original) noexcept {
  created(node, scope(original));
}

void GraphNodes::destroyed(std::uint64_t node) noexcept {
  try {
    const std::scoped_lock lock(mutex_);
    if (!scopes_.contains(node)) return;
    gone_.push_back(node);
    if (gone_.size() <= kMostGone) return;
    scopes_.erase(gone_.front());
    gone_.pop_front();
  } catch (...) {  // no memory: the node stays
  }
}

std::uint32_t GraphNodes::scope(std::uint64_t node) const noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = scopes_.find(node);
  return found == scopes_.end() ? model::kNone : found->second;
}

bool GraphSampler::begin(HostTime now, const Seen& seen) {
  nodes_ = true;
  begun_ = now;
  launches_before_ = seen.launches;
  next_ = now + kShortest;
  return true;
}

bool GraphSampler::end(HostTime now) {
  nodes_ = false;
  next_ = now + interval_;
  interval_ = std::min<Duration>(interval_ * 2, kRarest);
  return false;
}

bool GraphSampler::nodes(HostTime now, const Seen& seen) {
  if (!next_) {
    if (seen.launches == 0) return false;
    next_ = now + kFirst;
  }
  if (nodes_) {
    if (now < *next_) return true;
    // One launch must have begun within; a program that launches none is not waited for.
    if (seen.launches > launches_before_ || now - begun_ >= kLongest) return end(now);
    next_ = now + kShortest;
    return true;
  }
  if (seen.unknown_graphs > unknown_before_) {
    interval_ = seconds{1};
    next_ = std::min(*next_, std::max(now, begun_ + interval_));
  }
  unknown_before_ = seen.unknown_graphs;
  return now >= *next_ ? begin(now, seen) : false;
}

std::optional<std::uint64_t> memset_bytes(abi::DriverCall call, const void* parameters) {
  using enum abi::DriverCall;
  switch (call) {
    case kMemsetD8:
    case kMemsetD8Ptds:
    case kMemsetD8Async:
    case kMemsetD8AsyncPtsz:
      return flat(parameters, 1);
    case kMemsetD16:
    case kMemsetD16Ptds:
    case kMemsetD16Async:
    case kMemsetD16AsyncPtsz:
      return flat(parameters, 2);
    case kMemsetD32:
    case kMemsetD32Ptds:
    case kMemsetD32Async:
    case kMemsetD32AsyncPtsz:
      return flat(parameters, 4);
    case kMemsetD2D8:
    case kMemsetD2D8Ptds:
    case kMemsetD2D8Async:
    case kMemsetD2D8AsyncPtsz:
      return rows(parameters, 1);
    case kMemsetD2D16:
    case kMemsetD2D16Ptds:
    case kMemsetD2D16Async:
    case kMemsetD2D16AsyncPtsz:
      return rows(parameters, 2);
    case kMemsetD2D32:
    case kMemsetD2D32Ptds:
    case kMemsetD2D32Async:
    case kMemsetD2D32AsyncPtsz:
      return rows(parameters, 4);
    default:
      return std::nullopt;
  }
}

void MemsetRecords::leave_out_small() {
  if (api_.disable(abi::ActivityKind::kMemset) == abi::Result::kSuccess) leaves_out_.store(true);
}

void MemsetRecords::record_all() noexcept {
  // Without the mutex, because CUPTI may hold a lock of its own during a callback.
  if (leaves_out_.load() && leaves_out_.exchange(false)) api_.enable(abi::ActivityKind::kMemset);
}

void MemsetRecords::on_call(abi::Site site, std::uint64_t bytes) noexcept {
  // Callbacks may have begun within a call, and the way of recording may change within one.
  static constinit thread_local bool within_large = false;
  if (site == abi::Site::kEnter) {
    if (!leaves_out_.load(std::memory_order_relaxed)) return;
    if (bytes < kLeastBytes) {
      left_out_.fetch_add(1, std::memory_order_relaxed);
    } else {
      within_large = true;
      begin_large();
    }
  } else if (within_large) {
    within_large = false;
    end_large();
  }
}

void MemsetRecords::begin_large() noexcept {
  const std::scoped_lock lock(large_mutex_);
  if (large_++ == 0) api_.enable(abi::ActivityKind::kMemset);
}

void MemsetRecords::end_large() noexcept {
  const std::scoped_lock lock(large_mutex_);
  if (--large_ != 0 || !leaves_out_.load()) return;
  api_.disable(abi::ActivityKind::kMemset);
  if (!leaves_out_.load()) api_.enable(abi::ActivityKind::kMemset);  // record_all() meanwhile
}

void MemsetRecords::adapt(HostTime now) {
  if (looked_ && now - *looked_ < kShortestLook) return;
  const std::uint64_t count = left_out();
  if (looked_) {
    const double rate =
        static_cast<double>(count - left_out_before_) / jouleprof::seconds(now - *looked_);
    if (rate > static_cast<double>(kMostLeftOut)) record_all();
  }
  looked_ = now;
  left_out_before_ = count;
}

}  // namespace jouleprof::cupti
