// Work that was measured at several settings of a GPU: the points of a power-limit or clock sweep,
// and how uncertain they are.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "jouleprof/units.h"
#include "model/recording.h"
#include "model/sweep.h"

namespace jouleprof::analysis {

// One measurement of the work at one setting.
struct SweepSample {
  double seconds = 0;
  double joules = 0;
  std::optional<unsigned> block = {};  // of runs that were made in blocks of all settings
};

struct SweepPoint {
  double setting = 0;  // in the knob's unit
  std::vector<SweepSample> samples;

  double mean_seconds() const;
  double mean_joules() const;
  double mean_watts() const { return mean_joules() / mean_seconds(); }
};

// A run that is named: a window of another tool's sweep has no number, but its name.
struct NamedRun {
  double setting = 0;
  std::string name;    // "run 7, block 2"
  std::string reason;  // why it is left out, or how far it is from the others
};

// A setting that is named and not ranked.
struct UnrankedSetting {
  double setting = 0;
  std::string reason;
  bool never_reached = false;  // a limit above all that the work draws: the same as no limit
};

// A sweep has the same work at all of its points.
struct Sweep {
  std::string knob;  // "power_limit_watts", "sm_clock_megahertz", ...
  std::vector<model::ImportedWindow::Label> labels;  // of this work, besides the setting
  std::vector<SweepPoint> points;                    // highest setting first; one each
  std::vector<NamedRun> left_out = {};               // of settings that are ranked
  std::vector<NamedRun> outliers = {};  // of our own sweep: they count, but are far from the others
  std::vector<UnrankedSetting> unranked = {};  // of our own sweep, highest first
  std::optional<double> found = {};            // the setting before our own sweep
  std::size_t gpus = 1;                        // whose energies are summed
  bool simulated = false;                      // by simulated devices, in part at least
  std::string_view next_run = {};              // what measures more of our own sweep
};

// The ranked runs of our own sweep, without limits that the work never reached: the reference
// stands for all of them. Runs that were only observed are in no block: their order is not random.
Sweep sweep_of(const model::SweepPlan& plan, const std::vector<model::SweepRun>& runs);

// The sweeps in a recording's imported windows: one for each set of labels besides the knob, in the
// order in which they first appear. A window's energy is the sum over the sweep's GPUs: a window
// that lacks one of them is left out. Windows without a knob belong to none.
std::vector<Sweep> sweeps_of(const model::Recording& recording);

struct Interval {
  double low = 0;
  double high = 0;
};

// The two-way layout log y = setting + block + noise, by least squares, for time and energy
// together (Montgomery, Design and Analysis of Experiments, ch. 4). Drift from block to block, such
// as a warming board, cancels also where a setting is missing in some blocks. The noise has one
// covariance for all settings, so that two samples of each are enough to know it. Where samples
// have no block, or blocks leave too few degrees of freedom, the layout has settings alone.
class BlockModel {
 public:
  explicit BlockModel(const Sweep& sweep);

  // Each point's mean, in an average block.
  const std::vector<SweepSample>& means() const { return means_; }
  // False where no setting was measured twice: there are means alone.
  bool has_errors() const { return degrees_ > 0; }
  // Means that the data allow as well: a draw of the multivariate t distribution of the estimates.
  std::vector<SweepSample> draw(std::mt19937_64& random) const;

 private:
  bool fit(const Sweep& sweep, bool in_blocks, std::size_t fewest_degrees);

  std::size_t degrees_ = 0;
  std::vector<SweepSample> means_;            // in seconds and joules
  std::vector<std::vector<double>> factor_;   // lower Cholesky factor of the settings' covariance
  double time_ = 0, slope_ = 0, energy_ = 0;  // and of the noise's: [time 0; slope energy]
};

// The central interval of values that were computed from draws, at a coverage such as 0.95.
Interval interval_of(std::vector<double> values, double coverage = 0.95);

}  // namespace jouleprof::analysis
