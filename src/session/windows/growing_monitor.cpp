#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "session/windows/live_monitor.h"

namespace jouleprof::session {
namespace {

using model::DomainKind;

bool is_board(const model::Domain& domain) {
  return !domain.parent && domain.visible &&
         (domain.kind == DomainKind::kGpu || domain.kind == DomainKind::kModule);
}

// The place of the domain that stands for GPUs of which none was found.
std::optional<std::size_t> place_without_boards(const std::vector<model::Domain>& domains) {
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const auto& d = domains[i];
    if (d.kind != DomainKind::kGpu && d.kind != DomainKind::kModule) continue;
    if (d.unavailable_reason.empty() || !d.uuid.empty() || model::gpu_index(d)) return std::nullopt;
    place = i;
  }
  return place;
}

// The boards' energies together, errors as if all sensors erred to one side. `energies`: by domain.
Result<model::Measurement> sum_of(const std::vector<model::Domain>& domains,
                                  const EnergySource::Energies& energies) {
  std::optional<model::Measurement> sum;
  for (std::size_t i = 0; i < domains.size() && i < energies.size(); ++i) {
    if (!is_board(domains[i])) continue;
    if (!energies[i]) return energies[i];
    if (sum) {
      add(*sum, *energies[i]);
    } else {
      sum = *energies[i];
    }
  }
  if (sum) return *sum;
  return fail(Errc::kUnavailable, "no board that appeared is visible to this program");
}

}  // namespace

GrowingMonitor::GrowingMonitor(std::unique_ptr<EnergySource> first, OpenBoards open_boards,
                               bool has_log)
    : first_(std::move(first)),
      open_boards_(std::move(open_boards)),
      has_log_(has_log),
      place_(place_without_boards(first_->domains())) {}

void GrowingMonitor::add_appeared(const std::vector<std::string>& names) {
  std::vector<std::string> boards;
  const bool is_place_free = place_ && this->boards() == nullptr;
  for (const auto& name : names) {
    if (open_boards_ && (is_place_free || has_log_) && name.starts_with("GPU-")) {
      boards.push_back(name);
      continue;
    }
    const std::lock_guard lock(mutex_);
    not_measured_.insert(name);
  }
  if (boards.empty()) return;
  auto opened = open_boards_(boards);
  const std::lock_guard lock(mutex_);
  if (!opened) {
    trouble_ = opened.error().message;
    not_measured_.insert(boards.begin(), boards.end());
    return;
  }
  trouble_.clear();
  for (const auto& name : boards) not_measured_.erase(name);
  if (!is_place_free) {
    logged_.push_back(std::move(*opened));
    recorded_.insert(boards.begin(), boards.end());
    return;
  }
  measured_ = fmt::format("{}", fmt::join(boards, ", "));
  owned_ = std::move(*opened);
  for (const auto& name : names_) (void)owned_->name(name);
  since_ = HostClock::now();
  boards_.store(owned_.get(), std::memory_order_release);
}

// The same names in the same order have the same numbers.
std::uint32_t GrowingMonitor::name(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t number = first_->name(text);
  if (number <= names_.size()) return number;
  names_.emplace_back(text);
  if (owned_) (void)owned_->name(text);
  return number;
}

void GrowingMonitor::add(const spans::WindowRecord& window) noexcept {
  first_->add(window);
  auto* const boards = this->boards();
  // A total holds whole windows only.
  if (boards != nullptr && HostTime{Duration{window.begin}} >= since_) boards->add(window);
}

Result<EnergySource::Energies> GrowingMonitor::energy(HostTime begin, HostTime end,
                                                      Duration timeout) {
  auto found = first_->energy(begin, end, timeout);
  auto* const boards = this->boards();
  if (!found || boards == nullptr || *place_ >= found->size()) return found;
  const auto more = boards->energy(begin, end, timeout);
  (*found)[*place_] = more ? sum_of(boards->domains(), *more) : forward_error(more);
  return found;
}

Result<analysis::WindowTotal> GrowingMonitor::total(std::uint32_t name, Duration timeout) {
  auto found = first_->total(name, timeout);
  auto* const boards = this->boards();
  if (!found || boards == nullptr || *place_ >= found->energies.size()) return found;
  const auto more = boards->total(name, timeout);
  auto& energy = found->energies[*place_];
  if (more && more->count == found->count && more->resolved_count == found->resolved_count) {
    energy = sum_of(boards->domains(), more->energies);
  } else {
    energy = fail(
        Errc::kUnavailable,
        fmt::format("{} of {} windows of this name began before the GPU's sensors "
                    "appeared; windows of a new name have a total",
                    found->count - (more ? std::min(more->count, found->count) : std::uint64_t{}),
                    found->count));
  }
  return found;
}

Result<model::Snapshot> GrowingMonitor::snapshot() {
  auto found = first_->snapshot();
  auto* const boards = this->boards();
  if (!found || boards == nullptr || *place_ >= found->domains.size()) return found;
  const auto more = boards->snapshot();
  if (!more) return found;
  auto& sum = found->domains[*place_];
  Energies energies;
  std::vector<model::Domain> domains;
  for (const auto& domain : more->domains) {
    if (!is_board(domain.domain)) continue;
    domains.push_back(domain.domain);
    energies.push_back(domain.energy ? Result<model::Measurement>(*domain.energy)
                                     : fail(Errc::kUnavailable, domain.reason));
    sum.provenance =
        domains.size() == 1 ? domain.provenance : combine(sum.provenance, domain.provenance);
    sum.energy_begin =
        domains.size() == 1 ? domain.energy_begin : std::max(sum.energy_begin, domain.energy_begin);
    sum.energy_end =
        domains.size() == 1 ? domain.energy_end : std::min(sum.energy_end, domain.energy_end);
    const bool is_known = domain.power && (domains.size() == 1 || sum.power);
    sum.power = !is_known             ? std::nullopt
                : domains.size() == 1 ? domain.power
                                      : std::optional(*sum.power + *domain.power);
    sum.age = domains.size() == 1 ? domain.age : std::max(sum.age, domain.age);
  }
  const auto energy = sum_of(domains, energies);
  sum.energy = energy ? std::optional(*energy) : std::nullopt;
  sum.reason = energy ? "" : energy.error().message;
  return found;
}

std::vector<std::string> GrowingMonitor::warnings() {
  auto texts = first_->warnings();
  if (in_forked_child()) return texts;
  if (auto* const boards = this->boards()) {
    for (auto& text : boards->warnings()) texts.push_back(std::move(text));
  }
  const std::lock_guard lock(mutex_);
  if (!measured_.empty()) {
    texts.push_back(fmt::format(
        "GPUs have appeared since this monitor was opened: {}; their energy is that of \"{}\" from "
        "then on",
        measured_, first_->domains()[*place_].device));
  }
  if (!recorded_.empty()) {
    texts.push_back(fmt::format(
        "GPUs have appeared since this monitor was opened: {}; the log has their energy from then "
        "on, and its windows do not: a monitor that is opened now measures them",
        fmt::join(recorded_, ", ")));
  }
  if (!not_measured_.empty()) {
    texts.push_back(fmt::format(
        "sensors have appeared since this monitor was opened: {}; a monitor "
        "that is opened now measures them{}",
        fmt::join(not_measured_, ", "), trouble_.empty() ? "" : fmt::format(" ({})", trouble_)));
  }
  return texts;
}

}  // namespace jouleprof::session
