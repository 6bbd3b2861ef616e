// Whose joules: the part of a device's energy that is the command's (docs/glossary.md).
#pragma once

#include <optional>
#include <string>

#include "analysis/levels/board_levels.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Why the recording divides no energy between a command and others; empty where it does, or where
// all of its energy is the command's.
std::string no_command_reason(const model::Recording& recording);

// Of a domain that was divided as far as it can be; `processes`: the sum of the command's shares.
// Absent without an energy, or with a no_command_reason().
std::optional<model::CommandEnergy> command_energy(const model::Recording& recording,
                                                   const model::DomainProfile& domain,
                                                   Energy processes, const BoardLevels& levels);

// Sets energy, interval and provenance of a part of `whole` by `own.processes` and `own.rest`. The
// interval has the sensor's error and that of the division from `others`, and `also` of other
// kinds.
void set_interval(model::CommandEnergy& own, const model::Measurement& whole, Energy others,
                  Energy also);

}  // namespace jouleprof::analysis
