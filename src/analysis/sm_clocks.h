// The SM clocks that a GPU worked at, and what follows for its power.
#pragma once

#include <optional>
#include <string>

#include "analysis/activity_table.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// How much the power of all kernels swayed with the clocks while the program ran: one sigma, of it.
// A kernel's power goes with more than the square of the clock. From readings of the clock at which
// something ran; where there are fewer than five, guessed from how long clocks were held down.
double power_sway(const model::Recording& recording, const model::Domain& domain,
                  const ActivityTable& table);

// Why layers that were run alone on `domain` tell nothing of the program, if so: other clocks.
// Where either's are not known, a program whose clocks were held down for long is taken to have had
// others.
std::optional<std::string> other_clocks(const model::Recording& recording,
                                        const model::Domain& domain, const ActivityTable& table);

}  // namespace jouleprof::analysis
