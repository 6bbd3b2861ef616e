// How a Chrome trace writes what its events consist of. Private to this folder.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "model/device/power_step.h"
#include "report/chrome/kernel_energy.h"

namespace jouleprof::report {

std::string chrome_string(std::string_view text);  // quoted and escaped
std::string chrome_time(Duration t);               // microseconds with nanoseconds as decimals
// Members of "args": the energy, its bounds and its provenance; of what is not resolvable the upper
// bound and the provenance. Empty where nothing is known.
std::string chrome_energy(const JoulesRange& energy);
// The members of "args" of a counter event: "watts", and where the interval is known "low", which
// is not below zero, and "high".
std::string chrome_power(const model::PowerStep& step);

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
