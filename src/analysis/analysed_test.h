// One result of a Run, for tests that need no other.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "analysis/run.h"

namespace jouleprof::analysis {

inline Result<model::Profile> profile_of(const model::Recording& recording, const Part& part = {}) {
  return Run(recording).profile(part);
}

inline Result<std::vector<model::ActivityProfile>> activity_of(const model::Recording& recording,
                                                               const Part& part = {}) {
  return Run(recording).activity(part);
}

// The profile of the only device with activity.
inline model::ActivityProfile only_activity(const model::Recording& recording,
                                            const Part& part = {}) {
  const auto profiles = activity_of(recording, part);
  EXPECT_TRUE(profiles) << profiles.error().message;
  EXPECT_EQ(profiles->size(), 1u);
  return profiles && !profiles->empty() ? profiles->front() : model::ActivityProfile{};
}

inline void expect_conserved(const model::ActivityProfile& p) {
  EXPECT_EQ(p.idle + p.kernels + p.gaps + p.unattributed, p.measured.energy);
  for (const auto* rows : {&p.by_kernel, &p.by_layer, &p.by_phase}) {
    Energy sum;
    for (const auto& row : *rows) {
      if (row.energy) sum += row.energy->energy;
    }
    EXPECT_EQ(sum, p.kernels);
  }
}

}  // namespace jouleprof::analysis
