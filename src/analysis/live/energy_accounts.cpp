#include "analysis/live/energy_accounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analysis/processes/apportion.h"

namespace jouleprof::analysis {
namespace {

constexpr std::array<std::string_view, kFamilies> kNames = {"process", "container", "pod",
                                                            "job",     "unit",      "user"};

// Empty: the worker belongs to none of the family.
std::string key_of(const Worker& worker, Family family) {
  switch (family) {
    case Family::kProcess:
      return worker.process == 0 ? "" : fmt::format("{}", worker.pid);
    case Family::kContainer:
      return worker.owner.container;
    case Family::kPod:
      return worker.owner.pod;
    case Family::kJob:
      return worker.owner.job;
    case Family::kUnit:
      return worker.owner.unit;
    case Family::kUser:
      return worker.owner.user ? fmt::format("{}", *worker.owner.user) : "";
  }
  return {};
}

}  // namespace

std::string_view to_string(Family family) { return kNames[static_cast<std::size_t>(family)]; }

std::optional<Family> parse_family(std::string_view text) {
  for (const auto family : kAllFamilies) {
    if (to_string(family) == text) return family;
  }
  return std::nullopt;
}

EnergyAccounts::EnergyAccounts(std::size_t domains, Options options)
    : options_(std::move(options)), domains_(domains) {
  for (const auto family : options_.families) {
    Book book;
    book.family = family;
    book.account.outside.resize(domains);
    book.account.undivided.resize(domains);
    book.account.other.resize(domains);
    book.account.ended.resize(domains);
    books_.push_back(std::move(book));
  }
}

const FamilyAccount* EnergyAccounts::family(Family family) const {
  const auto found = std::ranges::find(books_, family, &Book::family);
  return found == books_.end() ? nullptr : &found->account;
}

void EnergyAccounts::restore(const std::vector<std::optional<DomainAccount>>& domains,
                             std::map<Family, FamilyAccount> families) {
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    if (domains[d]) domains_[d] = *domains[d];
  }
  for (auto& book : books_) book.account = std::move(families.at(book.family));
}

void EnergyAccounts::begin_tick(HostTime now, std::vector<Worker> workers) {
  now_ = now;
  workers_ = workers.size();
  for (auto& book : books_) {
    book.of_worker.clear();
    for (const auto& worker : workers) {
      const auto key = key_of(worker, book.family);
      if (key.empty()) {
        book.of_worker.push_back(nullptr);
        continue;
      }
      const auto [at, is_new] = book.account.entities.try_emplace(key);
      auto& entity = at->second;
      // The pid of a process that ended was given out again.
      const bool is_other =
          book.family == Family::kProcess && !is_new && entity.worker.process != worker.process;
      if (is_other && entity.present == now) {  // both lived since the last tick
        book.of_worker.push_back(&book.gone);
        continue;
      }
      if (is_other) fold(book.account, entity, book.account.ended);
      if (is_new || is_other) {
        entity.energies.assign(domains_.size(), std::nullopt);
        entity.holds_gpu = false;
        entity.folded = {};
      }
      entity.holds_gpu |= worker.holds_gpu;
      // A process may become another program, and may be moved into its job.
      if (is_new || book.family == Family::kProcess) entity.worker = worker;
      entity.present = now;
      book.of_worker.push_back(&entity);
    }
    if (book.family != Family::kUser) remove_ended(book);
  }
}

void EnergyAccounts::remove_ended(Book& book) {
  auto& account = book.account;
  for (auto at = account.entities.begin(); at != account.entities.end();) {
    if (now_ - at->second.present <= options_.keep) {
      ++at;
      continue;
    }
    fold(account, at->second, account.ended);
    at = account.entities.erase(at);
  }
}

void EnergyAccounts::fold(FamilyAccount& account, const Entity& entity, std::vector<Energy>& to) {
  for (std::size_t d = 0; d < entity.energies.size(); ++d) {
    if (!entity.energies[d]) continue;
    to[d] += entity.energies[d]->energy;
    --account.series;
  }
}

void EnergyAccounts::end_tick() {
  for (auto& book : books_) bound(book.account);
}

void EnergyAccounts::bound(FamilyAccount& account) const {
  if (account.series <= options_.most_series) return;
  enum { kEnded, kPresent, kEndedHolder };
  struct Candidate {
    int order = 0;
    Energy energy;
    std::map<std::string, Entity, std::less<>>::iterator at;
  };
  std::vector<Candidate> candidates;
  for (auto at = account.entities.begin(); at != account.entities.end(); ++at) {
    const auto& entity = at->second;
    const bool is_present = entity.present == now_;
    if (is_present && entity.holds_gpu) continue;
    const int order = entity.holds_gpu ? kEndedHolder : is_present ? kPresent : kEnded;
    Candidate found{order, entity.folded, at};
    bool has_series = false;
    bool was_shown = false;
    for (const auto& series : entity.energies) {
      if (!series) continue;
      has_series = true;
      was_shown |= series->since != now_;
      found.energy += series->energy;
    }
    // Two of like size would else take each other's place at every tick.
    if (was_shown) found.energy += found.energy;
    if (has_series) candidates.push_back(found);
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.order != b.order ? a.order < b.order : a.energy < b.energy;
  });
  for (const auto& [order, energy, at] : candidates) {
    if (account.series <= options_.most_series) return;
    if (order == kPresent) {
      for (const auto& series : at->second.energies)
        at->second.folded += series ? series->energy : Energy{};
      fold(account, at->second, account.other);
      at->second.energies.assign(domains_.size(), std::nullopt);
    } else {
      fold(account, at->second, account.ended);
      account.entities.erase(at);
    }
  }
}

void EnergyAccounts::add_unattributed(std::size_t domain, Energy energy) {
  domains_[domain].total += energy;
  domains_[domain].unattributed += energy;
}

// Returns what is left.
Energy EnergyAccounts::take_rest(std::size_t d, Energy energy, const std::optional<Energy>& rest) {
  if (!rest) return energy;
  auto& domain = domains_[d];
  const Energy part = std::clamp(*rest, Energy{}, std::max(energy, Energy{}));
  domain.rest = domain.rest.value_or(Energy{}) + part;
  return energy - part;
}

void EnergyAccounts::charge(const DomainCharge& charge) {
  auto& domain = domains_[charge.domain];
  domain.total += charge.energy;
  domain.charged = now_;
  domain.interval = charge.interval;
  if (!charge.parts.empty()) {
    Energy left = charge.energy;
    for (const auto& part : charge.parts) {
      this->charge(charge.domain, part.energy, part.rest, part.claims);
      left -= part.energy;
    }
    domain.unattributed += left;
    return;
  }
  const Energy left = take_rest(charge.domain, charge.energy, charge.rest);
  std::vector<Energy> parts;
  if (charge.weights.size() == workers_) {
    std::vector<double> weights(charge.weights.begin(), charge.weights.end());
    weights.push_back(charge.others);
    parts = apportion(left, weights);
  }
  if (parts.empty()) {
    domain.unattributed += left;
    return;
  }
  for (auto& book : books_) {
    for (std::size_t w = 0; w < workers_; ++w) {
      add(book, book.of_worker[w], charge.domain, parts[w]);
    }
    add(book, nullptr, charge.domain, parts.back());
  }
}

void EnergyAccounts::charge(std::size_t domain, Energy energy, const std::optional<Energy>& rest,
                            const std::vector<WorkerClaim>& claims) {
  const Energy left = take_rest(domain, energy, rest);
  std::vector<double> weights;
  for (const auto& claim : claims) weights.push_back(claim.weight);
  const auto parts = apportion(left, weights);
  if (parts.empty()) {
    domains_[domain].unattributed += left;
    return;
  }
  for (std::size_t c = 0; c < claims.size(); ++c) {
    const auto& workers = claims[c].workers;
    if (workers.empty()) {
      domains_[domain].unattributed += parts[c];
      continue;
    }
    for (auto& book : books_) {
      Entity* const first = book.of_worker[workers.front()];
      const bool same =
          std::ranges::all_of(workers, [&](std::size_t w) { return book.of_worker[w] == first; });
      if (same && !claims[c].is_unidentified) {
        add(book, first, domain, parts[c]);
      } else {
        book.account.undivided[domain] += parts[c];
      }
    }
  }
}

void EnergyAccounts::add(Book& book, Entity* entity, std::size_t domain, Energy energy) {
  if (energy == Energy{}) return;
  auto& account = book.account;
  if (entity == nullptr) {
    account.outside[domain] += energy;
    return;
  }
  if (entity == &book.gone) {
    account.ended[domain] += energy;
    return;
  }
  auto& series = entity->energies[domain];
  if (!series) {
    ++account.series;
    series = SeriesEnergy{{}, now_, {}, {}};
  }
  if (series->charged != now_) series->latest = Energy{};
  series->charged = now_;
  series->latest += energy;
  series->energy += energy;
}

std::optional<Power> EnergyAccounts::power(std::size_t domain, const SeriesEnergy& series) const {
  const auto& account = domains_[domain];
  if (account.charged != now_ || account.interval <= Duration{}) return std::nullopt;
  return series.charged == now_ ? series.latest / account.interval : Power{};
}

}  // namespace jouleprof::analysis
