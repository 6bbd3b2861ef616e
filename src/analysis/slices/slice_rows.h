// The rows of one list of an ActivityProfile, slice by slice.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "analysis/kernels/kernel_model.h"
#include "model/activity/activity_profile.h"
#include "model/activity/activity_slices.h"

namespace jouleprof::analysis {

class SliceRows {
 public:
  // The `most` rows with the highest energies. `rows` outlives this.
  SliceRows(const std::vector<model::ActivityRow>& rows, std::size_t most);

  std::size_t size() const { return order_.size(); }

  // To the row, and to all that hold it. kNone: to none.
  void add(std::uint32_t row, const KernelModel::Use& use, double joules);

  // Ends a slice. `gain`: the sensor's relative error at 95 %.
  void finish(const KernelModel& model, double gain, std::vector<model::ActivitySlices::Row>& out);

 private:
  // What ran in the current slice, by signature and variant.
  using Uses = std::map<std::pair<std::uint32_t, std::uint32_t>, KernelModel::Use>;

  const std::vector<model::ActivityRow>& rows_;
  std::vector<std::uint32_t> order_;  // by place: the row
  std::vector<std::uint32_t> place_;  // by row; kNone: it has none
  std::vector<Uses> uses_;            // by place
  std::vector<double> joules_;        // by place
};

}  // namespace jouleprof::analysis
