#include "analysis/processes/processes.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <span>

#include "analysis/processes/apportion.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;

constexpr double kLeastWeight = 1e-3;  // seconds: every reading of utilisation counts

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

// The processes on one GPU, in rounds of readings.
class GpuRounds {
 public:
  GpuRounds() = default;
  GpuRounds(const std::vector<model::GpuProcessReading>& readings, const model::Domain& domain) {
    for (const auto& r : readings) {
      if (r.domain == domain.id || r.domain == domain.parent) readings_.push_back(r);
    }
    std::stable_sort(readings_.begin(), readings_.end(),
                     [](const auto& a, const auto& b) { return a.at < b.at; });
    std::vector<Duration> steps;
    for (std::size_t i = 0; i < readings_.size(); ++i) {
      if (i > 0 && readings_[i].at - readings_[i - 1].at < kOneRound) continue;
      if (!rounds_.empty()) steps.push_back(readings_[i].at - readings_[rounds_.back()].at);
      rounds_.push_back(i);
    }
    if (!steps.empty()) {
      std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2),
                       steps.end());
      usual_ = steps[steps.size() / 2];
    }
  }

  // The readings that cover `t`: those of the next round, because a reading is a mean over the time
  // before it, or of the last one. Empty if it is more than 1.5 median intervals away.
  std::span<const model::GpuProcessReading> at(HostTime t) const {
    if (rounds_.empty()) return {};
    auto next = std::partition_point(rounds_.begin(), rounds_.end(),
                                     [&](std::size_t i) { return readings_[i].at < t; });
    if (next == rounds_.end()) --next;
    if (std::chrono::abs(readings_[*next].at - t) > 3 * usual_ / 2) return {};
    const std::size_t end = std::next(next) == rounds_.end() ? readings_.size() : *std::next(next);
    return std::span(readings_).subspan(*next, end - *next);
  }

 private:
  static constexpr Duration kOneRound = std::chrono::milliseconds{50};
  std::vector<model::GpuProcessReading> readings_;
  std::vector<std::size_t> rounds_;  // where each begins
  Duration usual_ = std::chrono::seconds{2};
};

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

DomainSplit ProcessSplitter::split(const DomainEnergy& domain) const {
  const std::size_t n = recording_.processes.size();
  const std::size_t slices = edges_.size() - 1;
  DomainSplit out;
  out.shares.assign(n, Energy{});
  const Energy active = domain.energy - domain.idle_part;
  if (active <= Energy{}) {
    out.unattributed = active;
    return out;
  }

  std::vector<double> above(slices);
  for (std::size_t s = 0; s < slices; ++s) {
    const Energy whole = domain.part(edges_[s], edges_[s + 1]);
    const Energy idle = domain.idle.value_or(Power{}) * (edges_[s + 1] - edges_[s]);
    above[s] = std::max(whole - idle, Energy{}).joules();
  }
  std::vector<Energy> parts = apportion(active, above);
  if (parts.empty()) {
    out.unattributed = active;
    return out;
  }

  const GpuRounds on_gpu = is_gpu(domain.domain.kind)
                               ? GpuRounds(recording_.process_readings.gpu_processes, domain.domain)
                               : GpuRounds{};
  const auto index = index_of(recording_.processes);

  std::vector<double> weights;
  for (std::size_t s = 0; s < slices; ++s) {
    // The last weight is that of other processes.
    weights.assign(n + 1, 0.0);
    if (follows_cpu_time(domain.domain.kind)) {
      if (busy_[s]) {
        double tree = 0;
        for (std::size_t i = 0; i < cpu_[s].size(); ++i) tree += weights[i] = cpu_[s][i];
        weights[n] = std::max(*busy_[s] - tree, 0.0);
      }
    } else if (is_gpu(domain.domain.kind)) {
      std::map<std::size_t, std::optional<double>> users;
      const HostTime middle = edges_[s] + (edges_[s + 1] - edges_[s]) / 2;
      for (const auto& r : on_gpu.at(middle)) {
        const auto found = index.find(r.process);
        auto& use = users[found == index.end() ? n : found->second];
        use = r.compute_utilisation;
      }
      const bool known = std::all_of(users.begin(), users.end(),
                                     [](const auto& u) { return u.second.has_value(); });
      if (users.size() > 1 && !known) unknown_utilisation_ = true;
      for (const auto& [i, use] : users) {
        if (users.size() > 1 && !known) break;
        const bool tree = i < n && recording_.processes[i].in_tree;
        weights[tree ? i : n] += users.size() == 1 ? 1.0 : *use;
      }
    }
    const std::vector<Energy> portions = apportion(parts[s], weights);
    if (portions.empty()) {
      out.unattributed += parts[s];
      continue;
    }
    for (std::size_t i = 0; i < n; ++i) out.shares[i] += portions[i];
    out.others += portions[n];
  }
  return out;
}

}  // namespace jouleprof::analysis
