// What the recordings of the runs of a sweep say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/run.h"
#include "base/clock.h"
#include "base/result.h"
#include "model/sweep.h"

namespace jouleprof::session {

// A number that the command printed, and when.
struct PrintedNumber {
  HostTime at{};
  double value = 0;
};

// What a benchmark said that it did.
struct BenchWork {
  std::string window;  // that has all of its measured iterations
  std::uint64_t iterations = 0;
};

// What a run reported of its work, besides its recording.
struct WorkReport {
  // The numbers that the work of a plan with `throughput` printed. With at least three numbers the
  // first is the end of the warm-up, and time and energy are those from there to the last; else
  // they are those of the whole run.
  std::vector<PrintedNumber> printed;
  std::optional<BenchWork> bench;          // of a plan with `bench`
  std::vector<PrintedNumber> losses = {};  // of its training; not a number where it printed "nan"
};

// Fills the run's measured members. Where the work cannot be measured (a GPU's energy is absent,
// there is no window of the plan's name, no number was printed), `unranked` says why. `part`: only
// the work within it counts; absent: all of it.
void measure_run(const analysis::Run& run, const model::SweepPlan& plan, const WorkReport& report,
                 model::SweepRun& out, const std::optional<analysis::PartSpan>& part = {});

// Says in `unranked` what the settings that were read back mean: a value that the driver changed, a
// limit that another limiter lowers, one that reverted during the run, heat.
void judge_setting(const model::SweepPlan& plan, model::SweepRun& run);

// --- The runs of a sweep that changes nothing: the work, grouped by the setting that was found ---

// One run for each interval, with the units of work that lie in it. Where the command itself is the
// work, it is one run, and unavailable where the setting changed meanwhile. `first`: the number of
// the first run. Errors: unavailable where a GPU does not report its limit, where the limits of the
// GPUs are never the same, and where no unit of work lies in an interval.
Result<std::vector<model::SweepRun>> observe_runs(const analysis::Run& run,
                                                  const model::SweepPlan& plan,
                                                  const WorkReport& report, unsigned first);

}  // namespace jouleprof::session
