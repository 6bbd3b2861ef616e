// Learns what a board draws at rest, and while it is held, as a machine is watched.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "meters/nvml/calibration/calibration_file.h"
#include "model/profile.h"
#include "model/snapshot.h"

namespace jouleprof::cli {

// A GPU is at rest in an interval if at its end no process is listed on it, its utilisation is zero
// and its SM clock is at most half of the highest one seen (of 1.2 GHz at least). Where the clock
// or the utilisation is unknown it never is. A level comes from at least four such intervals in a
// row that last 5 s together:
//  - its power no longer falls: by its slope and a time constant of 4 s, it has less than 0.5 W or
//    0.5 % to fall;
//  - its error is at most 1 W or 1 %.
// It is held in one if a process is listed on it then and its utilisation is zero.
// A lower level replaces one by 0.5 W or more above it: rest is the lowest state. So does one
// within its error that has half the error. Thread safety: none.
class RestWatch {
 public:
  // `held`: by domain of the snapshot, whether a process is known to hold it; may be empty.
  // True if a level is new or has changed.
  bool add(const model::Snapshot& snapshot, const std::vector<bool>& held = {});

  // Absent: it was not observed.
  std::optional<Power> power(const std::string& uuid) const;
  std::optional<Power> held(const std::string& uuid) const;
  // The levels at rest, with the date of the first look. Of a held board they are not for later
  // runs: work between two looks may be in them.
  const meters::nvml::BoardLevels& levels() const { return levels_; }

 private:
  // The intervals so far, summed.
  struct Point {
    double seconds = 0;
    double joules = 0;
    double variance = 0;
  };
  struct Series {
    HostTime begin{};           // of the latest energy
    std::vector<Point> points;  // of such intervals in a row, from their begin on
    bool counts_on = false;     // whether the snapshots' energies have the same begin
    std::optional<model::KnownLevel> level;
  };
  struct Board {
    double highest_clock = 1.2e9;
    Series rest;
    Series held;
  };

  bool add(const model::DomainSnapshot& domain, bool is_so, Series& series) const;
  std::optional<Power> observed(const std::string& uuid, Series Board::*series) const;
  static void extend(const model::DomainSnapshot& domain, Series& series);
  static std::optional<model::KnownLevel> level_of(Series& series);

  std::optional<RealTime> begin_;
  std::map<std::string, Board> boards_;
  meters::nvml::BoardLevels levels_;
};

// Power levels that a run observed, for later runs on the same boards.
// Stores the power at rest and while held of each GPU that `profile` observed itself, by UUID.
// A failure is ignored: the next run observes them again.
void store_observed_levels(const model::Profile& profile);

}  // namespace jouleprof::cli
