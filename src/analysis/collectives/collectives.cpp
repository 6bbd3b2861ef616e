#include "analysis/collectives/collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/processes/apportion.h"
#include "model/activity/collective.h"

namespace jouleprof::analysis {
namespace {

using model::CollectiveTimes;
using model::Measurement;

bool is_collective(const model::ActivityRow& row) {
  return row.kernel && row.kernel->kind == model::ActivityKind::kKernel &&
         !model::collective_kind(row.kernel->name).empty();
}

// The calls of one kernel signature on one rank.
struct OfKernel {
  CollectiveTimes times;
  std::map<std::uint32_t, Duration> waited_for;  // by rank
};

class Builder {
 public:
  Builder(const model::Recording& recording, std::span<const model::ActivityProfile> activity,
          CollectiveCalls calls)
      : recording_(recording), activity_(activity), calls_(std::move(calls)) {}

  model::CollectiveProfile build() {
    for (const auto& rank : calls_.ranks) {
      const auto& trace = recording_.traces[rank.trace];
      auto& row = out_.ranks.emplace_back();
      row.trace = rank.trace;
      row.pid = trace.pid;
      row.rank = trace.rank;
      row.domain = rank.domain;
    }
    for (std::size_t r = 0; r < calls_.ranks.size(); ++r) add_rank(r);
    out_.end_spread = calls_.end_spread;
    out_.problems = std::move(calls_.problems);
    std::erase_if(out_.ranks, [](const auto& rank) { return rank.calls == 0 && rank.last == 0; });
    return std::move(out_);
  }

 private:
  // The kernels of a rank on its GPU, as that was attributed.
  struct Attributed {
    const model::ActivityProfile* profile = nullptr;
    const model::ActivityProcess* process = nullptr;
  };

  Attributed attributed(const CallingRank& rank) const {
    Attributed found;
    for (const auto& profile : activity_) {
      if (profile.domain.id != rank.domain) continue;
      for (const auto& process : profile.by_process) {
        if (process.trace == rank.trace) return {&profile, &process};
      }
      if (found.profile == nullptr) found.profile = &profile;
    }
    return found;
  }

  void add_rank(std::size_t r) {
    const CallingRank& rank = calls_.ranks[r];
    const auto& classes = recording_.traces[rank.trace].classes;
    const Attributed found = attributed(rank);
    for (const auto& d : recording_.domains) {
      if (d.id == rank.domain) out_.ranks[r].device = d.device;
    }
    // Several numbers of one trace may be one signature.
    std::map<std::pair<std::string_view, std::string>, OfKernel> kernels;
    for (const auto& call : rank.calls) {
      if (found.profile != nullptr &&
          (call.begin < found.profile->begin || call.begin >= found.profile->end)) {
        continue;
      }
      const auto& key = classes[call.kernel_class];
      OfKernel& sum = kernels[{model::collective_kind(key.name), key_of(key)}];
      add_call(call, static_cast<std::uint32_t>(r), sum);
    }
    for (auto& [key, kernel] : kernels) {
      if (found.process != nullptr) charge(found, key.second, kernel);
      add_kernel(r, std::string(key.first), kernel);
    }
  }

  static std::string key_of(const model::KernelClass& key) {
    std::string text = key.name;
    for (const auto& shape : {key.grid, key.block}) {
      for (const auto n : shape) text += ' ' + std::to_string(n);
    }
    return text;
  }

  void add_call(const CollectiveCall& call, std::uint32_t rank, OfKernel& sum) {
    auto& times = sum.times;
    ++times.calls;
    if (!call.match) {
      times.unsplit += call.end - call.begin;
      return;
    }
    ++times.matched;
    const Duration waited = call.waiting();
    times.waiting += waited;
    times.transfer += call.end - call.begin - waited;
    if (call.match->last == rank) {
      ++out_.ranks[rank].last;
    } else {
      sum.waited_for[call.match->last] += waited;
    }
  }

  // Divides the energy of a signature on a rank by time.
  void charge(const Attributed& found, const std::string& key, OfKernel& kernel) {
    const auto used = std::find_if(found.process->by_kernel.begin(), found.process->by_kernel.end(),
                                   [&](const auto& use) {
                                     if (use.kernel >= found.profile->by_kernel.size())
                                       return false;
                                     const auto& row = found.profile->by_kernel[use.kernel];
                                     return row.kernel && row.energy && key_of(*row.kernel) == key;
                                   });
    if (used == found.process->by_kernel.end()) return;
    const auto& row = found.profile->by_kernel[used->kernel];
    auto& times = kernel.times;
    const double timed = seconds(times.waiting + times.transfer + times.unsplit);
    // Launches within CUDA graphs have no times of their own.
    const double untimed = std::max(seconds(used->busy) - timed, 0.0);
    const double waiting = seconds(times.waiting);
    const double transfer = seconds(times.transfer);
    const double unsplit = seconds(times.unsplit) + untimed;
    if (used->launches > times.calls) times.calls = used->launches;
    if (timed == 0) return;
    const std::vector<double> weights{waiting, transfer, unsplit};
    const auto parts = apportion(used->energy, weights);
    if (parts.empty()) return;
    const double joules = row.energy->energy.joules();
    const auto relative = [&](Energy error) { return joules > 0 ? error.joules() / joules : 0.0; };
    const double per_second = used->energy.joules() / (waiting + transfer + unsplit);
    const double shift = per_second * seconds(calls_.end_spread.value_or(Duration{})) *
                         static_cast<double>(times.matched);
    const auto part = [&](Energy energy, double of_clocks) {
      Measurement m = *row.energy;
      m.provenance = model::combine(m.provenance, model::Provenance::kEstimated);
      m.method = "regression, divided by time";
      m.energy = energy;
      const double own = energy.joules();
      m.repeatability = Energy::joules(relative(row.energy->repeatability) * own + of_clocks);
      m.error = Energy::joules(relative(row.energy->error) * own + of_clocks);
      return m;
    };
    times.waiting_energy = part(parts[0], shift);
    times.transfer_energy = part(parts[1], shift);
    times.unsplit_energy = part(parts[2], 0);
  }

  // Errors add linearly: the regression's are common to all kernels.
  static void add(std::optional<Measurement>& sum, const std::optional<Measurement>& more) {
    if (!more) return;
    if (!sum) {
      sum = more;
      return;
    }
    sum->energy += more->energy;
    sum->error += more->error;
    sum->repeatability += more->repeatability;
    sum->provenance = model::combine(sum->provenance, more->provenance);
  }

  static void add(CollectiveTimes& sum, const CollectiveTimes& more) {
    sum.calls += more.calls;
    sum.matched += more.matched;
    sum.transfer += more.transfer;
    sum.waiting += more.waiting;
    sum.unsplit += more.unsplit;
    add(sum.transfer_energy, more.transfer_energy);
    add(sum.waiting_energy, more.waiting_energy);
    add(sum.unsplit_energy, more.unsplit_energy);
  }

  void add_kernel(std::size_t r, std::string kind, const OfKernel& kernel) {
    auto& row = out_.ranks[r];
    add(row, kernel.times);
    if (row.kinds.empty() || row.kinds.back().name != kind) {
      row.kinds.emplace_back().name = std::move(kind);
    }
    add(row.kinds.back(), kernel.times);
    std::vector<double> weights;
    for (const auto& [last, waited] : kernel.waited_for) {
      out_.ranks[last].waited_for += waited;
      weights.push_back(seconds(waited));
    }
    if (!kernel.times.waiting_energy) return;
    const auto parts = apportion(kernel.times.waiting_energy->energy, weights);
    std::size_t i = 0;
    for (const auto& [last, waited] : kernel.waited_for) {
      auto& sum = out_.ranks[last].waited_for_energy;
      if (i < parts.size()) sum = sum.value_or(Energy{}) + parts[i++];
    }
  }

  const model::Recording& recording_;
  std::span<const model::ActivityProfile> activity_;
  CollectiveCalls calls_;
  model::CollectiveProfile out_;
};

}  // namespace

Result<model::CollectiveProfile> collectives_of(const model::Recording& recording,
                                                std::span<const model::ActivityProfile> activity) {
  auto calls = collective_calls(recording);
  if (!calls) return forward_error(calls);
  const bool any_kernel = std::any_of(activity.begin(), activity.end(), [](const auto& profile) {
    return std::any_of(profile.by_kernel.begin(), profile.by_kernel.end(), is_collective);
  });
  if (calls->ranks.empty() && any_kernel) {
    calls->problems.emplace_back(
        "the recording has no times of its collectives: it is older than version 10 of the format, "
        "or they ran within CUDA graphs");
  }
  return Builder(recording, activity, std::move(*calls)).build();
}

}  // namespace jouleprof::analysis
