// Where inside a device the energy went, as people and programs read it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/activity/activity_profile.h"
#include "report/render.h"

namespace jouleprof::report {

enum class ActivityBy { kKernel, kLayer, kRange, kPhase };
enum class ActivitySort { kEnergy, kTime, kCount, kPower };

std::optional<ActivityBy> parse_activity_by(std::string_view word);      // kernel, layer, ...
std::optional<ActivitySort> parse_activity_sort(std::string_view word);  // energy, time, ...
std::string_view to_string(ActivityBy by);

struct ActivityOptions {
  ActivityBy by = ActivityBy::kKernel;
  // Greatest first; kernels by energy where nothing is said. In a tree the rows below one row are
  // sorted among themselves, and stay in their own order where nothing is said.
  std::optional<ActivitySort> sort;
  std::optional<std::size_t> top;    // of each device, so many rows; none: all
  std::optional<std::size_t> depth;  // of a tree, so many levels; none: all
  bool fold = false;  // layers that differ only in numbers are one row (fold_layers.h)
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

}  // namespace jouleprof::report
