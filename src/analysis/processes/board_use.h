// Who used a board: the processes to which the energy of each moment can belong. One rule for
// commands, services and imported recordings.
//
// A driver lists the processes that hold a context now and then, with their utilisation since an
// earlier list. Between two lists a process can begin and end, and of one that just began or ended
// a utilisation of zero says nothing. So each interval gets claims: energy that belongs to one
// process, or to one of several. What follows for a command, a job or a user is known as soon as
// all candidates of a claim are theirs.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "model/device/sensor.h"

namespace jouleprof::analysis {

// A process that the driver listed and that could not be identified. It belongs to an unknown
// owner.
inline constexpr std::size_t kUnidentified = static_cast<std::size_t>(-1);

// One list of the processes that hold a context on a board. One without processes counts, too.
struct BoardLook {
  struct Use {
    std::size_t process = 0;
    std::optional<double> utilisation;  // 0 to 1; mean since the last look that had one
  };
  HostTime at{};
  std::vector<Use> uses;
  bool has_unidentified = false;
};

struct ProcessLife {
  HostTime start{};
  std::optional<HostTime> end;
  // It may have held a context without being listed, between the last look that it outlived and its
  // end.
  bool may_be_unlisted = false;
};

// When a process certainly held a context: it launched kernels then.
struct KnownContext {
  std::size_t process = 0;
  HostTime begin{};
  HostTime end{};
};

struct BoardEvidence {
  std::vector<BoardLook> looks;                  // in order of time
  std::vector<ProcessLife> lives;                // by process
  std::vector<KnownContext> known;               // in any order
  std::vector<model::GaugeReading> utilisation;  // of the whole board, 0 to 1, in order of time
  // The share of one core that a process used between two times; absent: unknown. May be empty.
  std::function<std::optional<double>(std::size_t process, HostTime, HostTime)> cpu_share;
};

// A part of an interval's energy above rest and held: that of one of the candidates, or of several
// of them in an unknown proportion.
struct Claim {
  std::vector<std::size_t> candidates;  // never empty; in order
  double weight = 0;                    // relative to the other claims of the interval
  bool at_rest = false;                 // the driver says that none of the candidates worked

  bool operator==(const Claim&) const = default;
};

struct UseSlice {
  HostTime begin{};
  HostTime end{};
  std::vector<Claim> claims;  // empty: no process is known that can have worked
  std::vector<std::size_t>
      holders;  // of contexts; energy at the held level is theirs in equal parts
};

// The slices of [begin, end], without gaps and in order.
//
//  - A process holds a context from the look before the first that lists it, or its start, to the
//  look after
//    the last one, or its end; after that for up to 3 s if no other follows: the board stays up so
//    long.
//  - The only process on a board worked, whatever its utilisation.
//  - Of several, those with a utilisation worked, in proportion to it. One whose last utilisation
//  is known when
//    it ends keeps that to its end.
//  - One with a utilisation of zero since a look that listed it did not work. Where none did, they
//  only hold the
//    board, in equal parts; but where the board's own utilisation contradicts that, any of them can
//    have worked.
//  - One whose utilisation is not known yet worked as much as the board's own utilisation exceeds
//  the sum of the
//    known ones; where that is unknown, the energy belongs to any of those that worked or can have
//    worked.
//  - The same holds for one whose utilisation the driver did not give where it gave that of others,
//  whatever
//    the board's own.
//  - Candidates that used no CPU time are left out where others used some.
std::vector<UseSlice> board_use(const BoardEvidence& evidence, HostTime begin, HostTime end);

}  // namespace jouleprof::analysis
