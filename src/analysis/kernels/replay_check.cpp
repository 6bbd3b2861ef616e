#include "analysis/kernels/replay_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/timeline/sensors/error_model.h"
#include "base/text.h"

namespace jouleprof::analysis {
namespace {

constexpr double kMostHeld = 0.03;  // the same, of a slot: a power limit slows kernels
constexpr std::size_t kMostNamed = 10;

using ByClass = ActivityTable::Replay::ByClass;

// Launches of the variant of the re-run kernel by signature, wherever they ran.
ByClass in_place(const ActivityTable& table, const ActivityTable::Replay& replay) {
  ByClass out;
  for (const auto& share : table.shares) {
    if (share.trace != replay.trace) continue;
    if (share.variant != replay.variant_of(share.kernel_class)) continue;
    out[share.kernel_class].launches += share.launches;
    out[share.kernel_class].busy += share.busy;
  }
  return out;
}

// The relative difference in time from in place; 0: no such kernel ran in place.
double longer(const ByClass& in_program, const ByClass& alone_by_class) {
  double alone = 0;
  double expected = 0;
  for (const auto& [k, ran] : alone_by_class) {
    const auto found = in_program.find(k);
    if (found == in_program.end() || found->second.launches == 0) continue;
    alone += ran.busy;
    expected += static_cast<double>(ran.launches) * found->second.busy /
                static_cast<double>(found->second.launches);
  }
  return expected > 0 ? alone / expected - 1 : 0;
}

// The kernel of a re-run in which any ran: the one with most busy time.
std::uint32_t kernel_of(const ActivityTable::Replay& replay) {
  return std::max_element(
             replay.ran.begin(), replay.ran.end(),
             [](const auto& a, const auto& b) { return a.second.busy < b.second.busy; })
      ->first;
}

// Re-runs of several sizes of one kernel in the proportions of the program, in which they also ran
// where a loop does not know them: where the program's launches are not separated by size, only
// together do they take the time in place.
ByClass all_sizes(const ActivityTable& table, const ActivityTable::Replay& replay) {
  if (replay.ran.empty()) return replay.ran;
  const std::uint32_t kernel = kernel_of(replay);
  ActivityTable::Replay::Ran sum;
  for (const auto& other : table.replays) {
    if (other.trace != replay.trace || other.ran.empty()) continue;
    if (kernel_of(other) != kernel || other.variant_of(kernel) != replay.variant_of(kernel))
      continue;
    const auto& ran = other.ran.at(kernel);
    const double weight =
        replay.of_program == 0 || ran.launches == 0
            ? 1
            : static_cast<double>(other.of_program) / static_cast<double>(ran.launches);
    sum.launches += replay.of_program == 0 ? ran.launches : other.of_program;
    sum.busy += weight * ran.busy;
  }
  return {{kernel, sum}};
}

}  // namespace

ReplayCheck drop_deviating_replays(const ActivityTable& table, const SmClocks& clocks,
                                   std::vector<ObservedPower>& observed) {
  const auto drop = [&](double begin, double end) {
    std::erase_if(observed, [&](const ObservedPower& s) { return s.end > begin && s.begin < end; });
  };
  if (table.replays.empty()) return {};
  const bool differ = clocks.replays_differ();
  std::size_t elsewhere = 0;  // at other clocks
  ReplayCheck out;
  std::vector<std::string> dropped;
  for (const auto& replay : table.replays) {
    const bool known = !replay.ran.empty() && replay.clock > 0 && clocks.program_hertz();
    const double clock = known ? replay.clock / *clocks.program_hertz() : 1;
    if ((differ && !known) || std::abs(std::log(clock)) > kFarClock) {
      ++elsewhere;
      drop(replay.begin, replay.end);
      continue;
    }
    const auto in_program = in_place(table, replay);
    const ByClass alone = all_sizes(table, replay);
    const double more = without_clock(1 + longer(in_program, alone), clock) - 1;
    if (std::abs(more) <= kErrors.rerun_kernel_apart) {
      if (!replay.ran.empty()) {
        const std::uint32_t kernel = kernel_of(replay);
        const std::uint32_t variant = replay.variant_of(kernel);
        const double middle = more < 0 ? 1 + more / 2 : 1;
        out.loops.push_back({kernel, variant, replay.begin, replay.end,
                             std::pow(clock, kErrors.power_of_clock) / middle});
        const double doubt =
            std::hypot(more < 0 ? more / 2 / middle : more,
                       kErrors.power_of_clock_off * std::log(clock), clocks.doubt_of(kernel));
        if (doubt > kErrors.rerun_noted) out.deviating.push_back({kernel, variant, doubt});
        if (std::abs(more) > kErrors.rerun_apart) continue;
      }
      // Other sizes take other times: a slot is held against the loop that it is of.
      const double loop = 1 + longer(in_program, replay.ran);
      for (std::size_t i = 0; i < replay.slots.size(); ++i) {
        const double slot = 1 + longer(in_program, replay.slots[i]);
        if (slot / loop * (1 + more) - 1 > kMostHeld) {
          const double begin = replay.begin + static_cast<double>(i) * replay.kSlot;
          drop(begin, begin + replay.kSlot);
        }
      }
      continue;
    }
    const auto& name = table.classes[kernel_of(replay)].key.name;
    dropped.push_back(fmt::format("{} ({:+.0f} %)", demangle(name), 100 * more));
    drop(replay.begin, replay.end);
  }
  if (elsewhere > 0) {
    const bool all = elsewhere == table.replays.size();
    out.warnings.push_back(fmt::format("{}isolated re-runs not used: {}",
                                       all ? "" : fmt::format("{} ", elsewhere),
                                       clocks.why_replays_differ()));
  }
  if (dropped.empty()) return out;
  const std::size_t more = dropped.size() > kMostNamed ? dropped.size() - kMostNamed : 0;
  dropped.resize(std::min(dropped.size(), kMostNamed));
  out.warnings.push_back(
      fmt::format("isolated re-runs not used, because their kernels took another time than in the "
                  "program: {}{}",
                  fmt::join(dropped, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
  return out;
}

}  // namespace jouleprof::analysis
