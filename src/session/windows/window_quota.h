// How many windows a recording takes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

namespace jouleprof::session {

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
