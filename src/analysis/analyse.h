// From a recording to a profile.
#pragma once

#include <optional>
#include <vector>

#include "base/result.h"
#include "model/power_step.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::analysis {

struct Options {
  // The part to analyse, as time since the work began; absent ends mean the work's own.
  std::optional<Duration> from;
  std::optional<Duration> to;
};

// The energy of every domain and process over the span. A domain whose energy can't be had is in
// the result with its reason. Errors: invalid_argument when the span is empty or lies outside what
// was recorded, or there is no time to choose by; corrupt when the recording has neither a time nor
// windows. Windows that another tool measured may be all that a profile holds (has_span()).
Result<model::Profile> analyse(const model::Recording& recording, const Options& options = {});

// The mean power of one domain over each step, for drawing and export: over all that was recorded,
// idle before and after included, or over the part that `options` name. Steps for which there is no
// reading are left out; empty when the domain has none at all or the step is not positive.
std::vector<model::PowerStep> power_curve(const model::Recording& recording, model::DomainId domain,
                                          Duration step, const Options& options = {});

}  // namespace jouleprof::analysis
