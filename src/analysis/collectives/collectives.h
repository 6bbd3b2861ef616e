// Time and energy of collectives, by rank.
//
// The kernel of a collective runs from the time that its rank begins the operation, and spins until
// all others have begun. A matched call is split at the begin of the rank that
// came last: waiting before, transfer after. The energy of a rank's kernel signature, as the
// regression found it, is divided in proportion to these times: an estimate, for the regression
// cannot see the power of waiting by itself. Its interval is that of the signature's energy, and
// the median spread of ends for each call, for the error of the ranks' clocks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "model/activity/activity_profile.h"
#include "model/activity/collective.h"
#include "model/domain.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Profiles the calls that begin within the time of their GPU's profile. Errors: as
// collective_calls().
Result<model::CollectiveProfile> collectives_of(const model::Recording& recording,
                                                std::span<const model::ActivityProfile> activity);

// --- The launches of collectives' kernels of all ranks, and which of them are one operation ---

struct CollectiveCall {
  // The begins of an operation that all ranks took part in.
  struct Match {
    HostTime latest{};       // begin of the rank that came last ...
    std::uint32_t last = 0;  // ... index into Collectives::ranks
  };
  HostTime begin{};
  HostTime end{};
  std::uint32_t kernel_class = 0;  // of its trace
  std::uint32_t stream = 0;
  std::optional<Match> match;

  // Until all ranks had begun; of a matched call. A rank that ended before, by the error of the
  // clocks, waited to its end.
  Duration waiting() const { return std::clamp(match->latest, begin, end) - begin; }
};

// One GPU of one process.
struct CallingRank {
  std::uint32_t trace = 0;   // index into Recording::traces
  std::uint32_t device = 0;  // index into Trace::devices
  model::DomainId domain{};
  std::string name;                   // "rank 3", "pid 71"
  std::vector<CollectiveCall> calls;  // by begin, without those of isolated re-runs
};

// The synchronising calls of a rank (const or not) by stream, each in the order of their begins;
// the streams in that of their first calls.
template <class Rank>
auto sequences_of(Rank& rank, const model::Trace& trace) {
  std::vector<std::vector<decltype(rank.calls.data())>> out;
  std::map<std::uint32_t, std::size_t> places;
  for (auto& call : rank.calls) {
    const auto kind = model::collective_kind(trace.classes[call.kernel_class].name);
    if (!model::is_synchronising(kind)) continue;
    const auto [place, is_new] = places.try_emplace(call.stream, out.size());
    if (is_new) out.emplace_back();
    out[place->second].push_back(&call);
  }
  return out;
}

struct CollectiveCalls {
  std::vector<CallingRank> ranks;
  std::optional<Duration> end_spread;  // as CollectiveProfile's
  std::vector<std::string> problems;
};

// Finds the calls of the whole recording. Calls of one kind of stream are matched by their order:
// the n-th of each rank are one operation. A stream's calls are matched only where all ranks have
// the same kernels in the same order, none ended before another began, and their ends are close;
// otherwise a problem says why not. Errors: corrupt, when a chunk cannot be decoded or refers to a
// missing entry.
Result<CollectiveCalls> collective_calls(const model::Recording& recording);

}  // namespace jouleprof::analysis
