// The launches of one traced process on one device, as events of a Chrome trace. Private to this
// folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/activity/activity_codec.h"
#include "model/activity/activity_profile.h"
#include "model/recording.h"
#include "report/chrome/chrome_text.h"
#include "report/chrome/chrome_trace.h"

namespace jouleprof::report {

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
