#include "session/machine/service_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/json/json.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

using analysis::DomainAccount;
using analysis::EnergyAccounts;
using analysis::Entity;
using analysis::Family;
using analysis::FamilyAccount;
using analysis::MachineState;
using nlohmann::json;

constexpr const char* kSchema = "jouleprof.serve-state/2";

// Names may be any bytes; JSON is UTF-8.
std::string utf8(std::string text) {
  mend_utf8(text);
  return text;
}

std::string key_of(const model::Domain& domain) {
  return utf8(fmt::format("{} {}", model::to_string(domain.kind),
                          domain.uuid.empty() ? domain.device : domain.uuid));
}

std::int64_t count(RealTime t) { return t.time_since_epoch().count(); }
constexpr std::int64_t kLargest = std::int64_t{1} << 62;  // the sum of two does not overflow

json energies(const std::vector<Energy>& all) {
  json out = json::array();
  for (const auto& e : all) out.push_back(e.microjoules());
  return out;
}

json entity_json(const MachineState& state, const Entity& entity) {
  const auto& worker = entity.worker;
  const auto& owner = worker.owner;
  json series = json::array();
  for (std::size_t d = 0; d < entity.energies.size(); ++d) {
    const auto& e = entity.energies[d];
    if (e) series.push_back({d, e->energy.microjoules(), count(state.real(e->since))});
  }
  return {worker.process,
          worker.pid,
          utf8(worker.name),
          {utf8(owner.container), utf8(owner.runtime), utf8(owner.pod), utf8(owner.job),
           utf8(owner.step), utf8(owner.unit)},
          owner.user ? json(*owner.user) : json(nullptr),
          std::move(series),
          entity.holds_gpu};
}

json family_json(const MachineState& state, const FamilyAccount& account) {
  json entities = json::object();
  for (const auto& [key, entity] : account.entities) {
    entities[utf8(key)] = entity_json(state, entity);
  }
  return {{"outside", energies(account.outside)},
          {"undivided", energies(account.undivided)},
          {"other", energies(account.other)},
          {"ended", energies(account.ended)},
          {"entities", std::move(entities)}};
}

// Reads a state; nlohmann's exceptions leave it.
class Saved {
  bool is_damaged_ = false;  // before what sets it

 public:
  Saved(const json& file, const MachineState& state, bool same_boot)
      : last(real_time(file.at("saved"))),
        missing(figure(file.at("missing"))),
        file_(file),
        state_(state),
        same_boot_(same_boot) {
    std::map<std::string, std::size_t> now;
    for (std::size_t d = 0; d < state.snapshot.domains.size(); ++d) {
      now[key_of(state.snapshot.domains[d].domain)] = d;
    }
    domains.resize(state.snapshot.domains.size());
    gaps.resize(domains.size());
    counters.resize(domains.size());
    between_services.resize(domains.size());
    day.before.resize(domains.size());
    find_ahead();
    if (!file.at("day").is_null()) day.begin = real_time(file.at("day"));
    if (const auto& of = file.at("readers"); !of.is_null()) {
      readers = {whole<std::size_t>(of.at(0)), host(real_time(of.at(1)))};
    }
    for (const auto& saved : file.at("domains")) {
      const auto found = now.find(saved.at("key").get<std::string>());
      places_.push_back(found == now.end() ? std::nullopt : std::optional(found->second));
      if (!saved.at("counted").get<bool>()) continue;
      // Of a device that is gone, the day is that on which it was last there.
      const auto& its_day = saved.contains("day") ? saved.at("day") : file.at("day");
      if (found == now.end()) {
        json kept = saved;
        kept["day"] = its_day;
        if (!same_boot) kept["counter"] = nullptr;
        gone.push_back(json_text(kept));
        continue;
      }
      auto& account = domains[found->second].emplace();
      account.total = energy(saved.at("total"));
      account.unattributed = energy(saved.at("unattributed"));
      if (!saved.at("rest").is_null()) account.rest = energy(saved.at("rest"));
      account.since = host(real_time(saved.at("since")));
      gaps[found->second] = whole<std::uint64_t>(saved.at("gaps"));
      if (!saved.at("counter").is_null() && same_boot) {
        // Of a device that did not answer any more, the counter is older than what was saved.
        counters[found->second] =
            analysis::CounterMark{energy(saved.at("counter")), real_time(saved.at("counter_at"))};
      }
      between_services[found->second] = energy(saved.at("between_services"));
      if (between_services[found->second] > account.unattributed) is_damaged_ = true;
      day.before[found->second] =
          its_day == file.at("day") ? energy(saved.at("before_day")) : account.total;
      if (day.before[found->second] > account.total) is_damaged_ = true;
    }
  }

  FamilyAccount family(Family family) {
    FamilyAccount out;
    const auto n = domains.size();
    out.outside.resize(n);
    out.undivided.resize(n);
    out.other.resize(n);
    out.ended.resize(n);
    const auto found = file_.at("families").find(std::string(to_string(family)));
    if (found != file_.at("families").end()) {
      add(found->at("outside"), out.outside);
      add(found->at("undivided"), out.undivided);
      add(found->at("other"), out.other);
      add(found->at("ended"), out.ended);
      for (const auto& [key, saved] : found->at("entities").items()) {
        entity(key, saved, family, out);
      }
    }
    balance(out);
    return out;
  }

  // Whether there was a figure so far that no service writes: negative, too large, or more in the
  // parts than in the whole.
  bool is_damaged() const { return is_damaged_; }

  std::vector<std::optional<DomainAccount>> domains;
  std::vector<std::string> gone;  // as MachineState's
  std::vector<std::uint64_t> gaps;
  std::vector<std::optional<analysis::CounterMark>> counters;
  std::vector<Energy> between_services;
  RealTime last;
  Duration missing;
  analysis::Day day;
  std::optional<analysis::MetricsReaders> readers;

 private:
  // A conversion of other numbers would be undefined.
  template <typename T>
  T whole(const json& j) {
    if (j.is_number_integer()) return j.get<T>();
    is_damaged_ = true;
    return 0;
  }
  std::int64_t figure(const json& j) {
    const auto value = whole<std::int64_t>(j);
    if (value >= 0 && value <= kLargest) return value;
    is_damaged_ = true;
    return 0;
  }
  RealTime real_time(const json& j) { return RealTime{Duration{figure(j)}}; }
  Energy energy(const json& j) { return Energy::microjoules(figure(j)); }
  HostTime host(RealTime t) const {
    return state_.started.host + (t - state_.started.real) - ahead_;
  }

  // If the wall clock was set back meanwhile, what had begun would begin only later. All times move
  // before the begin of this service, so that what readers have seen stays what they have seen.
  void find_ahead() {
    RealTime newest = state_.started.real;
    const auto add_time = [&](const json& t) { newest = std::max(newest, real_time(t)); };
    if (const auto& of = file_.at("readers"); !of.is_null()) add_time(of.at(1));
    for (const auto& domain : file_.at("domains")) {
      if (domain.at("counted").get<bool>()) add_time(domain.at("since"));
    }
    for (const auto& family : file_.at("families")) {
      for (const auto& entity : family.at("entities")) {
        for (const auto& series : entity.at(5)) add_time(series.at(2));
      }
    }
    ahead_ = newest - state_.started.real;
  }

  void add(Energy part, Energy& sum) {
    if (part.microjoules() > kLargest - sum.microjoules()) {
      is_damaged_ = true;
      return;
    }
    sum += part;
  }

  void add(const json& saved, std::vector<Energy>& out) {
    // Families have nothing of what was gone at the last save.
    for (std::size_t i = 0; i < std::min(places_.size(), saved.size()); ++i) {
      if (places_[i]) add(energy(saved.at(i)), out[*places_[i]]);
    }
  }

  void entity(const std::string& key, const json& saved, Family family, FamilyAccount& out) {
    Entity entity;
    entity.energies.resize(domains.size());
    const bool has_ended = family == Family::kProcess && !same_boot_;
    for (const auto& series : saved.at(5)) {
      const auto index = whole<std::size_t>(series.at(0));
      if (index >= places_.size()) {
        is_damaged_ = true;
        return;
      }
      const auto place = places_[index];
      if (!place) continue;
      if (has_ended) {
        add(energy(series.at(1)), out.ended[*place]);
        continue;
      }
      auto& e = entity.energies[*place].emplace();
      e.energy = energy(series.at(1));
      e.since = host(real_time(series.at(2)));
      ++out.series;
    }
    if (has_ended) return;
    auto& worker = entity.worker;
    worker.process = whole<std::uint64_t>(saved.at(0));
    worker.pid = whole<pid_t>(saved.at(1));
    worker.name = saved.at(2).get<std::string>();
    const auto& owner = saved.at(3);
    worker.owner = {owner.at(0), owner.at(1), owner.at(2), owner.at(3),
                    owner.at(4), owner.at(5), std::nullopt};
    if (!saved.at(4).is_null()) worker.owner.user = whole<std::uint32_t>(saved.at(4));
    entity.present = state_.started.host;
    entity.holds_gpu = saved.at(6).get<bool>();
    out.entities.emplace(key, std::move(entity));
  }

  // What the file does not divide in this family (it was not counted then) belongs to what ended,
  // so that the parts sum to the whole.
  void balance(FamilyAccount& out) {
    for (std::size_t d = 0; d < domains.size(); ++d) {
      if (!domains[d]) continue;
      const auto& domain = *domains[d];
      Energy parts;
      for (const Energy part : {domain.rest.value_or(Energy{}), domain.unattributed, out.outside[d],
                                out.undivided[d], out.other[d], out.ended[d]}) {
        add(part, parts);
      }
      for (const auto& [key, entity] : out.entities) {
        if (entity.energies[d]) add(entity.energies[d]->energy, parts);
      }
      if (!state_.domains[d].divided) continue;
      if (parts > domain.total) is_damaged_ = true;
      out.ended[d] += domain.total - parts;
    }
  }

  const json& file_;
  const MachineState& state_;
  const bool same_boot_;
  Duration ahead_{};  // of the times in the file, before this service's begin
  std::vector<std::optional<std::size_t>> places_;  // by saved domain; absent: it is gone
};

constexpr std::size_t kLargestState = std::size_t{256} << 20;
constexpr std::size_t kMostPatches = std::size_t{1} << 20;  // bytes, before the whole is written
constexpr std::size_t kGzipHeader = 10;

Result<std::string> member(const json& content) {
  auto out = gzip_text(json_text(content) + "\n");
  if (out.empty()) return fail(Errc::kUnavailable, "there is no memory to compress the counters");
  return out;
}

}  // namespace

json service_state(const MachineState& state, const EnergyAccounts& accounts,
                   std::string_view boot) {
  json domains = json::array();
  for (std::size_t d = 0; d < state.domains.size(); ++d) {
    const auto& account = accounts.domains()[d];
    const auto& counter = state.domains[d].counter;
    domains.push_back({{"counted", state.domains[d].counted},
                       {"key", key_of(state.snapshot.domains[d].domain)},
                       {"total", account.total.microjoules()},
                       {"rest", account.rest ? json(account.rest->microjoules()) : json(nullptr)},
                       {"unattributed", account.unattributed.microjoules()},
                       {"before_day", (account.total - state.day.energy(d, account)).microjoules()},
                       {"since", count(state.since(account))},
                       {"gaps", state.domains[d].gaps},
                       {"counter", counter ? json(counter->total.microjoules()) : json(nullptr)},
                       {"counter_at", counter ? json(count(counter->at)) : json(nullptr)},
                       {"between_services", state.domains[d].between_services.microjoules()}});
  }
  for (const auto& gone : state.gone) domains.push_back(json_value(gone));
  json families = json::object();
  for (const auto family : analysis::kAllFamilies) {
    const auto* const account = accounts.family(family);
    if (account != nullptr) families[std::string(to_string(family))] = family_json(state, *account);
  }
  return {
      {"schema", kSchema},
      {"saved", count(state.snapshot.time)},
      {"boot", boot},
      {"missing", state.missing_time.count()},
      {"day", state.day.begin ? json(count(*state.day.begin)) : json(nullptr)},
      {"readers", state.readers ? json{state.readers->count, count(state.real(state.readers->seen))}
                                : json(nullptr)},
      {"domains", std::move(domains)},
      {"families", std::move(families)}};
}

Result<void> restore_service_state(const json& file, std::string_view name, std::string_view boot,
                                   RealTime now, MachineState& state, EnergyAccounts& accounts) {
  try {
    if (file.at("schema") != kSchema) {
      return fail(Errc::kCorrupt,
                  fmt::format("{} is no state of this version of jouleprof serve", name));
    }
    Saved saved(file, state, !boot.empty() && file.at("boot") == boot);
    std::map<Family, FamilyAccount> families;
    for (const auto family : analysis::kAllFamilies) {
      if (accounts.family(family) != nullptr) families.emplace(family, saved.family(family));
    }
    if (saved.is_damaged()) {
      return fail(Errc::kCorrupt,
                  fmt::format("{} is damaged: it has figures that no service writes", name));
    }
    state.missing_time = saved.missing + std::max(now - saved.last, Duration{});
    state.continued_from = saved.last;
    state.day = saved.day;
    state.gone = std::move(saved.gone);
    state.readers = saved.readers;
    for (std::size_t d = 0; d < saved.domains.size(); ++d) {
      if (!saved.domains[d]) continue;
      auto& domain = state.domains[d];
      domain.counted = true;
      domain.gaps = saved.gaps[d];
      domain.between_services = saved.between_services[d];
      domain.before = saved.counters[d];
    }
    accounts.restore(saved.domains, std::move(families));
  } catch (const json::exception& e) {
    return fail(Errc::kCorrupt, fmt::format("{} is damaged: {}", name, one_line(e.what())));
  }
  return {};
}

Result<json> StateFile::read(const std::filesystem::path& path) {
  const auto file = read_file(path, kLargestState);
  if (!file && file.error().code == Errc::kNotFound) return json();
  if (!file) return forward_error(file);
  const auto damaged = [&](std::string_view what) {
    return fail(Errc::kCorrupt, fmt::format("{} is damaged: {}", path.string(), what));
  };
  std::string_view rest = *file;
  try {
    if (rest.starts_with('{')) return json_value(rest, true);
    const auto header = rest.substr(0, kGzipHeader);
    const auto whole = gunzip_member(rest, kLargestState);
    if (!whole) return damaged("its first state cannot be read");
    auto state = json_value(*whole, true);
    while (!rest.empty()) {
      const auto patch = gunzip_member(rest, kLargestState);
      if (patch) {
        state.patch_inplace(json_value(*patch, true));
      } else if (rest.find(header, 1) == std::string_view::npos) {
        break;  // the last write was cut off: its counters were not shown
      } else {
        return damaged("a part in the middle cannot be read");
      }
    }
    return state;
  } catch (const json::exception& e) {
    return damaged(one_line(e.what()));
  }
}

Result<void> StateFile::save(json state) {
  const auto before = std::exchange(last_, nullptr);
  if (before && size_ - whole_ < std::max(kMostPatches, whole_)) {
    const auto patch = member(json::diff(*before, state));
    if (patch && append_to_file(path_, size_, *patch)) {
      size_ += patch->size();
      last_ = std::make_shared<const json>(std::move(state));
      return {};
    }
  }
  const auto whole = member(state);
  if (!whole) return forward_error(whole);
  if (auto saved = replace_file(path_, *whole); !saved) return saved;
  size_ = whole_ = whole->size();
  last_ = std::make_shared<const json>(std::move(state));
  return {};
}

}  // namespace jouleprof::session
