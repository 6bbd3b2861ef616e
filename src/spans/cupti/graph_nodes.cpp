#include "spans/cupti/graph_nodes.h"

#include <new>

namespace jouleprof::cupti {

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

}  // namespace jouleprof::cupti
