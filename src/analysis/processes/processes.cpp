#include "analysis/processes/processes.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "analysis/levels/domains.h"
#include "analysis/processes/apportion.h"
#include "analysis/processes/board_use.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;

constexpr double kLeastWeight = 1e-3;  // seconds: every reading of utilisation counts
// Seconds. A process's own time and its children's, in the kernel and outside of it, are four
// numbers of whole ticks of 10 ms.
constexpr double kBrokenTicks = 0.04;

// Of a slice: the CPU time of other processes, and the joules that it was charged with.
struct OthersSlice {
  double seconds = 0;
  double joules = 0;
};

// The joules of so many seconds of it at most.
double most_joules(std::vector<OthersSlice> slices, double seconds) {
  std::ranges::sort(slices, [](const OthersSlice& a, const OthersSlice& b) {
    return a.joules * b.seconds > b.joules * a.seconds;
  });
  double joules = 0;
  for (const auto& slice : slices) {
    if (seconds <= 0) break;
    const double taken = std::min(seconds, slice.seconds);
    joules += slice.joules * taken / slice.seconds;
    seconds -= taken;
  }
  return joules;
}

}  // namespace

ProcessSplitter::ProcessSplitter(const model::Recording& recording, HostTime begin, HostTime end)
    : recording_(recording) {
  const auto& readings = recording.process_readings;
  std::vector<HostTime> rounds;
  for (const auto& r : readings.machine) rounds.push_back(r.at);
  if (rounds.empty()) {
    for (const auto& r : readings.processes) rounds.push_back(r.at);
    for (const auto& r : readings.gpu_processes) rounds.push_back(r.at);
  }
  std::ranges::sort(rounds);
  edges_.push_back(begin);
  for (const HostTime t : rounds) {
    if (t > edges_.back() && t < end) edges_.push_back(t);
  }
  if (end > begin) edges_.push_back(end);

  add_machine_time(recording);
  add_cpu_time(recording);

  use_.compute_utilisation.resize(recording.processes.size());
  const auto index = places_of(recording.processes);
  // Each reading is the mean since the one before; with one process on a GPU they are rarer.
  struct Reported {
    double weighted = 0;
    double weight = 0;
    std::map<model::DomainId, HostTime> last;
  };
  std::vector<Reported> reported(recording.processes.size());
  for (const auto& r : readings.gpu_processes) {
    const auto found = index.find(r.process);
    if (found == index.end() || !r.compute_utilisation || r.at < begin || r.at > end) continue;
    Reported& t = reported[found->second];
    const auto last =
        t.last.try_emplace(r.domain, std::max(begin, recording.processes[found->second].start));
    const double weight = std::max(seconds(r.at - last.first->second), kLeastWeight);
    last.first->second = r.at;
    t.weighted += weight * *r.compute_utilisation;
    t.weight += weight;
  }
  for (std::size_t i = 0; i < reported.size(); ++i) {
    if (reported[i].weight > 0)
      use_.compute_utilisation[i] = reported[i].weighted / reported[i].weight;
  }
}

void ProcessSplitter::add_machine_time(const model::Recording& recording) {
  busy_.assign(edges_.size() - 1, std::nullopt);
  Growing busy;
  std::vector<model::MachineReading> readings = recording.process_readings.machine;
  std::ranges::sort(readings, [](const auto& a, const auto& b) { return a.at < b.at; });
  for (const auto& r : readings) busy.add(r.at, seconds(r.busy_cpu_time));
  if (readings.size() < 2) return;
  for (std::size_t s = 0; s < busy_.size(); ++s) {
    const HostTime a = std::max(edges_[s], busy.first());
    const HostTime b = std::min(edges_[s + 1], busy.last());
    if (b <= a) continue;
    busy_[s] = busy.at(b) - busy.at(a);
    use_.machine_cpu_time += duration_of(*busy_[s]);
  }
}

void ProcessSplitter::add_cpu_time(const model::Recording& recording) {
  const std::size_t n = recording.processes.size();
  cpu_.assign(edges_.size() - 1, {});
  use_.cpu_time.resize(n);
  const auto index = places_of(recording.processes);
  std::vector<Growing> times(n);
  for (const auto& r : recording.process_readings.processes) {
    const auto found = index.find(r.process);
    if (found == index.end()) continue;
    Growing& time = times[found->second];
    const HostTime start = recording.processes[found->second].start;
    // CPU time before the first reading belongs to the time since the process's start.
    if (time.empty() && start > HostTime{} && start < r.at) time.add(start, 0);
    time.add(r.at, seconds(r.cpu_time + r.unseen_children_cpu_time));
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (times[i].empty()) continue;
    use_.cpu_time[i] = duration_of(times[i].at(edges_.back()) - times[i].at(edges_.front()));
    if (!recording.processes[i].in_tree) continue;
    unread_ += kBrokenTicks;
    if (recording.processes[i].start < edges_.front()) overread_ += kBrokenTicks;
    auto s = static_cast<std::size_t>(std::ranges::upper_bound(edges_, times[i].first()) -
                                      edges_.begin());
    for (s = s > 0 ? s - 1 : 0; s < cpu_.size() && edges_[s] < times[i].last(); ++s) {
      const double used = times[i].at(edges_[s + 1]) - times[i].at(edges_[s]);
      if (used <= 0) continue;
      if (cpu_[s].empty()) cpu_[s].assign(n, 0.0);
      cpu_[s][i] = used;
    }
  }
}

DomainSplit ProcessSplitter::split(const DomainEnergy& domain, const OnPortions& also) const {
  if (is_gpu(domain.domain.kind)) return split_board(domain, also);
  const std::size_t n = recording_.processes.size();
  const bool follows = follows_cpu_time(domain.domain.kind);
  std::vector<double> weights(n + 1);  // the last one is that of other processes
  std::vector<OthersSlice> others;
  double own_seconds = 0;
  DomainSplit all = split_slices(
      domain, edges_.size() - 1,
      [&](std::size_t s, Energy part, DomainSplit& out) {
        weights.assign(n + 1, 0.0);
        if (follows && busy_[s]) {
          double tree = 0;
          for (std::size_t i = 0; i < cpu_[s].size(); ++i) tree += weights[i] = cpu_[s][i];
          weights[n] = std::max(*busy_[s] - tree, 0.0);
        }
        const std::vector<Energy> portions = apportion(part, weights);
        if (portions.empty()) {
          out.unattributed += part;
          return;
        }
        for (std::size_t i = 0; i < n; ++i) out.shares[i] += portions[i];
        out.others += portions[n];
        if (weights[n] > 0) others.push_back({weights[n], portions[n].joules()});
        own_seconds += std::accumulate(weights.begin(), weights.end() - 1, 0.0);
        if (also) also(edges_[s], edges_[s + 1], std::span(portions).first(n));
      },
      [this](std::size_t s) { return std::pair(edges_[s], edges_[s + 1]); });
  if (unread_ > 0 && (!others.empty() || own_seconds > 0)) {
    const double own = std::accumulate(all.shares.begin(), all.shares.end(), Energy{}).joules();
    const double earlier = own_seconds > 0 ? std::min(overread_ / own_seconds, 1.0) : 0;
    all.command_bounds = {
        Energy::joules(own * (1 - earlier)),
        Energy::joules(own + most_joules(std::move(others), unread_)) + all.unattributed};
  }
  return all;
}

// Calls `divide` with each slice's part of the active energy; they sum to it exactly.
template <typename Divide, typename EdgesOf>
DomainSplit ProcessSplitter::split_slices(const DomainEnergy& domain, std::size_t slices,
                                          const Divide& divide, const EdgesOf& edges_of) const {
  DomainSplit out;
  out.shares.assign(recording_.processes.size(), Energy{});
  std::vector<double> above(slices);
  for (std::size_t s = 0; s < slices; ++s) {
    const auto [begin, end] = edges_of(s);
    above[s] = std::max(domain.part(begin, end), Energy{}).joules();
  }
  const auto parts =
      domain.active > Energy{} ? apportion(domain.active, above) : std::vector<Energy>{};
  if (parts.empty()) {
    out.unattributed = domain.active;
    return out;
  }
  for (std::size_t s = 0; s < slices; ++s) divide(s, parts[s], out);
  return out;
}

namespace {

// What part of a slice's energy is of an owner with the weights `own` (certainly) and `maybe`.
class OwnerShare {
 public:
  // `is_guess`: weights say how much of the board each has, and not how much it used.
  explicit OwnerShare(bool is_guess) : is_guess_(is_guess) {}
  void add(double weight, bool is_own, bool may_be_own, bool at_rest) {
    (is_own ? own_ : may_be_own ? maybe_ : others_) += weight;
    // Where none of the listed processes worked, one that no list caught did.
    if (at_rest) at_rest_ = true;
  }
  // Of processes that may have worked though their utilisation reads 0.
  void add_doubt(double weight, bool is_own, bool may_be_own) {
    (is_own ? own_in_doubt_ : may_be_own ? maybe_ : doubt_of_others_) += weight;
  }
  model::DivisionBounds of(Energy energy) const {
    if (is_guess_ && others_ + maybe_ > 0)
      return {Energy{}, own_ + own_in_doubt_ + maybe_ > 0 ? energy : Energy{}};
    const double others = others_ + maybe_ + doubt_of_others_;
    const double own = std::max(own_ - kErrors.utilisation, 0.0);
    const double most = own_ + own_in_doubt_ + maybe_ + kErrors.utilisation;
    const double low = at_rest_ ? 0 : others > 0 ? own / (own + kErrors.watts_ratio * others) : 1;
    const double high =
        others_ > 0 ? kErrors.watts_ratio * most / (kErrors.watts_ratio * most + others_) : 1;
    return {Energy::joules(own_ > 0 ? low * energy.joules() : 0),
            Energy::joules(own_ + own_in_doubt_ + maybe_ > 0 ? high * energy.joules() : 0)};
  }

 private:
  double own_ = 0;
  double own_in_doubt_ = 0;
  double maybe_ = 0;
  double others_ = 0;
  double doubt_of_others_ = 0;
  bool is_guess_ = false;
  bool at_rest_ = false;
};

void add_bounds(const UseSlice& slice, Energy energy, const std::vector<model::Process>& processes,
                DomainSplit& out) {
  std::vector<Claim> claims = slice.claims;
  if (slice.doubt) {
    claims.push_back(*slice.doubt);
    claims.back().in_doubt = true;
  }
  OwnerShare command(slice.is_guess);
  std::map<std::size_t, OwnerShare> by_process;
  for (const auto& claim : claims) {
    for (const std::size_t p : claim.candidates) {
      if (p != kUnidentified) by_process.try_emplace(p, slice.is_guess);
    }
  }
  for (const auto& claim : claims) {
    const Owner owner = owner_of(claim, processes);
    const bool is_own = owner == Owner::kProcess || owner == Owner::kCommand;
    if (claim.in_doubt) {
      command.add_doubt(claim.weight, is_own && !claim.of_unidentified,
                        owner != Owner::kOthers || claim.of_unidentified);
    } else {
      command.add(claim.weight, is_own, owner == Owner::kUnknown, claim.at_rest);
    }
    for (auto& [p, part] : by_process) {
      const auto& all = claim.candidates;
      const bool may_be = std::ranges::find(all, p) != all.end();
      if (claim.in_doubt) {
        part.add_doubt(claim.weight, may_be && all.size() == 1 && !claim.of_unidentified, may_be);
      } else {
        part.add(claim.weight, may_be && all.size() == 1, may_be, claim.at_rest);
      }
    }
  }
  const auto of_command = command.of(energy);
  out.command_bounds->low += of_command.low;
  out.command_bounds->high += of_command.high;
  for (const auto& [p, part] : by_process) {
    const auto bounds = part.of(energy);
    out.bounds[p].low += bounds.low;
    out.bounds[p].high += bounds.high;
  }
}

}  // namespace

DomainSplit ProcessSplitter::split_board(const DomainEnergy& domain, const OnPortions& also) const {
  const auto slices = recorded_use(recording_, domain.domain, edges_.front(), edges_.back());
  std::vector<double> weights;
  std::vector<Energy> own(recording_.processes.size());
  return split_slices(
      domain, slices.size(),
      [&](std::size_t s, Energy part, DomainSplit& out) {
        const auto& slice = slices[s];
        weights.clear();
        for (const auto& claim : slice.claims) weights.push_back(claim.weight);
        const auto portions = apportion(part, weights);
        if (portions.empty()) {
          out.unattributed += part;
          return;
        }
        if (!out.command_bounds) {
          out.command_bounds.emplace();
          out.bounds.resize(own.size());
        }
        add_bounds(slice, part, recording_.processes, out);
        own.assign(own.size(), Energy{});
        for (std::size_t c = 0; c < portions.size(); ++c) {
          switch (owner_of(slice.claims[c], recording_.processes)) {
            case Owner::kProcess:
              own[slice.claims[c].candidates.front()] += portions[c];
              break;
            case Owner::kCommand:
              out.within_command += portions[c];
              break;
            case Owner::kOthers:
              out.others += portions[c];
              break;
            case Owner::kUnknown:
              out.unattributed += portions[c];
              out.contested += portions[c];
              out.contested_time += slice.end - slice.begin;
              break;
          }
        }
        for (std::size_t i = 0; i < own.size(); ++i) out.shares[i] += own[i];
        if (also) also(slice.begin, slice.end, own);
      },
      [&](std::size_t s) { return std::pair(slices[s].begin, slices[s].end); });
}

void ProcessSplitter::each_cpu_time(const OnUse& take) const {
  for (std::size_t s = 0; s < cpu_.size(); ++s) {
    for (std::size_t i = 0; i < cpu_[s].size(); ++i) {
      if (cpu_[s][i] > 0) take(edges_[s], edges_[s + 1], i, duration_of(cpu_[s][i]));
    }
  }
}

namespace {

// Of those that hold a board in a slice: how many are of an owner, and how many of others.
struct HolderCount {
  double own = 0;
  double sure_own = 0;
  double others = 0;
  double sure_others = 0;
};

// `process`: the owner; absent: the command.
HolderCount count_holders(const UseSlice& slice, const std::vector<model::Process>& processes,
                          std::optional<std::size_t> process) {
  HolderCount out;
  const auto is_own = [&](std::size_t p) { return process ? p == *process : processes[p].in_tree; };
  for (const std::size_t p : slice.holders) (is_own(p) ? out.own : out.others) += 1;
  for (const std::size_t p : slice.sure_holders) (is_own(p) ? out.sure_own : out.sure_others) += 1;
  return out;
}

// The time that an owner's part of what is held comes to.
struct HeldPart {
  double least = 0;
  double most = 0;

  void add(double length, const HolderCount& count) {
    if (count.own == 0) return;
    least += length * (count.others == 0 ? 1 : count.sure_own / (count.sure_own + count.others));
    most += length * count.own / (count.own + count.sure_others);
  }
  model::DivisionBounds of(Energy held, double whole) const {
    return {Energy::joules(held.joules() * least / whole),
            Energy::joules(held.joules() * most / whole)};
  }
};

}  // namespace

HeldSplit ProcessSplitter::split_held(const model::Domain& domain, Energy held,
                                      const HeldTime& held_time, const OnUse& also) const {
  const std::size_t n = recording_.processes.size();
  std::vector<double> weights(n + 2, 0.0);  // then others, and none
  std::vector<HeldPart> times(n);
  HeldPart of_command;
  for (const auto& slice : recorded_use(recording_, domain, edges_.front(), edges_.back())) {
    const Duration length = held_time(slice.begin, slice.end);
    if (length <= Duration{}) continue;
    const auto& holders = slice.holders;
    if (holders.empty() || std::ranges::find(holders, kUnidentified) != holders.end()) {
      weights[n + 1] += seconds(length);
      continue;
    }
    const HolderCount all = count_holders(slice, recording_.processes, std::nullopt);
    of_command.add(seconds(length), all);
    for (const std::size_t p : holders)
      times[p].add(seconds(length), count_holders(slice, recording_.processes, p));
    const double each = seconds(length) / static_cast<double>(holders.size());
    for (const std::size_t p : holders) {
      const bool is_own = recording_.processes[p].in_tree;
      weights[is_own ? p : n] += each;
      if (is_own && also) also(slice.begin, slice.end, p, duration_of(each));
    }
  }
  HeldSplit out;
  auto parts = apportion(held, weights);
  if (parts.empty()) {
    out.shares.assign(n, Energy{});
    out.unowned = held;
    return out;
  }
  out.unowned = parts[n + 1];
  out.others = parts[n];
  parts.resize(n);
  out.shares = std::move(parts);
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const auto& time : times) out.bounds.push_back(time.of(held, whole));
  out.command_bounds = of_command.of(held, whole);
  return out;
}

}  // namespace jouleprof::analysis
