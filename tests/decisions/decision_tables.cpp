// The tables of docs/validation.md about recommend and compare, on simulated sweeps and runs:
//   decision_tables [SWEEPS] [COMPARISONS] [DRAWS]      (each a row; seeded)
// Exits with 1 where a row breaks what the page promises.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string>

#include "tests/decisions/pairs.h"
#include "tests/decisions/sweeps.h"

namespace {

using namespace jouleprof::decisions;  // NOLINT

bool failed = false;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  failed = true;
  fmt::print(stderr, "broken: {}\n", what);
}

double percent(double part, int of) { return 100 * part / of; }

// Beyond what chance does to a rate of `ratio` in so many trials, once in some 10,000.
double most(double ratio, int trials) {
  return ratio * trials + 4 * std::sqrt(ratio * (1 - ratio) * trials);
}

std::string joined(const std::vector<std::string>& cells) {
  return fmt::format("{}", fmt::join(cells, ", "));
}

void print_sweeps(const BoardClass& kind, int repeats, bool in_blocks, int sweeps, unsigned draws) {
  std::vector<std::string> ours, least, slow, slow_least;
  for (const double noise : {0.01, 0.03, 0.05}) {
    SweepOutcome outcome;
    std::mt19937_64 random(static_cast<std::uint64_t>(repeats * 1000 + 1e5 * noise) + in_blocks);
    for (int i = 0; i < sweeps; ++i) {
      const Board board = board_of(kind, random);
      const SweepPlan plan{repeats, noise, in_blocks && i % 2 == 1 ? 0.06 : 0, in_blocks};
      add(outcome, board, sweep_of(board, plan, random), draws);
    }
    const auto regret = [&](const Regrets& of) {
      return fmt::format("{:.2f} ({:.1f})", percent(of.sum, sweeps), 100 * of.worst);
    };
    ours.push_back(regret(outcome.ours));
    least.push_back(regret(outcome.of_argmin));
    slow.push_back(fmt::format("{:.1f}", percent(outcome.too_slow, sweeps)));
    slow_least.push_back(fmt::format("{:.1f}", percent(outcome.argmin_too_slow, sweeps)));
    const std::string row = fmt::format("{}, {} repeats, {}", kind.name, repeats, noise);
    expect(outcome.ours.sum <= outcome.of_argmin.sum, row + ": regret above the least mean's");
    expect(outcome.less_likely == 0, row + ": another setting is more likely the best");
    if (repeats < 2) continue;
    expect(outcome.worse <= most(0.05, sweeps), row + ": regret beyond the one stated");
    expect(outcome.too_slow <= most(0.05, sweeps), row + ": slower than --max-slowdown");
  }
  fmt::print("| {} | {}{} | {} | {} | {} | {} |\n", kind.name, repeats,
             in_blocks ? "" : ", no blocks", joined(ours), joined(least), joined(slow),
             joined(slow_least));
}

void print_pairs(const Laboratory& lab, unsigned pairs, int comparisons) {
  std::mt19937_64 random(pairs);
  Verdicts same, worse;
  for (int i = 0; i < comparisons; ++i) {
    add(same, lab, pairs, 0, random);
    add(worse, lab, pairs, 0.03, random);
  }
  fmt::print("| {} | {} |", lab.name, pairs);
  for (std::size_t i = 0; i < 3; ++i) {
    const int wrong = same.lower[i] + same.higher[i];
    fmt::print(" {:.1f} % |", percent(wrong, comparisons));
    expect(wrong <= most(0.06, comparisons), lab.name + ": false verdicts");
  }
  fmt::print(" {:.1f} % | {:.1f} % |\n", percent(worse.higher[0], comparisons),
             percent(worse.higher[2], comparisons));
}

}  // namespace

int main(int count, char** words) {
  const auto number = [&](int at, int otherwise) {
    return count > at ? std::atoi(words[at]) : otherwise;
  };
  const int sweeps = number(1, 1000);
  const int comparisons = number(2, 4000);
  const auto draws = static_cast<unsigned>(number(3, 1000));
  fmt::print(
      "| energy | repeats | regret | regret of the least mean | too slow | too slow, least "
      "mean |\n|---|---|---|---|---|---|\n");
  for (const auto& kind : board_classes()) {
    for (const int repeats : {1, 2, 3, 4}) {
      print_sweeps(kind, repeats, true, sweeps, draws);
      if (repeats == 2) print_sweeps(kind, repeats, false, sweeps, draws);
    }
  }
  fmt::print(
      "\n| runs | pairs | energy | time | power | energy +3 % found | power +3 % found |\n"
      "|---|---|---|---|---|---|---|\n");
  for (const auto& lab : laboratories()) {
    for (const unsigned pairs : {2U, 3U, 5U, 8U, 10U}) print_pairs(lab, pairs, comparisons);
  }
  return failed ? 1 : 0;
}
