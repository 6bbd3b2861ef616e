// Where inside a device the energy went, as people and programs read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/activity/activity_profile.h"
#include "report/cells.h"

namespace jouleprof::report {

enum class ActivityBy { kKernel, kLayer, kRange, kPhase };
enum class ActivitySort { kEnergy, kTime, kCount, kPower };

// What the rows of a table are.
struct ActivityDimension {
  ActivityBy by;
  std::string_view word;  // of --by, the keys of the page's data and column `by`
  std::vector<model::ActivityRow> model::ActivityProfile::*rows;
  bool of_layers;             // recorded by --layers alone, too
  std::string_view why_none;  // why a trace may have no such row; empty: nothing is known
};
// In the order of ActivityBy.
std::span<const ActivityDimension> activity_dimensions();
const ActivityDimension& dimension(ActivityBy by);

std::optional<ActivityBy> parse_activity_by(std::string_view word);
std::optional<ActivitySort> parse_activity_sort(std::string_view word);
std::vector<std::string> activity_sort_words();
std::string_view to_string(ActivityBy by);

struct ActivityOptions {
  ActivityBy by = ActivityBy::kKernel;
  // Greatest first; kernels by energy where nothing is said. In a tree the rows below one row are
  // sorted among themselves, and stay in their own order where nothing is said.
  std::optional<ActivitySort> sort;
  std::optional<std::size_t> top;    // of each device, so many rows; none: all
  std::optional<std::size_t> depth;  // of a tree, so many levels; none: all
  bool fold = false;                 // layers that differ only in numbers are one row (fold_layers)
  bool fold_many = false;            // where twelve or more of them would be one
  bool imported = false;  // from another tool's files: the program is not ours to run again
};

// A section a device: what was measured, a table, how it all adds up, and warnings. A device
// without a row is left out where another has some.
std::string activity_to_text(const std::vector<model::ActivityProfile>& profiles,
                             const ActivityOptions& options, const TextOptions& text = {});

// The first rows by energy, for the end of a run; without a headline. Empty when there are none.
std::string activity_to_brief_text(const std::vector<model::ActivityProfile>& profiles,
                                   std::size_t rows, const TextOptions& text = {});

// One row a kernel, layer, range or phase, with a header. What is absent is an empty field.
std::string activity_to_csv(const std::vector<model::ActivityProfile>& profiles,
                            const ActivityOptions& options);

// The documented JSON object (docs/json.md).
std::string activity_to_json(const std::vector<model::ActivityProfile>& profiles,
                             const ActivityOptions& options);

// --- Which rows of an ActivityProfile are shown, in which order; private to this folder ---

struct ActivityLine {
  const model::ActivityRow* row = nullptr;
  std::size_t index = 0;  // in the profile's list
  std::size_t depth = 0;  // rows above it
  // With all rows below it, as its energy is.
  Duration busy = {};
  std::uint64_t launches = 0;
};

struct ActivityView {
  std::vector<ActivityLine> lines;
  std::size_t left_out = 0;  // by `top` and `depth`
  bool tree = false;         // some row is within another
};

const std::vector<model::ActivityRow>& rows_of(const model::ActivityProfile& profile,
                                               ActivityBy by);

// A row stands below the one that holds it. `top` keeps the rows with the most energy; those that
// hold them come on top of the number.
ActivityView view_of(const model::ActivityProfile& profile, const ActivityOptions& options);

// With all below it where that is known.
const std::optional<model::Measurement>& whole_of(const model::ActivityRow& row);
// Above idle, while it ran.
std::optional<Power> power_of(const model::ActivityRow& row);
std::optional<double> joules_per_launch(const model::ActivityRow& row);
// One call of a layer, with what it calls. Absent where calls were not counted, or without energy.
std::optional<double> joules_per_call(const model::ActivityRow& row);
// The share that `part` is of the measured energy.
std::optional<double> share_of(const model::ActivityProfile& profile,
                               const std::optional<model::Measurement>& part);

// --- Energies by call stack: what flame graphs draw ---

// One path of a flame graph.
struct EnergyStack {
  std::vector<std::string> frames;  // outermost first: device, phase, layers, kernel
  Energy energy;                    // of this path itself; negative only for unattributed energy
  Duration time{};                  // on the device
};

// Their energies sum to the measured energy of the device, to the microjoule: idle energy, energy
// between launches and unattributed energy are paths of their own. The names of kernels and layers
// that are not resolvable say so, and that of the device where it is estimated or simulated.
std::vector<EnergyStack> energy_stacks(const model::ActivityProfile& profile);

// --- Layers that differ only in numbers, such as those of a transformer's blocks, as one row ---

// "model.layers.11.mlp.0" -> "model.layers.*.mlp.*": parts that are numbers become stars.
std::string folded_name(std::string_view name);

// The profile with rows of by_layer that have one folded name, type, shape and number of
// parameters, and whose parents are one row, as one row in the place of the first. It has a star
// for each number in which their names differ. Counts, times and energies are sums; errors add
// linearly, as if all had the same sign. `detail` begins with their number, the mean energy and the
// standard deviation among them. A sum without every part's energy, or with a part that is not
// resolvable, is not resolvable.
model::ActivityProfile fold_layers(const model::ActivityProfile& profile);

}  // namespace jouleprof::report
