// Who used a board: the processes to which the energy of each moment can belong. One rule for
// commands, services and imported recordings.
//
// A driver lists the processes that hold a context now and then, with their utilisation since an
// earlier list. Between two lists a process can begin and end, and of one that just began or ended
// a utilisation of zero says nothing. So each interval gets claims: energy that belongs to one
// process, or to one of several. What follows for a command, a job or a user is known as soon as
// all candidates of a claim are theirs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <vector>

#include "base/clock.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// A quantity that never decreases, such as the CPU time of a process. Known at some times, and
// interpolated between them.
class Growing {
 public:
  // Times in order. After a decrease the value counts on from there; the total never decreases.
  void add(HostTime at, double value) {
    if (!points_.empty()) {
      if (at < points_.back().at) return;
      total_ += std::max(value - last_, 0.0);
      if (at == points_.back().at) {
        points_.back().total = total_;
        last_ = value;
        return;
      }
    }
    last_ = value;
    points_.push_back({at, total_});
  }
  bool empty() const { return points_.empty(); }
  HostTime first() const { return points_.front().at; }
  HostTime last() const { return points_.back().at; }
  // Constant before the first and after the last point.
  double at(HostTime t) const {
    const auto next = std::ranges::upper_bound(points_, t, {}, &Point::at);
    if (next == points_.begin()) return next->total;
    const Point& a = *std::prev(next);
    if (next == points_.end()) return a.total;
    return a.total + (next->total - a.total) * (seconds(t - a.at) / seconds(next->at - a.at));
  }
  void forget_before(HostTime t) {
    const auto kept =
        std::ranges::partition_point(points_, [t](const Point& p) { return p.at < t; });
    if (kept - points_.begin() > 1) points_.erase(points_.begin(), std::prev(kept));
  }
  // The mean growth per second over [a, b]; absent where less than half of it is known.
  std::optional<double> rate(HostTime a, HostTime b) const {
    if (empty() || b <= a) return std::nullopt;
    const HostTime from = std::max(a, first()), to = std::min(b, last());
    if (2 * (to - from) < b - a) return std::nullopt;
    return (at(to) - at(from)) / seconds(to - from);
  }

 private:
  struct Point {
    HostTime at;
    double total;
  };
  std::vector<Point> points_;
  double total_ = 0;
  double last_ = 0;
};

// A process that the driver listed and that could not be identified. It belongs to an unknown
// owner.
inline constexpr std::size_t kUnidentified = static_cast<std::size_t>(-1);

// One list of the processes that hold a context on a board. One without processes counts, too.
struct BoardLook {
  struct Use {
    std::size_t process = 0;
    std::optional<double> utilisation;  // 0 to 1; mean since the last look that had one
    std::set<std::size_t> parts = {};   // of a divided board: in which its contexts are
  };
  HostTime at{};
  std::vector<Use> uses;
  bool has_unidentified = false;
};

struct ProcessLife {
  HostTime start{};
  std::optional<HostTime> end;
  // It may have held a context without being listed, between the last look that it outlived and its
  // end. Where no list was read, others may have, too.
  bool may_be_unlisted = false;
};

// When a process certainly held a context: it launched kernels then.
struct KnownContext {
  std::size_t process = 0;
  HostTime begin{};
  HostTime end{};
};

// An instance of a board that is divided (MIG). Its processes run on no other.
struct BoardPart {
  double size = 0;  // of its multiprocessors, relative to other parts; 0: unknown
  // The activity of its multiprocessors, 0 to 1; each the mean since the one before. In order of
  // time.
  std::vector<model::GaugeReading> activity = {};
};

struct BoardEvidence {
  std::vector<BoardLook> looks;                  // in order of time
  std::vector<ProcessLife> lives;                // by process
  std::vector<KnownContext> known;               // in any order
  std::vector<model::GaugeReading> utilisation;  // of the whole board, 0 to 1, in order of time
  // The share of one core that a process used between two times; absent: unknown. May be empty.
  using CpuShare = std::function<std::optional<double>(std::size_t process, HostTime, HostTime)>;
  CpuShare cpu_share;
  // The CPU time of its children that were never listed.
  CpuShare children_cpu_share = {};
  // Empty: it is not divided. Processes of a divided board have no utilisation of their own.
  std::vector<BoardPart> parts = {};
};

// A part of an interval's energy above rest and held: that of one of the candidates, or of several
// of them in an unknown proportion.
struct Claim {
  std::vector<std::size_t> candidates;  // never empty; in order
  double weight = 0;                    // relative to the other claims of the interval
  bool at_rest = false;                 // the driver says that none of the candidates worked
  // By exclusion: what others had is known roughly, and the candidates may have had nothing.
  bool in_doubt = false;
  // It was of a process that could not be identified, taken for one of the candidates' family.
  bool of_unidentified = false;

  bool operator==(const Claim&) const = default;
};

struct UseSlice {
  HostTime begin{};
  HostTime end{};
  std::vector<Claim> claims;  // empty: no process is known that can have worked
  std::vector<std::size_t>
      holders;  // of contexts; energy at the held level is theirs in equal parts
  // Holders, of several, that lists show to have held one all the time; others may have.
  std::vector<std::size_t> sure_holders;
  // The weights are a guess: of a divided board, nothing says which of the parts worked, or a
  // process that no list names may have.
  bool is_guess = false;
  // Whose utilisation reads 0 though the board's own exceeds the sum of all others' by this weight.
  // They have nothing, and may have worked.
  std::optional<Claim> doubt = std::nullopt;
};

// Whether processes that cannot be named used a board in an interval: hidden ones that its lists
// count, or any where lists are missing or name nothing though the board works. The command's own
// short processes may be among them.
enum class OtherUsers { kNone, kMaybe, kSure };
OtherUsers unlisted_users(const BoardEvidence& evidence, HostTime begin, HostTime end);

// The slices of [begin, end], without gaps and in order.
//
//  - A process holds a context from the look before the first that lists it, or its start, to the
//    look after the last one, or its end; after that for up to 3 s if no other follows: the board
//    stays up so long.
//  - The only process on a board worked, whatever its utilisation.
//  - Of several, those with a utilisation worked, in proportion to it. One whose last utilisation
//    is known when it ends keeps that to its end.
//  - One with a utilisation of zero since a look that listed it did not work. Where none did, they
//    only hold the board, in equal parts; but where the board's own utilisation contradicts that,
//    any of them can have worked.
//  - One whose utilisation is not known yet worked as much as the board's own utilisation exceeds
//    the sum of the known ones; where that is unknown, the energy belongs to any of those that
//    worked or can have worked.
//  - The same holds for one whose utilisation the driver did not give where it gave that of others,
//    whatever the board's own.
//  - Candidates that used no CPU time are left out where others used some, or began or ended; those
//    that used little in comparison are, too, in doubt.
//  - A process that could not be identified is left out where others used CPU time, or began or
//    ended: it ended at once, and is taken for one of theirs, in doubt.
//  - Of a divided board, each part worked by its activity times its size, and the energy of a part
//    belongs to the processes on it. Where the activity is unknown, the parts with processes have
//    their sizes; where these are unknown, the energy belongs to any of the processes.
std::vector<UseSlice> board_use(const BoardEvidence& evidence, HostTime begin, HostTime end);

}  // namespace jouleprof::analysis
