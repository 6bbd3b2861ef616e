// What a window is recorded with: its name and flags, and how many are recorded.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace jouleprof::session {

// Marks a window whose edges are the device's own, mapped to host time (jouleprof.h's flag).
inline constexpr std::uint32_t kDeviceTime = 1;

// Numbers for names: the same for the same text, from 0 for the empty one. Bounded, for programs
// that name each window anew ("step 123456").
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

// How many windows a recording takes.
// Windows are recorded one by one up to a limit, beyond which a recording would grow without bound.
// Thread safety: none.
class WindowQuota {
 public:
  explicit WindowQuota(std::uint64_t limit = 5'000'000) : limit_(limit) {}

  // One more has ended: whether it is to be recorded.
  bool take() { return ++asked_ <= limit_; }
  // A warning, after the first take() that was refused, and only then.
  std::optional<std::string> warning() const {
    if (asked_ != limit_ + 1) return std::nullopt;
    return fmt::format("only the first {} windows were recorded one by one", limit_);
  }

 private:
  std::uint64_t limit_;
  std::uint64_t asked_ = 0;
};

}  // namespace jouleprof::session
