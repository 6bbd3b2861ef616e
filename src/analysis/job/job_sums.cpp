#include "analysis/job/job_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;

bool contains_others(DomainKind kind) {
  return kind == DomainKind::kPlatform || kind == DomainKind::kModule;
}

bool is_part(const model::Profile& profile, const model::Domain& domain) {
  if (!domain.parent) return false;
  return std::none_of(profile.domains.begin(), profile.domains.end(), [&](const auto& other) {
    return other.domain.id == *domain.parent && contains_others(other.domain.kind);
  });
}

std::string label_of(const model::Domain& domain) {
  const bool is_plain = domain.kind == DomainKind::kGpu || domain.kind == DomainKind::kCpu;
  return is_plain ? domain.device
                  : std::string(model::to_string(domain.kind)) + " " + domain.device;
}

}  // namespace

DomainKey key_of(const model::Domain& domain) {
  const std::string label = label_of(domain);
  return {label, domain.uuid.empty() ? label : domain.uuid};
}

bool is_counted(const model::Profile& profile, const model::Domain& domain) {
  return !is_part(profile, domain) && !contains_others(domain.kind);
}

void add(std::optional<model::Measurement>& sum, const model::Measurement& m) {
  if (!sum) {
    sum = m;
    return;
  }
  const double gain = model::gain_joules(*sum) + model::gain_joules(m);
  sum->shift = model::shift_of_sum(*sum, m);
  sum->energy += m.energy;
  sum->offset += m.offset;
  sum->repeatability += m.repeatability;
  sum->error = Energy::joules(std::hypot(sum->repeatability.joules(), gain));
  sum->provenance = model::combine(sum->provenance, m.provenance);
  if (sum->sensor != m.sensor) sum->sensor += " + " + m.sensor;
  if (sum->method != m.method) sum->method += " + " + m.method;
}

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

}  // namespace jouleprof::analysis
