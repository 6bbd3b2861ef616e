#include "analysis/slices/slice_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace jouleprof::analysis {

using model::kNone;

SliceRows::SliceRows(const std::vector<model::ActivityRow>& rows, std::size_t most) : rows_(rows) {
  order_.resize(rows.size());
  std::iota(order_.begin(), order_.end(), 0U);
  std::erase_if(order_, [&](std::uint32_t i) { return !rows[i].inclusive; });
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return rows[a].inclusive->energy > rows[b].inclusive->energy;
  });
  if (order_.size() > most) order_.resize(most);
  place_.assign(rows.size(), kNone);
  for (std::uint32_t i = 0; i < order_.size(); ++i) place_[order_[i]] = i;
  uses_.resize(order_.size());
  joules_.resize(order_.size());
}

void SliceRows::add(std::uint32_t row, const KernelModel::Use& use, double joules) {
  for (; row != kNone; row = rows_[row].parent) {
    const std::uint32_t at = place_[row];
    if (at == kNone) continue;
    auto& sum = uses_[at][{use.kernel_class, use.variant}];
    sum.kernel_class = use.kernel_class;
    sum.variant = use.variant;
    sum.busy += use.busy;
    sum.overlapped += use.overlapped;
    sum.idle_between += use.idle_between;
    joules_[at] += joules;
  }
}

void SliceRows::finish(const KernelModel& model, double gain,
                       std::vector<model::ActivitySlices::Row>& out) {
  out.resize(order_.size());
  std::vector<KernelModel::Use> uses;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    uses.clear();
    for (const auto& [key, use] : uses_[i]) uses.push_back(use);
    const double wide = uses.empty() ? 0.0 : 1.96 * model.energy_of(uses).sigma;
    out[i].row = order_[i];
    out[i].energies.push_back(Energy::joules(joules_[i]));
    out[i].errors.push_back(Energy::joules(std::hypot(wide, gain * joules_[i])));
    uses_[i].clear();
    joules_[i] = 0;
  }
}

}  // namespace jouleprof::analysis
