#include "importers/aipowermeter/process_shares.h"

#include <fmt/format.h>

#include <algorithm>

namespace jouleprof::importers {

void ProcessShares::add_power(const std::string& process, model::DomainId domain, HostTime at,
                              double watts) {
  Integral& integral = processes_[process].energies[domain];
  const auto before = last_records_.find(domain);
  if (!integral.last && before != last_records_.end()) integral.last = {before->second, 0.0};
  if (integral.last) {
    integral.joules += (integral.last->second + watts) / 2 * seconds(at - integral.last->first);
    integral.any = true;
  }
  integral.last = {at, watts};
}

void ProcessShares::end_record(model::DomainId domain, HostTime at) {
  last_records_[domain] = at;
  for (auto& [name, shares] : processes_) {
    const auto found = shares.energies.find(domain);
    if (found == shares.energies.end()) continue;
    const auto& last = found->second.last;
    if (last && last->first != at) add_power(name, domain, at, 0);
  }
}

void ProcessShares::add_cpu_share(const std::string& process, double share) {
  processes_[process].cpu_share_sum += share;
  ++processes_[process].cpu_shares;
}

void ProcessShares::add_memory(const std::string& process, double bytes) {
  auto& most = processes_[process].most_bytes;
  most = std::max(most.value_or(bytes), bytes);
}

void ProcessShares::end_segment() {
  last_records_.clear();
  for (auto& [name, shares] : processes_) {
    for (auto& [domain, integral] : shares.energies) integral.last.reset();
  }
}

std::vector<model::ImportedWindow> ProcessShares::windows(HostTime begin, HostTime end) const {
  std::vector<model::ImportedWindow> windows;
  for (const auto& [name, shares] : processes_) {
    model::ImportedWindow window;
    window.name = name;
    window.begin = begin;
    window.duration = end - begin;
    for (const auto& [domain, integral] : shares.energies) {
      if (integral.any) window.energies.push_back({domain, Energy::joules(integral.joules)});
    }
    if (shares.cpu_shares > 0) {
      window.labels.push_back(
          {"mean_cpu_share",
           fmt::format("{:.4f}", shares.cpu_share_sum / static_cast<double>(shares.cpu_shares))});
    }
    if (shares.most_bytes) {
      window.labels.push_back({"most_memory_bytes", fmt::format("{:.0f}", *shares.most_bytes)});
    }
    windows.push_back(std::move(window));
  }
  return windows;
}

}  // namespace jouleprof::importers
