// Prints the table of coverage in docs/validation.md: rows of sensors, loads and faults, each in
// seeded runs of a model of sensors. --runs N of each row; --only TEXT: rows whose name has it;
// --outside: also each run whose truth is not inside its interval.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/coverage/coverage.h"

int main(int argc, char** argv) {
  using namespace jouleprof::coverage;
  int runs = 200;
  bool list = false;
  const char* only = "";
  for (int i = 1; i < argc; ++i) {
    const bool has_value = i + 1 < argc;
    if (std::strcmp(argv[i], "--outside") == 0) {
      list = true;
    } else if (std::strcmp(argv[i], "--runs") == 0 && has_value) {
      runs = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--only") == 0 && has_value) {
      only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: %s [--runs N] [--only TEXT] [--outside]\n", argv[0]);
      return 2;
    }
  }
  std::printf(
      "| sensors, load or fault | runs | inside | absent | outside | median half-width |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const Row& row : rows()) {
    if (row.name.find(only) == std::string::npos) continue;
    const Outcome o = outcome_of(row, 1, runs, [&](unsigned seed, const Run& run, const Figure& f) {
      if (!list) return;
      std::printf("  seed %u, %.2f s%s: %.2f ± %.2f, true %.2f (%+.1f %%, ±%.1f %%)\n", seed,
                  run.end - run.begin, run.text.c_str(), f.value, f.half, f.truth,
                  100 * (f.value / f.truth - 1), 100 * f.half / f.truth);
    });
    std::printf("| %s | %d | %d | %d | %d | %.2f %% |\n", row.name.c_str(), o.runs, o.inside,
                o.absent, o.runs - o.inside - o.absent, 100 * o.half_width);
    std::fflush(stdout);
  }
}
