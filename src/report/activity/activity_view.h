// Which rows of an ActivityProfile are shown, in which order. Private to this folder.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "model/activity/activity_profile.h"
#include "report/activity/activity.h"

namespace jouleprof::report {

struct ActivityLine {
  const model::ActivityRow* row = nullptr;
  std::size_t index = 0;  // in the profile's list
  std::size_t depth = 0;  // rows above it
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
// Of the measured energy.
std::optional<double> share_of(const model::ActivityProfile& profile,
                               const std::optional<model::Measurement>& part);

}  // namespace jouleprof::report
