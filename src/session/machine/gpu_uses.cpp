#include "session/machine/gpu_uses.h"

#include <algorithm>
#include <chrono>

#include "analysis/levels/domains.h"
#include "model/device/sensor.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kOneLook = 50ms;    // readings of one list
constexpr Duration kLost = 1min;       // a board without a list for so long has none
constexpr Duration kClockTick = 10ms;  // of the kernel's start times
constexpr Duration kForgotten = 10s;   // a driver names no process that ended so long ago

}  // namespace

GpuUses::GpuUses(const std::vector<model::Domain>& domains,
                 const std::vector<model::Sensor>& sensors, Find find)
    : find_(std::move(find)), outermost_(domains.size()) {
  for (std::size_t i = 0; i < domains.size(); ++i) places_[domains[i].id] = i;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    std::size_t place = i;
    for (std::size_t steps = 0; domains[place].parent && steps < domains.size(); ++steps) {
      const auto parent = places_.find(*domains[place].parent);
      if (parent == places_.end()) break;
      place = parent->second;
    }
    outermost_[i] = place;
  }
  for (const auto& board : domains) {
    for (const auto* instance : analysis::instances_of(domains, board.id)) {
      const std::size_t place = outermost_[places_.at(instance->id)];
      auto& parts = boards_[place].parts;
      parts_[instance->id] = {place, parts.size()};
      parts.push_back({static_cast<double>(analysis::slices_of(*instance)), {}});
    }
  }
  for (const auto& sensor : sensors) {
    if (sensor.kind == model::SensorKind::kGauge) gauges_.push_back(sensor);
  }
}

std::optional<std::size_t> GpuUses::place_of(model::SensorId sensor, std::string_view gauge) const {
  for (const auto& g : gauges_) {
    if (g.id != sensor) continue;
    const auto place = g.name == gauge ? places_.find(g.domain) : places_.end();
    return place == places_.end() ? std::nullopt : std::optional(outermost_[place->second]);
  }
  return std::nullopt;
}

analysis::BoardLook& GpuUses::look_at(std::size_t domain, HostTime t) {
  auto& board = boards_[domain];
  auto& looks = board.looks;
  if (looks.empty() || t - looks.back().at > kOneLook) {
    looks.push_back({t, {}, false});
    board.memory.clear();
  }
  return looks.back();
}

// A driver may still name a process that has ended, also when its pid has been given out again: to
// a process that began after the list, or just now, while no list lacked the pid.
std::optional<std::size_t> GpuUses::identify(pid_t pid, std::size_t domain, HostTime at) {
  auto found = find_(pid);
  const auto known = by_pid_.find(pid);
  if (found && found->start > at + kClockTick) found.reset();
  if (!found) return known == by_pid_.end() ? std::nullopt : std::optional(known->second);
  if (known != by_pid_.end() && known_[known->second].worker.process == found->worker.process) {
    known_[known->second].worker = std::move(found->worker);  // it may have been moved into its job
    return known->second;
  }
  if (known != by_pid_.end() && at - found->start < kForgotten) {
    const auto& looks = boards_[domain].looks;
    const auto before = std::find_if(looks.rbegin(), looks.rend(),
                                     [at](const auto& look) { return look.at < at - kOneLook; });
    const auto is_it = [&](const auto& use) { return use.process == known->second; };
    if (before != looks.rend() && std::any_of(before->uses.begin(), before->uses.end(), is_it)) {
      return known->second;
    }
  }
  known_.push_back(std::move(*found));
  return by_pid_[pid] = known_.size() - 1;
}

void GpuUses::append(const Sampled& sampled) {
  std::map<std::pair<std::size_t, HostTime>, std::size_t> listed;
  for (const auto& r : sampled.readings.gauges) {
    if (const auto place = place_of(r.sensor, model::gauge::kProcessCount)) {
      look_at(*place, r.at);
      listed[{*place, boards_[*place].looks.back().at}] = static_cast<std::size_t>(r.value);
    } else if (const auto used = place_of(r.sensor, model::gauge::kGpuUtilisation)) {
      boards_[*used].utilisation.push_back(r);
    } else if (const auto sensor = std::ranges::find_if(
                   gauges_,
                   [&](const auto& g) {
                     return g.id == r.sensor && g.name == model::gauge::kSmActivity;
                   });
               sensor != gauges_.end() && parts_.contains(sensor->domain)) {
      const auto [board, part] = parts_.at(sensor->domain);
      boards_[board].parts[part].activity.push_back(r);
    }
  }
  for (const auto& use : sampled.gpu_processes) {
    const auto place = places_.find(use.domain);
    if (place == places_.end()) continue;
    const std::size_t domain = outermost_[place->second];
    auto& looks = boards_[domain].looks;
    const auto same = std::find_if(looks.rbegin(), looks.rend(), [&](const auto& look) {
      return std::chrono::abs(use.at - look.at) <= kOneLook;
    });
    auto& look = same != looks.rend() ? *same : look_at(domain, use.at);
    const auto process = identify(use.pid, domain, use.at);
    if (!process) {
      look.has_unidentified = true;
      continue;
    }
    auto listed_use = std::ranges::find(look.uses, *process, &analysis::BoardLook::Use::process);
    const bool is_first = listed_use == look.uses.end();
    if (is_first)
      listed_use = look.uses.insert(look.uses.end(), {*process, use.compute_utilisation});
    if (const auto part = parts_.find(use.domain); part != parts_.end())
      listed_use->parts.insert(part->second.second);
    // Without the privilege to list all instances, processes of others are missing, and the
    // instance of none is known.
    if (!boards_[domain].parts.empty() && listed_use->parts.empty()) look.has_unidentified = true;
    if (&look != &looks.back()) continue;
    auto& memory = boards_[domain].memory[*process];
    memory =
        is_first || !use.memory_bytes ? use.memory_bytes : memory.value_or(0) + *use.memory_bytes;
  }
}

bool GpuUses::has_looked(HostTime t) const {
  return std::ranges::all_of(boards_, [t](const auto& entry) {
    const auto& looks = entry.second.looks;
    return looks.empty() || looks.back().at >= t || t - looks.back().at > kLost;
  });
}

std::vector<analysis::GpuHolder> GpuUses::holders(std::size_t domain, HostTime since) const {
  std::vector<analysis::GpuHolder> out;
  const auto board = boards_.find(domain);
  if (board == boards_.end() || board->second.looks.empty()) return out;
  const auto& looks = board->second.looks;
  if (looks.back().at <= since) return out;
  for (const auto& last : looks.back().uses) {
    double sum = 0;
    int count = 0;
    for (auto look = looks.rbegin(); look != looks.rend() && look->at > since; ++look) {
      for (const auto& use : look->uses) {
        if (use.process != last.process || !use.utilisation) continue;
        sum += *use.utilisation;
        ++count;
      }
    }
    const auto memory = board->second.memory.find(last.process);
    out.push_back({domain, known_[last.process].worker,
                   count > 0 ? std::optional(sum / count) : std::nullopt,
                   memory == board->second.memory.end() ? std::nullopt : memory->second});
  }
  return out;
}

void GpuUses::append_cpu_times(HostTime since, HostTime at, const CpuTime& cpu_time) {
  for (auto& known : known_) {
    const auto used = cpu_time(known.worker);
    if (!used) continue;
    if (known.cpu_time.empty()) known.cpu_time.add(std::max(since, known.start), 0);
    known.cpu_time.add(at, known.cpu_time.at(at) + *used);
  }
}

std::vector<analysis::UseSlice> GpuUses::slices(std::size_t domain, HostTime begin,
                                                HostTime end) const {
  analysis::BoardEvidence evidence;
  const auto board = boards_.find(domain);
  if (board != boards_.end()) {
    evidence.looks = board->second.looks;
    evidence.utilisation = board->second.utilisation;
    evidence.parts = board->second.parts;
  }
  for (const auto& found : known_) evidence.lives.push_back({found.start, {}, false});
  evidence.cpu_share = [this](std::size_t process, HostTime a, HostTime b) {
    return known_[process].cpu_time.rate(a, b);
  };
  return board_use(evidence, begin, end);
}

void GpuUses::forget_before(HostTime t) {
  std::vector<bool> used(known_.size());
  for (auto& known : known_) known.cpu_time.forget_before(t);
  for (auto& [place, board] : boards_) {
    // The last one before says what held the board then.
    auto& looks = board.looks;
    const auto first = std::ranges::partition_point(looks, [t](const auto& l) { return l.at < t; });
    if (first - looks.begin() > 1) looks.erase(looks.begin(), std::prev(first));
    std::erase_if(board.utilisation, [t](const auto& r) { return r.at < t; });
    for (auto& part : board.parts) {
      // A reading is the mean since the one before.
      auto& all = part.activity;
      const auto kept = std::ranges::partition_point(all, [t](const auto& r) { return r.at < t; });
      if (kept - all.begin() > 1) all.erase(all.begin(), std::prev(kept));
    }
    for (const auto& look : looks) {
      for (const auto& use : look.uses) used[use.process] = true;
    }
  }
  if (std::ranges::all_of(used, [](bool u) { return u; })) return;
  std::vector<std::size_t> moved(known_.size());
  std::vector<Found> kept;
  for (std::size_t i = 0; i < known_.size(); ++i) {
    moved[i] = kept.size();
    if (used[i]) kept.push_back(std::move(known_[i]));
  }
  for (auto& [place, board] : boards_) {
    std::map<std::size_t, std::optional<std::uint64_t>> memory;
    for (const auto& [process, bytes] : board.memory) {
      if (used[process]) memory[moved[process]] = bytes;
    }
    board.memory = std::move(memory);
    for (auto& look : board.looks) {
      for (auto& use : look.uses) use.process = moved[use.process];
    }
  }
  std::erase_if(by_pid_, [&](const auto& entry) { return !used[entry.second]; });
  for (auto& [pid, process] : by_pid_) process = moved[process];
  known_ = std::move(kept);
}

}  // namespace jouleprof::session
