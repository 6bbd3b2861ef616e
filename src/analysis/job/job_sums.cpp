#include "analysis/job/job_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;
using model::Window;

std::string job_label_of(const model::Domain& domain) {
  const bool is_plain = domain.kind == DomainKind::kGpu || domain.kind == DomainKind::kCpu;
  return is_plain ? domain.device
                  : std::string(model::to_string(domain.kind)) + " " + domain.device;
}

// Adds a value to mean and deviation (Welford 1962, a numerically stable update); finish_rows()
// divides.
void include(Spread& spread, double value, const std::string& where) {
  if (spread.of == 0 || value > spread.most) {
    spread.most = value;
    spread.most_in = where;
  }
  spread.least = spread.of == 0 ? value : std::min(spread.least, value);
  ++spread.of;
  const double before = value - spread.mean;
  spread.mean += before / static_cast<double>(spread.of);
  spread.deviation += before * (value - spread.mean);
}

void finish(Spread& spread) {
  spread.deviation =
      spread.of > 1 ? std::sqrt(spread.deviation / static_cast<double>(spread.of - 1)) : 0;
}

template <class Row>
Row& row_named(std::vector<Row>& rows, const std::string& name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  if (found != rows.end()) return *found;
  rows.emplace_back().name = name;
  return rows.back();
}

// A window with the recording that it is in.
struct PlacedWindow {
  const Window* window;
  const Placed* placed;
  std::string rank;
};

// The windows of one name on one host.
class HostWindows {
 public:
  HostWindows(std::span<const Placed> placed, std::vector<PlacedWindow> windows)
      : placed_(placed), windows_(std::move(windows)) {
    std::ranges::stable_sort(
        windows_, [](const auto& a, const auto& b) { return a.window->begin < b.window->begin; });
  }

  void add_to(JobWindow& out) {
    struct OfRank {
      double joules = 0;
      bool has_energy = false;
      bool lacks = false;
      double seconds = 0;
    };
    struct Lacking {
      DomainKey key;
      OfRank* rank;
      std::string reason;
    };
    std::map<std::string, OfRank> ranks;
    std::set<DomainKey> keys;  // with an energy, of whatever time
    std::vector<Lacking> lacking;
    for (const auto& [window, placed, rank] : windows_) {
      OfRank& own = ranks[rank];
      own.seconds += seconds(window->end - window->begin);
      for (std::size_t d = 0; d < placed->profile->domains.size(); ++d) {
        const auto& domain = placed->profile->domains[d];
        if (!measures(*placed, *window, d)) continue;
        const auto energy = placed->named->run.energy(d, *window);
        if (energy || domain.energy || domain.least) keys.insert(key_of(domain.domain));
        if (!energy) {
          lacking.push_back({key_of(domain.domain), &own, energy.error().message});
          continue;
        }
        own.joules += energy->energy.joules();
        own.has_energy = true;
      }
    }
    for (const auto& [key, rank, reason] : lacking) {
      if (!keys.contains(key)) continue;
      rank->lacks = out.is_partial = true;
      if (out.reason.empty()) out.reason = key.label + ": " + reason;
    }
    for (const auto& key : keys) {
      if (const auto sum = energy_of(key)) analysis::add(out.energy, *sum);
    }
    out.count += windows_.size();
    for (const auto& [rank, found] : ranks) {
      include(out.seconds, found.seconds, rank);
      if (found.has_energy && !found.lacks) include(out.joules, found.joules, rank);
    }
  }

 private:
  static bool measures(const Placed& placed, const Window& window, std::size_t d) {
    const auto& domain = placed.profile->domains[d].domain;
    return domain.visible && is_counted(*placed.profile, domain) &&
           window.devices.contains(domain.id);
  }

  // Windows of one recording, in order of begin.
  struct Part {
    const Placed* placed;
    HostTime begin{};
    HostTime end{};
  };

  // The sum of what each recording reports, where their windows do not overlap and no other
  // recording has the time.
  std::optional<model::Measurement> reported_energy(const std::vector<Part>& parts,
                                                    const DomainKey& key) {
    model::WindowSum sum;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Part& part = parts[i];
      if (i > 0 && part.begin < parts[i - 1].end) return std::nullopt;
      if (std::ranges::count(parts, part.placed, &Part::placed) > 1) return std::nullopt;
      if (&covering(part.begin, part.end, *part.placed, key) != part.placed) return std::nullopt;
      const auto is_own = [&](const model::WindowGroup& group) {
        return !group.imported && group.name == windows_.front().window->name;
      };
      const auto& groups = part.placed->profile->windows;
      const auto group = std::ranges::find_if(groups, is_own);
      const auto d = domain_of(*part.placed, key, nullptr);
      if (group == groups.end() || !d) return std::nullopt;
      if (const auto& energy = group->energies[*d].energy) sum.add(*energy);
    }
    return sum.sum();
  }

  // Where windows of several processes overlap, the device's time counts once.
  std::optional<model::Measurement> energy_of(const DomainKey& key) {
    std::vector<Part> parts;
    std::vector<Part> spans;
    const Window* first = nullptr;
    bool is_shared = false;
    for (const auto& [window, placed, rank] : windows_) {
      if (!domain_of(*placed, key, window)) continue;
      if (first == nullptr) first = window;
      is_shared = is_shared || window->pid != first->pid ||
                  (!parts.empty() && placed != parts.front().placed);
      if (parts.empty() || parts.back().placed != placed) {
        parts.push_back({placed, window->begin, window->end});
      }
      parts.back().end = std::max(parts.back().end, window->end);
      if (!is_shared || spans.empty() || window->begin >= spans.back().end) {
        spans.push_back({placed, window->begin, window->end});
      }
      spans.back().end = std::max(spans.back().end, window->end);
    }
    if (auto reported = reported_energy(parts, key)) return reported;
    model::WindowSum sum;
    for (const auto& span : spans) {
      const Placed& from = covering(span.begin, span.end, *span.placed, key);
      const auto d = domain_of(from, key, nullptr);
      if (!d) continue;
      if (const auto energy = from.named->run.energy(*d, span.begin, span.end)) sum.add(*energy);
    }
    return sum.sum();
  }

  // The first recording that covers the time, as for the host's energy.
  const Placed& covering(HostTime begin, HostTime end, const Placed& own, const DomainKey& key) {
    for (const auto& placed : placed_) {
      if (placed.profile->begin <= begin && placed.profile->end >= end &&
          domain_of(placed, key, nullptr)) {
        return placed;
      }
    }
    return own;
  }

  // Index of the domain in a recording that measures it; `window`: and that it is charged with.
  static std::optional<std::size_t> domain_of(const Placed& placed, const DomainKey& key,
                                              const Window* window) {
    for (std::size_t d = 0; d < placed.profile->domains.size(); ++d) {
      const auto& domain = placed.profile->domains[d].domain;
      if (!domain.visible || key_of(domain) != key) continue;
      if (window == nullptr || window->devices.contains(domain.id)) return d;
    }
    return std::nullopt;
  }

  std::span<const Placed> placed_;
  std::vector<PlacedWindow> windows_;
};

// The rank of each process of a recording by its id in the tool's namespace: by its trace, or by
// the environment that it was started with.
std::map<pid_t, model::Rank> ranks_of_processes(const Placed& placed) {
  std::map<pid_t, model::Rank> traced;
  for (const auto& trace : placed.named->run.recording().traces) {
    if (trace.rank.global) traced.try_emplace(trace.pid, trace.rank);
  }
  std::map<pid_t, model::Rank> ranks;
  for (const auto& profile : placed.profile->processes) {
    const auto& process = profile.process;
    const auto found = traced.find(process.own_pid.value_or(process.pid));
    if (found != traced.end()) {
      ranks[process.pid] = found->second;
    } else if (process.rank.global) {
      ranks[process.pid] = process.rank;
    }
  }
  return ranks;
}

}  // namespace

DomainKey key_of(const model::Domain& domain) {
  const std::string label = job_label_of(domain);
  return {label, domain.uuid.empty() ? label : domain.uuid};
}

bool is_counted(const model::Profile& profile, const model::Domain& domain) {
  return !is_part(domain, profile.domains, &model::DomainProfile::domain) &&
         !contains_others(domain.kind);
}

void add(std::optional<model::Measurement>& sum, const model::Measurement& m) {
  if (!sum) {
    sum = m;
    return;
  }
  model::add(*sum, m);
  if (sum->sensor != m.sensor) sum->sensor += " + " + m.sensor;
  if (sum->method != m.method) sum->method += " + " + m.method;
}

std::map<std::string, std::string> distinct_names(
    const std::vector<std::pair<std::string, std::string>>& machines) {
  std::map<std::string, std::set<std::string>> boots;
  for (const auto& [name, boot] : machines) boots[name].insert(boot);
  std::map<std::string, std::string> names;
  for (const auto& [name, of_name] : boots) {
    if (of_name.size() < 2) continue;
    std::size_t digits = 8;
    const auto count = [&] {
      std::set<std::string> firsts;
      for (const auto& boot : of_name) firsts.insert(boot.substr(0, digits));
      return firsts.size();
    };
    while (count() < of_name.size()) ++digits;
    for (const auto& boot : of_name) {
      names[boot] = boot.empty() ? fmt::format("{} (no boot id)", name)
                                 : fmt::format("{} ({})", name, boot.substr(0, digits));
    }
  }
  return names;
}

void add_windows(std::span<const Placed> placed, Job& job) {
  std::vector<std::string> names;  // in order of appearance
  std::map<std::string, std::vector<PlacedWindow>> by_name;
  for (const auto& p : placed) {
    if (p.named->run.recording().windows.empty()) continue;
    const auto ranks = ranks_of_processes(p);
    const auto& own = p.profile->run.rank.global;
    const std::string other = own ? std::to_string(*own) : p.named->name;
    for (const auto& window : p.named->run.recording().windows) {
      const auto found = ranks.find(window.pid);
      auto& windows = by_name[window.name];
      if (windows.empty()) names.push_back(window.name);
      windows.push_back(
          {&window, &p, found != ranks.end() ? std::to_string(*found->second.global) : other});
    }
  }
  for (const auto& name : names) {
    HostWindows(placed, std::move(by_name[name])).add_to(row_named(job.windows, name));
  }
}

void add_layers(std::span<const Placed> placed, Job& job) {
  for (const auto& p : placed) {
    const auto& activity = p.named->run.activity();
    if (!activity) continue;
    struct OfRecording {
      double joules = 0;
      double seconds = 0;
    };
    std::map<std::string, OfRecording> layers;
    for (const auto& profile : *activity) {
      for (const auto& row : profile.by_layer) {
        if (!row.energy) continue;
        JobLayer& out = row_named(job.layers, row.name);
        out.launches += row.launches;
        add(out.energy, *row.energy);
        OfRecording& own = layers[row.name];
        own.joules += row.energy->energy.joules();
        own.seconds += seconds(row.busy);
      }
    }
    const auto& own = p.profile->run.rank.global;
    const std::string where =
        own && p.named->run.recording().traces.size() < 2 ? std::to_string(*own) : p.named->name;
    for (const auto& [name, found] : layers) {
      JobLayer& out = row_named(job.layers, name);
      include(out.joules, found.joules, where);
      include(out.seconds, found.seconds, where);
    }
  }
}

void finish_rows(Job& job) {
  const auto by_energy = [](const auto& a, const auto& b) {
    const auto joules = [](const auto& row) { return row.energy ? row.energy->energy : Energy{}; };
    return joules(a) > joules(b);
  };
  std::ranges::stable_sort(job.windows, by_energy);
  std::ranges::stable_sort(job.layers, by_energy);
  for (auto& window : job.windows) finish(window.joules), finish(window.seconds);
  for (auto& layer : job.layers) finish(layer.joules), finish(layer.seconds);
  std::ranges::sort(job.shares, {}, &JobShare::job);
  for (auto& share : job.shares) {
    std::set<std::uint32_t> ranks;
    for (const auto& rank : job.ranks) {
      if (rank.rank.global && rank.rank.job == share.job) ranks.insert(*rank.rank.global);
    }
    share.ranks = ranks.size();
  }
}

}  // namespace jouleprof::analysis
