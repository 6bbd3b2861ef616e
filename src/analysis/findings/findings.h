// What a person should look at first in a profile.
//
// Each rule is silent where its energy is below 5 % of the device's energy or within its own error.
// Thresholds without a source are this project's choice.
//  - waiting: a context held the GPU and no launch ran: held power (rest included) times that time.
//    Without a trace, the time is the share of readings of utilisation that are zero, with the
//    binomial interval (normal approximation).
//  - context_kept: the same after the program's last launch, for at least two seconds. A part of a
//    recording that ends before later launches has none.
//  - power_limit, thermal_limit: the share of readings in which the driver reported that reason
//    (NVML's clocks event reasons), times the active energy.
//  - copies: energy of memory copies.
//  - collective_waiting: energy of collectives' kernels while they waited for the slowest rank
//    (CollectiveProfile). collectives: of the rest of their time; of all where the ranks' calls
//    were not matched.
//  - layer: a layer takes three times the energy per multiply-accumulate of the median layer, also
//    at the lower end of its interval.
//  - processors: the CPU packages take more than 30 % of the machine's energy.
#pragma once

#include <span>
#include <vector>

#include "analysis/levels/board_levels.h"
#include "analysis/timeline/recording_timelines.h"
#include "model/activity/activity_profile.h"
#include "model/activity/collective.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// The most expensive first, at most five. `levels`: by domain, in the profile's order;
// `program_end`: of all of the work, of which the profile may be a part.
std::vector<model::Finding> findings_of(const model::Recording& recording,
                                        const model::Profile& profile,
                                        std::span<const model::ActivityProfile> activity,
                                        std::span<const BoardLevels> levels, HostTime program_end,
                                        const model::CollectiveProfile* collectives = nullptr);

}  // namespace jouleprof::analysis
