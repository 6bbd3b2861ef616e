// Layers that differ only in numbers, such as those of a transformer's blocks, as one row.
#pragma once

#include <string>
#include <string_view>

#include "model/activity/activity_profile.h"

namespace jouleprof::report {

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
