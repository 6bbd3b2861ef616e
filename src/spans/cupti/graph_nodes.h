// The scope in which each node of a CUDA graph was captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "model/activity/activity.h"

namespace jouleprof::cupti {

// A destroyed node is kept for some time: records of its launches may still arrive. Thread safety:
// all functions from any thread.
class GraphNodes {
 public:
  void created(std::uint64_t node, std::uint32_t scope) noexcept;
  void cloned(std::uint64_t node, std::uint64_t original) noexcept;
  void destroyed(std::uint64_t node) noexcept;
  std::uint32_t scope(std::uint64_t node) const noexcept;  // model::kNone: not known

 private:
  static constexpr std::size_t kMost = 1'000'000;  // about 50 MB

  static constexpr std::size_t kMostGone = 100'000;

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint32_t> scopes_;  // nodes without a scope are not here
  std::deque<std::uint64_t> gone_;
};

}  // namespace jouleprof::cupti
