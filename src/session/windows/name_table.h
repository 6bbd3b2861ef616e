// Numbers for names: the same for the same text, from 0 for the empty one.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace jouleprof::session {

// Bounded, for programs that name each window anew ("step 123456").
// Thread safety: all functions from any thread.
class NameTable {
 public:
  static constexpr std::size_t kMost = 10'000;
  static constexpr std::size_t kMostBytes = std::size_t{4} << 20;
  // For the reader of the figures, once a name was refused.
  static constexpr const char* kFull =
      "10,000 names of windows: windows of further names are recorded without a name, and have no "
      "total; give windows of one kind one name";

  NameTable() { number(""); }

  // 0 for a new name where there is no room.
  std::uint32_t number(std::string_view text) {
    const std::lock_guard lock(mutex_);
    const auto known = numbers_.find(text);
    if (known != numbers_.end()) return known->second;
    if (texts_.size() >= kMost || bytes_ + text.size() > kMostBytes) {
      is_full_ = true;
      return 0;
    }
    numbers_.reserve(numbers_.size() + 1);
    texts_.emplace_back(text);
    bytes_ += text.size();
    const auto next = static_cast<std::uint32_t>(texts_.size() - 1);
    numbers_.emplace(texts_.back(), next);
    return next;
  }

  // Whether a name was refused.
  bool is_full() const {
    const std::lock_guard lock(mutex_);
    return is_full_;
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
  std::size_t bytes_ = 0;
  bool is_full_ = false;
};

}  // namespace jouleprof::session
