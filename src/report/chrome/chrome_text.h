// The energy of one launch, as a share of the energy of all launches of its kernel.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "model/activity/activity_profile.h"
#include "model/domain.h"

namespace jouleprof::report {

struct JoulesRange {
  double joules = 0;
  double low = 0;  // of the 95 % interval
  double high = 0;
  std::int64_t resolved = 0;  // launches in it whose kernel is resolvable
  model::Provenance provenance = model::Provenance::kUnavailable;  // the weakest of its parts

  JoulesRange& operator+=(const JoulesRange& other);
  JoulesRange operator-(const JoulesRange& other) const;
};

// The energy of a launch of this duration, when all launches of `row` together lasted `total`.
// Their sum over all launches is the row's energy, also where launches overlapped. The row has an
// energy; where it is not resolvable, `joules` is of use in sums alone.
JoulesRange launch_energy(const model::ActivityRow& row, Duration duration, Duration total);

// Finds kernels in a profile, which must outlive it.
class KernelRows {
 public:
  explicit KernelRows(const model::ActivityProfile& profile);

  // The position in by_kernel; kNone when the kernel is not in the profile.
  std::uint32_t row_of(const model::KernelClass& kernel) const;

 private:
  const model::ActivityProfile& profile_;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> by_name_;
};

// How a Chrome trace writes what its events consist of. Private to this folder.

std::string chrome_string(std::string_view text);  // quoted and escaped
std::string chrome_time(Duration t);               // microseconds with nanoseconds as decimals
// Members of "args": the energy, its bounds and its provenance; of what is not resolvable the upper
// bound and the provenance. Empty where nothing is known.
std::string chrome_energy(const JoulesRange& energy);
// Members "name" and "args" of counter events: of the mean, and where the interval is known of its
// ends, the low one not below zero. Each is a counter of its own: viewers stack the series of one.
inline constexpr std::string_view kChromeLow = ", 95 % low";
inline constexpr std::string_view kChromeHigh = ", 95 % high";
std::vector<std::string> chrome_power(std::string_view name, const model::PowerStep& step);

// Writes events, each a JSON object, as members of an array that has been opened. A trace has
// millions: they are gathered, and written by the block.
class ChromeSink {
 public:
  explicit ChromeSink(std::ostream& out) : out_(out) {}

  template <typename... Args>
  void operator()(fmt::format_string<Args...> format, Args&&... args) {
    next();
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  // A "process" or "thread" of the viewer and its place among the others.
  void name(std::string_view what, std::uint32_t pid, std::uint32_t tid, std::string_view name,
            int place);
  void flush();  // must be called at the end

 private:
  void next();

  std::ostream& out_;
  std::string text_;
  bool first_ = true;
};

}  // namespace jouleprof::report
