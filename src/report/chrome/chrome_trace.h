// A recording as a trace in Chrome's JSON format, for ui.perfetto.dev and chrome://tracing, and how
// its events are written.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/activity/activity_codec.h"
#include "model/activity/activity_profile.h"
#include "model/domain.h"
#include "model/recording.h"
#include "report/figures.h"

namespace jouleprof::report {

struct ChromeTraceParts {
  const std::vector<model::ActivityProfile>* profiles = nullptr;  // of attribution
  std::vector<PowerCurve> curves;
  WindowEnergyOf window_energy;  // may be empty
  std::string version;           // of the tool
  // The counter of how busy a device was has no shorter steps; its bins may be longer.
  Duration busy_step{};
  // Only what begins in this part.
  HostTime begin = HostTime::min();
  HostTime end = HostTime::max();

  bool holds(HostTime t) const { return t >= begin && t < end; }
};

// Times count from the part's begin, or from the first thing there is; "baseTimeNanoseconds" ties
// them to the wall clock. In it are
//  - the power of each domain, as a counter;
//  - where each launch was kept: launches as slices by device and stream, with energy, interval,
//    power above idle and shape, and above them the layers and ranges that launched them;
//  - where not: how busy each device was, as a counter;
//  - windows, with their energies;
//  - when layers and kernels were run alone after the program's work (--replay).
// Writes as it goes: takes no memory for the launches. Energies are as in torch's annotated traces
// (docs/formats.md).
// Errors: corrupt, when a chunk of the recording can't be decoded.
Result<void> write_chrome_trace(std::ostream& out, const model::Recording& recording,
                                const ChromeTraceParts& parts);

// --- The energy of one launch, as a share of the energy of all launches of its kernel ---

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

// --- How a Chrome trace writes what its events consist of; private to this folder ---

std::string chrome_string(std::string_view text);  // quoted and escaped
std::string chrome_time(Duration t);               // microseconds with nanoseconds as decimals
// Members of "args": the energy, its bounds and its provenance; of what is not resolvable the upper
// bound and the provenance. Empty where nothing is known.
std::string chrome_energy(const JoulesRange& energy);
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

// The launches of one traced process on one device, as events of a Chrome trace. Private to this
// folder.
class ChromeLaunches {
 public:
  // `profile` may be null. `parts` says what of it is written. All must outlive it.
  ChromeLaunches(const model::Trace& trace, std::uint32_t device,
                 const model::ActivityProfile* profile, const ChromeTraceParts& parts,
                 HostTime origin, std::uint32_t pid, ChromeSink& sink);

  bool any() const { return any_; }  // kEvents of this device
  Result<void> write_launches();
  Result<void> write_busy();  // a counter from the bins

 private:
  // What is open on the track of a stream's layers, or ranges.
  struct Open {
    std::vector<std::uint32_t> path;  // outermost first
    std::vector<JoulesRange> energy;
    std::vector<std::uint64_t> launches;
    HostTime end{};
  };

  template <typename Visit>
  Result<void> each(Visit visit) const;
  void launch(HostTime begin, const model::EventEntry& e);
  void follow(Open& open, std::vector<std::uint32_t> path, std::uint32_t tid, bool layers,
              HostTime begin, HostTime end, const std::optional<JoulesRange>& energy);
  void close(Open& open, std::size_t depth, std::uint32_t tid);
  std::vector<std::uint32_t> path_of(std::uint32_t scope, bool layers) const;
  bool covers(HostTime t) const { return profile_ && t >= profile_->begin && t < profile_->end; }

  const model::Trace& trace_;
  std::uint32_t device_;
  const model::ActivityProfile* profile_;
  const ChromeTraceParts& parts_;
  HostTime origin_;
  std::uint32_t pid_;
  ChromeSink& sink_;
  bool any_ = false;
  std::vector<std::uint32_t> rows_;       // by class
  std::vector<Duration> totals_;          // by row
  std::vector<std::string> names_;        // by class: "name" and what else never changes
  std::vector<std::string> constants_;    // by class: its constant args
  std::map<std::uint32_t, Open> layers_;  // by stream
  std::map<std::uint32_t, Open> ranges_;
};

}  // namespace jouleprof::report
