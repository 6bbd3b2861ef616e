#include "analysis/processes/lost_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "analysis/processes/traced_split.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLongest = 3s;

}  // namespace

std::vector<LostEnd> lost_ends(const model::Recording& recording, std::optional<HostTime> from,
                               std::optional<HostTime> to) {
  std::vector<LostEnd> out;
  for (std::uint32_t t = 0; t < recording.traces.size(); ++t) {
    const model::Trace& trace = recording.traces[t];
    if (trace.status.ended || !trace.position || trace.chunks.empty()) continue;
    const auto process = process_of(recording, trace);
    if (!process || !recording.processes[*process].end) continue;  // it lives
    LostEnd lost{t, HostTime::min(), *recording.processes[*process].end};
    for (const auto& chunk : trace.chunks) lost.begin = std::max(lost.begin, chunk.end);
    lost.begin = std::max(lost.begin, lost.end - kLongest);
    if (from) lost.begin = std::max(lost.begin, *from);
    if (to) lost.end = std::min(lost.end, *to);
    if (lost.begin < lost.end) out.push_back(lost);
  }
  return out;
}

std::string lost_text(const model::Recording& recording, const LostEnd& lost) {
  const model::Trace& trace = recording.traces[lost.trace];
  return fmt::format(
      "{} (pid {}) ended without closing its trace, as after a signal or _exit: what it ran in its "
      "last {:.2f} s is not known",
      trace.program.empty() ? "a program" : trace.program, trace.pid,
      seconds(lost.end - lost.begin));
}

}  // namespace jouleprof::analysis
