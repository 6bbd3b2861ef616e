#include "analysis/processes/processes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>

#include "analysis/levels/traced_device.h"
#include "analysis/processes/apportion.h"
#include "analysis/processes/gpu_rounds.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;

constexpr double kLeastWeight = 1e-3;  // seconds: every reading of utilisation counts
constexpr double kNoUse = 0.005;       // of utilisation

// A quantity that never decreases, known at some times and interpolated between them.
class Growing {
 public:
  // Times in order. After a decrease the value counts on from there; the total never decreases.
  void add(HostTime at, double value) {
    if (!points_.empty()) {
      if (at < points_.back().at) return;
      total_ += std::max(value - last_, 0.0);
      if (at == points_.back().at) {
        points_.back().total = total_;
        last_ = value;
        return;
      }
    }
    last_ = value;
    points_.push_back({at, total_});
  }
  bool empty() const { return points_.empty(); }
  HostTime first() const { return points_.front().at; }
  HostTime last() const { return points_.back().at; }
  // Constant before the first and after the last point.
  double at(HostTime t) const {
    const auto next = std::upper_bound(points_.begin(), points_.end(), t,
                                       [](HostTime x, const Point& p) { return x < p.at; });
    if (next == points_.begin()) return next->total;
    const Point& a = *std::prev(next);
    if (next == points_.end()) return a.total;
    return a.total + (next->total - a.total) * (seconds(t - a.at) / seconds(next->at - a.at));
  }

 private:
  struct Point {
    HostTime at;
    double total;
  };
  std::vector<Point> points_;
  double total_ = 0;
  double last_ = 0;
};

bool follows_cpu_time(DomainKind kind) {
  return kind == DomainKind::kCpu || kind == DomainKind::kDram || kind == DomainKind::kCpuCores ||
         kind == DomainKind::kCpuUncore;
}

// The index of each process in the recording's list.
std::map<model::ProcessId, std::size_t> index_of(const std::vector<model::Process>& processes) {
  std::map<model::ProcessId, std::size_t> index;
  for (std::size_t i = 0; i < processes.size(); ++i) index[processes[i].id] = i;
  return index;
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
  std::sort(rounds.begin(), rounds.end());
  edges_.push_back(begin);
  for (const HostTime t : rounds) {
    if (t > edges_.back() && t < end) edges_.push_back(t);
  }
  if (end > begin) edges_.push_back(end);

  add_machine_time(recording);
  add_cpu_time(recording);

  use_.compute_utilisation.resize(recording.processes.size());
  const auto index = index_of(recording.processes);
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
  std::sort(readings.begin(), readings.end(),
            [](const auto& a, const auto& b) { return a.at < b.at; });
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
  const auto index = index_of(recording.processes);
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
    auto s = static_cast<std::size_t>(
        std::upper_bound(edges_.begin(), edges_.end(), times[i].first()) - edges_.begin());
    for (s = s > 0 ? s - 1 : 0; s < cpu_.size() && edges_[s] < times[i].last(); ++s) {
      const double used = times[i].at(edges_[s + 1]) - times[i].at(edges_[s]);
      if (used <= 0) continue;
      if (cpu_[s].empty()) cpu_[s].assign(n, 0.0);
      cpu_[s][i] = used;
    }
  }
}

// The last weight is that of other processes.
ProcessSplitter::Weigh ProcessSplitter::weigher(const model::Domain& domain) const {
  const std::size_t n = recording_.processes.size();
  if (follows_cpu_time(domain.kind)) {
    return [this, n](std::size_t s, std::vector<double>& weights) {
      if (!busy_[s]) return;
      double tree = 0;
      for (std::size_t i = 0; i < cpu_[s].size(); ++i) tree += weights[i] = cpu_[s][i];
      weights[n] = std::max(*busy_[s] - tree, 0.0);
    };
  }
  if (is_gpu(domain.kind)) {
    return [this, rounds = GpuRounds(recording_.process_readings.gpu_processes, domain),
            index = index_of(recording_.processes),
            divided = is_divided(recording_, domain)](std::size_t s, std::vector<double>& weights) {
      weigh_gpu(rounds, index, divided, s, weights);
    };
  }
  return [](std::size_t, std::vector<double>&) {};
}

void ProcessSplitter::weigh_gpu(const GpuRounds& rounds,
                                const std::map<model::ProcessId, std::size_t>& index, bool divided,
                                std::size_t slice, std::vector<double>& weights) const {
  const std::size_t n = recording_.processes.size();
  std::map<std::size_t, std::optional<double>> users;
  for (const auto& r : rounds.around(edges_[slice] + (edges_[slice + 1] - edges_[slice]) / 2)) {
    const auto found = index.find(r.process);
    auto& use = users[found == index.end() ? n : found->second];
    if (r.compute_utilisation) use = use.value_or(0) + *r.compute_utilisation;
  }
  const bool known =
      std::all_of(users.begin(), users.end(), [](const auto& u) { return u.second.has_value(); });
  if (users.size() > 1 && !known) {
    unknown_utilisation_ = true;
    return;
  }
  for (const auto& [i, use] : users) {
    const bool tree = i < n && recording_.processes[i].in_tree;
    const bool alone = !divided && users.size() == 1 && use.value_or(1) > kNoUse;
    weights[tree ? i : n] += alone ? 1.0 : use.value_or(0);
  }
}

DomainSplit ProcessSplitter::split(const DomainEnergy& domain, const OnPortions& also) const {
  const std::size_t n = recording_.processes.size();
  const std::size_t slices = edges_.size() - 1;
  DomainSplit out;
  out.shares.assign(n, Energy{});
  std::vector<double> above(slices);
  for (std::size_t s = 0; s < slices; ++s) {
    above[s] = std::max(domain.part(edges_[s], edges_[s + 1]), Energy{}).joules();
  }
  const auto parts =
      domain.active > Energy{} ? apportion(domain.active, above) : std::vector<Energy>{};
  if (parts.empty()) {
    out.unattributed = domain.active;
    return out;
  }
  const Weigh weigh = weigher(domain.domain);
  std::vector<double> weights;
  for (std::size_t s = 0; s < slices; ++s) {
    weights.assign(n + 1, 0.0);
    weigh(s, weights);
    const std::vector<Energy> portions = apportion(parts[s], weights);
    if (portions.empty()) {
      out.unattributed += parts[s];
      continue;
    }
    for (std::size_t i = 0; i < n; ++i) out.shares[i] += portions[i];
    out.others += portions[n];
    if (also) also(edges_[s], edges_[s + 1], std::span(portions).first(n));
  }
  return out;
}

void ProcessSplitter::each_cpu_time(const OnUse& take) const {
  for (std::size_t s = 0; s < cpu_.size(); ++s) {
    for (std::size_t i = 0; i < cpu_[s].size(); ++i) {
      if (cpu_[s][i] > 0) take(edges_[s], edges_[s + 1], i, duration_of(cpu_[s][i]));
    }
  }
}

std::vector<Energy> ProcessSplitter::split_held(const model::Domain& domain, Energy held,
                                                const OnUse& also) const {
  const GpuRounds rounds(recording_.process_readings.gpu_processes, domain);
  const auto index = index_of(recording_.processes);
  std::vector<double> weights(recording_.processes.size(), 0.0);
  for (std::size_t s = 0; s + 1 < edges_.size(); ++s) {
    for (const auto& r : rounds.around(edges_[s] + (edges_[s + 1] - edges_[s]) / 2)) {
      const auto found = index.find(r.process);
      if (found == index.end() || !recording_.processes[found->second].in_tree) continue;
      const Duration length = edges_[s + 1] - edges_[s];
      weights[found->second] += seconds(length);
      if (also) also(edges_[s], edges_[s + 1], found->second, length);
    }
  }
  return apportion(held, weights);
}

}  // namespace jouleprof::analysis
