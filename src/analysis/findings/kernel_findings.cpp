// Findings from the energies of kernels and layers.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/findings/findings.h"
#include "model/activity/collective.h"

namespace jouleprof::analysis {
namespace {

using model::ActivityKind;
using model::ActivityProfile;
using model::ActivityRow;

constexpr double kManyTimes = 3;  // the median energy per multiply-accumulate
constexpr std::size_t kFewestLayers = 5;

struct Sum {
  Energy energy;
  Energy error;
  std::uint64_t launches = 0;

  // Errors of rows are added linearly: they share the regression.
  void add(const ActivityRow& row) {
    energy += row.energy->energy;
    error += row.energy->error;
    launches += row.launches;
  }
};

template <class Which>
Sum sum_of(const ActivityProfile& activity, Which which) {
  Sum sum;
  for (const auto& row : activity.by_kernel) {
    if (row.energy && row.kernel && which(*row.kernel)) sum.add(row);
  }
  return sum;
}

double share_of(const ActivityProfile& activity, Energy energy) {
  const Energy all = activity.measured.energy;
  return all > Energy{} ? energy.joules() / all.joules() : 0.0;
}

void add(const ActivityProfile& activity, const char* code, const Sum& sum, std::string text,
         const char* next_step, std::vector<model::Finding>& out) {
  const double share = share_of(activity, sum.energy);
  if (share < kLeastFindingShare || sum.energy <= sum.error) return;
  out.push_back({code, activity.domain.device, std::move(text), next_step, sum.energy, sum.error,
                 share, false});
}

// Energy per multiply-accumulate of leaf layers that were resolved.
void add_layer(const ActivityProfile& activity, std::vector<model::Finding>& out) {
  struct Cost {
    const ActivityRow* row;
    double joules;  // of one multiply-accumulate
  };
  std::vector<Cost> costs;
  for (const auto& row : activity.by_layer) {
    if (!row.energy || !row.macs || *row.macs <= 0 || row.count == 0 || !row.resolvable) continue;
    const double macs = *row.macs * static_cast<double>(row.count);
    costs.push_back({&row, row.energy->energy.joules() / macs});
  }
  if (costs.size() < kFewestLayers) return;
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end(),
                   [](const Cost& a, const Cost& b) { return a.joules < b.joules; });
  const double median = middle->joules;
  for (const Cost& cost : costs) {
    const auto& m = *cost.row->energy;
    const double times = cost.joules / median;
    const double least = times * m.low().joules() / std::max(m.energy.joules(), 1e-12);
    if (median <= 0 || least < kManyTimes) continue;
    add(activity, "layer", {m.energy, m.error, cost.row->launches},
        fmt::format("layer {} takes {:.1f} times the energy per multiply-accumulate of the median "
                    "layer",
                    cost.row->name, times),
        "Look at its shapes and data type: small or unaligned sizes and 32-bit floats keep tensor "
        "cores idle.",
        out);
  }
}

// Of ranks on this GPU.
void add_waiting_ranks(const ActivityProfile& activity, const model::CollectiveProfile& collectives,
                       std::vector<model::Finding>& out) {
  Sum waiting;
  Sum rest;
  Duration waited{};
  for (const auto& rank : collectives.ranks) {
    if (rank.domain != activity.domain.id || !rank.waiting_energy) continue;
    waiting.launches += rank.matched;
    waiting.energy += rank.waiting_energy->energy;
    waiting.error += rank.waiting_energy->error;
    waited += rank.waiting;
    rest.launches += rank.calls;
    for (const auto* part : {&*rank.transfer_energy, &*rank.unsplit_energy}) {
      rest.energy += part->energy;
      rest.error += part->error;
    }
  }
  const auto* straggler = collectives.straggler();
  add(activity, "collective_waiting", waiting,
      fmt::format("{} collectives waited {:.1f} s for slower ranks{}", waiting.launches,
                  seconds(waited),
                  straggler != nullptr && straggler->rank.global
                      ? fmt::format(", longest for rank {}", *straggler->rank.global)
                      : ""),
      "Balance the ranks' batches and data loading; `report --by collective` has the times.", out);
  add(activity, "collectives", rest, fmt::format("{} collectives transferred data", rest.launches),
      "Overlap communication with computation, and use larger buckets.", out);
}

void add_collectives(const ActivityProfile& activity, const model::CollectiveProfile* collectives,
                     std::vector<model::Finding>& out) {
  if (collectives != nullptr && collectives->has_split()) {
    return add_waiting_ranks(activity, *collectives, out);
  }
  const Sum sum = sum_of(activity, [](const auto& k) {
    return k.kind == ActivityKind::kKernel && !model::collective_kind(k.name).empty();
  });
  add(activity, "collectives", sum,
      fmt::format("{} kernels of collectives communicated, or waited for the slowest rank",
                  sum.launches),
      "Compare the ranks with `report --by layer`: balance their batches, and overlap "
      "communication with computation.",
      out);
}

}  // namespace

void add_kernel_findings(const ActivityProfile& activity,
                         const model::CollectiveProfile* collectives,
                         std::vector<model::Finding>& out) {
  const Sum copies =
      sum_of(activity, [](const auto& k) { return k.kind == ActivityKind::kMemcpy; });
  add(activity, "copies", copies,
      fmt::format("{} memory copies took energy above idle", copies.launches),
      "Keep tensors on the GPU; copy from pinned memory, in larger pieces, while kernels run.",
      out);
  add_collectives(activity, collectives, out);
  add_layer(activity, out);
}

}  // namespace jouleprof::analysis
