// The launches of one traced process on one device, as events of a Chrome trace. Private to this
// folder.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/activity/activity_codec.h"
#include "model/activity/activity_profile.h"
#include "model/device/power_step.h"
#include "model/recording.h"
#include "report/chrome/chrome_trace.h"
#include "report/chrome/kernel_energy.h"

namespace jouleprof::report {

// Takes events, each a JSON object.
using ChromeSink = std::function<void(std::string_view event)>;

std::string chrome_string(std::string_view text);  // quoted and escaped
std::string chrome_time(Duration t);               // microseconds with nanoseconds as decimals
// Members of "args": the energy and its bounds; of what is not resolvable the upper bound alone.
// Empty where nothing is known.
std::string chrome_energy(const JoulesRange& energy);
// The members of "args" of a counter event: "watts", and where the interval is known "low", which
// is not below zero, and "high".
std::string chrome_power(const model::PowerStep& step);
// A "process" or "thread" of the viewer and its place among the others.
void chrome_name(const ChromeSink& sink, std::string_view what, std::uint32_t pid,
                 std::uint32_t tid, std::string_view name, int place);

class ChromeLaunches {
 public:
  // `profile` may be null. `parts` says what of it is written. All must outlive it.
  ChromeLaunches(const model::Trace& trace, std::uint32_t device,
                 const model::ActivityProfile* profile, const ChromeTraceParts& parts,
                 HostTime origin, std::uint32_t pid, const ChromeSink& sink);

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
  const ChromeSink& sink_;
  bool any_ = false;
  std::vector<std::uint32_t> rows_;       // by class
  std::vector<Duration> totals_;          // by row
  std::vector<std::string> names_;        // by class: "name" and what else never changes
  std::vector<std::string> constants_;    // by class: its constant args
  std::map<std::uint32_t, Open> layers_;  // by stream
  std::map<std::uint32_t, Open> ranges_;
};

}  // namespace jouleprof::report
