// Numbers for names: the same for the same text, from 0 for the empty one.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace jouleprof::session {

// Thread safety: all functions from any thread.
class NameTable {
 public:
  NameTable() { number(""); }

  std::uint32_t number(std::string_view text) {
    const std::lock_guard lock(mutex_);
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return known->second;
    texts_.emplace_back(text);
    const auto next = static_cast<std::uint32_t>(numbers_.size());
    numbers_.emplace(texts_.back(), next);
    return next;
  }

  // How many there are: numbers from 0 on.
  std::uint32_t size() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(texts_.size());
  }

  // The text of a number that number() gave; "" for any other.
  std::string text(std::uint32_t number) const {
    const std::lock_guard lock(mutex_);
    return number < texts_.size() ? texts_[number] : std::string();
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> texts_;  // does not move them
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace jouleprof::session
