#include "session/windows/window_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "session/windows/energy_source.h"
#include "session/windows/name_table.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHistory = 10min;
constexpr Duration kAskAgain = 50ms;  // of the sensors, while an answer is awaited
constexpr Duration kLookAgain = 20ms;
constexpr Duration kTidyPeriod = 1s;
constexpr Duration kFuture = 1s;  // a window that ends later than so is none
constexpr Duration kMostTimeout = 24h;
constexpr std::size_t kMostQuestions = 4096;  // of one program at once

HostTime host(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

std::vector<model::Domain> measured(const std::vector<OfferedDomain>& offered) {
  std::vector<model::Domain> domains;
  for (const auto& o : offered) {
    if (o.measured) domains.push_back(o.domain);
  }
  return domains;
}

}  // namespace

WindowService::WindowService(std::vector<OfferedDomain> domains, std::vector<model::Sensor> sensors)
    : offered_(std::move(domains)), live_(measured(offered_), std::move(sensors), kHistory) {
  for (const auto& domain : live_.ledger().domains()) measured_.push_back(domain.id);
}

void WindowService::add_client(ClientId client, pid_t pid, HostTime now) {
  clients_[client].pid = pid;
  if (next_tidy_ == HostTime{}) next_tidy_ = now + kTidyPeriod;
}

void WindowService::remove_client(ClientId client) {
  if (const auto known = clients_.find(client); known != clients_.end()) {
    for (const auto& [number, name] : known->second.names) live_.ledger().forget(name.number);
    clients_.erase(known);
  }
  std::erase_if(questions_, [client](const Question& q) { return q.client == client; });
}

bool WindowService::take(ClientId id, ProgramMessage message, HostTime now) {
  now_ = now;
  Client& client = clients_[id];
  if (!client.welcome && !std::holds_alternative<Hello>(message)) return false;
  return std::visit([&](auto&& m) { return take(id, client, std::move(m)); }, std::move(message));
}

bool WindowService::take(ClientId id, Client& client, Hello&& hello) {
  if (client.welcome) return false;
  if (hello.protocol != kWindowProtocol) {
    replies_.push_back(
        {id, Refused{kWindowProtocol,
                     fmt::format("`jouleprof run` uses version {} of the window protocol, the "
                                 "program's library version {}; install the same release of both",
                                 kWindowProtocol, hello.protocol)}});
    return true;
  }
  client.welcome = true;
  replies_.push_back({id, Welcome{kWindowProtocol, offered_}});
  read_request_ = true;  // so that a window that begins now has a reading before it
  return true;
}

// nullptr for a new one where there is no room; the program's NameTable has none then, either.
WindowService::Client::Name* WindowService::name(Client& client, std::uint32_t number) {
  if (client.names.size() >= NameTable::kMost && !client.names.contains(number)) return nullptr;
  const auto [at, is_new] = client.names.try_emplace(number);
  if (!is_new) return &at->second;
  at->second.number = next_name_++;
  if (client.names.size() == NameTable::kMost) {
    warnings_.push_back(fmt::format("process {} has {}", client.pid, NameTable::kFull));
  }
  return &at->second;
}

bool WindowService::take(ClientId, Client& client, Names&& names) {
  for (auto& text : names.names) {
    if (Client::Name* known = name(client, names.first++)) known->text = std::move(text);
  }
  return true;
}

bool WindowService::take(ClientId, Client& client, Devices&& devices) {
  const auto has = [&](model::DomainId id) {
    return std::find(devices.domains.begin(), devices.domains.end(), id) != devices.domains.end();
  };
  std::vector<model::DomainId> some;
  std::copy_if(measured_.begin(), measured_.end(), std::back_inserter(some), has);
  client.devices = some.size() == measured_.size() ? model::DeviceSet{} : model::DeviceSet(some);
  return true;
}

bool WindowService::take(ClientId, Client& client, Lost&& lost) {
  warnings_.push_back(fmt::format(
      "process {} lost {} of its windows: it ended them faster than they could be taken",
      client.pid, lost.count));
  return true;
}

bool WindowService::take(ClientId, Client& client, Windows&& windows) {
  if (windows.ring) client.received[*windows.ring] += windows.windows.size();
  for (const auto& window : windows.windows) {
    if (window.end < window.begin || window.begin < 0 || host(window.end) > now_ + kFuture) {
      continue;
    }
    const Client::Name* known = name(client, window.name);
    // What is not resolved in full detail any more would only take memory.
    if (known != nullptr && host(window.end) > now_ - kHistory) {
      live_.ledger().add(known->number, host(window.begin), host(window.end));
    }
    record(client, known != nullptr ? known->text : std::string(), windows.thread, window);
  }
  return true;
}

void WindowService::leave_open(ClientId id, const std::vector<spans::OpenWindow>& windows,
                               HostTime now, std::string_view when) {
  auto texts = model::texts_of(named(id, windows, now), now, when);
  warnings_.insert(warnings_.end(), std::make_move_iterator(texts.begin()),
                   std::make_move_iterator(texts.end()));
}

std::vector<model::OpenWindow> WindowService::named(ClientId id,
                                                    const std::vector<spans::OpenWindow>& windows,
                                                    HostTime now) const {
  std::vector<model::OpenWindow> open;
  const auto client = clients_.find(id);
  if (client == clients_.end() || !client->second.welcome) return open;
  for (const auto& window : windows) {
    if (host(window.begin) > now) continue;
    const auto known = client->second.names.find(window.name);
    open.push_back({known != client->second.names.end() ? known->second.text : std::string(),
                    host(window.begin), client->second.pid});
  }
  return open;
}

void WindowService::record(const Client& client, const std::string& name, pid_t thread,
                           const spans::WindowRecord& window) {
  const bool is_recorded = quota_.take();
  if (auto warning = quota_.warning()) warnings_.push_back(std::move(*warning));
  if (!is_recorded) return;
  windows_.push_back({name, host(window.begin), host(window.end), client.pid, thread,
                      (window.flags & kDeviceTime) != 0, client.devices});
}

bool WindowService::take(ClientId id, Client& client, EnergyQuestion&& q) {
  return ask(client, {id, q.id, q.begin, q.end, q.deadline, std::nullopt});
}

bool WindowService::take(ClientId id, Client&, SnapshotQuestion&& q) {
  FoundEnergies found;
  found.snapshot = live_.snapshot(ClockPoint::now(), q.since);
  replies_.push_back({id, Answer{q.id, std::move(found)}});
  return true;
}

bool WindowService::take(ClientId id, Client& client, TotalQuestion&& q) {
  const auto known = client.names.find(q.name);
  const auto end =
      known == client.names.end() ? std::nullopt : live_.ledger().latest_end(known->second.number);
  if (!end) {
    const std::string text = known == client.names.end() ? "" : known->second.text;
    replies_.push_back(
        {id, Answer{q.id, fail(Errc::kNotFound,
                               fmt::format("no window named '{}' has ended yet", text))}});
    return true;
  }
  return ask(client, {id, q.id, *end, *end, q.deadline, known->second.number});
}

bool WindowService::ask(Client& client, Question question) {
  if (question.begin < HostTime{} || question.end > now_ + kMostTimeout ||
      question.end < question.begin) {
    replies_.push_back({question.client, Answer{question.id, fail(Errc::kInvalidArgument,
                                                                  "the interval is not valid")}});
    return true;
  }
  if (++client.questions > kMostQuestions) return false;
  question.deadline = std::min(question.deadline, now_ + kMostTimeout);
  questions_.push_back(question);
  return true;
}

std::uint64_t WindowService::received(ClientId client, std::uint32_t ring) const {
  const auto known = clients_.find(client);
  if (known == clients_.end()) return 0;
  const auto& by_ring = known->second.received;
  const auto count = by_ring.find(ring);
  return count == by_ring.end() ? 0 : count->second;
}

void WindowService::append(const model::Readings& readings) { live_.append(readings); }

FoundEnergies WindowService::found(std::vector<Result<model::Measurement>> energies) const {
  FoundEnergies out;
  for (std::size_t i = 0; i < energies.size() && i < measured_.size(); ++i) {
    out.energies.push_back({measured_[i], std::move(energies[i])});
  }
  return out;
}

void WindowService::answer(const Question& question) {
  replies_.push_back({question.client, Answer{question.id, energies_of(question)}});
  --clients_[question.client].questions;
}

Result<FoundEnergies> WindowService::energies_of(const Question& question) {
  if (!question.total) return found(live_.ledger().energy(question.begin, question.end));
  auto total = live_.ledger().total(*question.total);
  if (!total) return fail(Errc::kNotFound, "the windows of this name are not known any more");
  FoundEnergies energies = found(std::move(total->energies));
  energies.count = total->count;
  energies.resolved_count = total->resolved_count;
  energies.length = total->length;
  return energies;
}

void WindowService::look(HostTime now) {
  waiting_ = false;
  next_look_ = HostTime::max();
  if (clients_.empty()) return;
  std::erase_if(questions_, [&](const Question& q) {
    if (now >= q.deadline || live_.ledger().knows(q.end, now)) {
      answer(q);
      return true;
    }
    const HostTime ready = std::min(q.end + live_.ledger().delay(), q.deadline);
    waiting_ = waiting_ || now >= ready;
    next_look_ = std::min({next_look_, q.deadline, now >= ready ? now + kLookAgain : ready});
    return false;
  });
  if (waiting_ && now >= next_read_request_) {
    read_request_ = true;
    next_read_request_ = now + kAskAgain;
  }
  if (now >= next_tidy_) {
    live_.ledger().tidy(now);
    next_tidy_ = now + kTidyPeriod;
  }
  next_look_ = std::min(next_look_, next_tidy_);
}

void WindowService::answer_all() {
  for (const auto& question : questions_) answer(question);
  questions_.clear();
}

}  // namespace jouleprof::session
