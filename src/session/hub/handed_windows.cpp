#include "session/hub/handed_windows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/file.h"

namespace jouleprof::session {
namespace {

constexpr Duration kFuture = std::chrono::seconds{1};  // a window that ends later than so is none

HostTime host(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

// False of a process that has ended or runs another program by now.
bool has_rings(pid_t pid) {
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid));
  return maps && maps->find(spans::SharedRings::kName) != std::string::npos;
}

}  // namespace

void HandedWindows::add(ClientId id, pid_t pid, Descriptor rings) {
  Client& client = clients_[id];
  client.pid = pid;
  client.rings = std::move(rings);
}

void HandedWindows::remove(ClientId id, HostTime now, bool has_ended) {
  const auto at = clients_.find(id);
  if (at == clients_.end()) return;
  Client& client = at->second;
  if (client.rings) {
    const auto overwritten = spans::read_left(
        client.rings.get(), [&](std::uint32_t ring) { return client.received[ring]; },
        [&](pid_t thread, const auto& window) { record(client, thread, window, now); });
    if (overwritten > 0) take(id, meters::Lost{overwritten}, now);
    const auto open = spans::read_left_open(client.rings.get());
    const char* const when = open.closed ? "its monitor was closed"
                             : has_ended ? "the process ended"
                                         : "the recording ended";
    for (auto& text : model::texts_of(named(client, open.windows, now), now, when)) {
      warn(std::move(text));
    }
    if (has_ended && !open.closed && has_rings(client.pid)) {
      warn(
          fmt::format("process {} lost its connection (has it closed all descriptors?): its later "
                      "windows are not in this recording; make its monitor after that",
                      client.pid));
    }
  }
  clients_.erase(at);
}

// nullptr for a new one where there is no room; the program's NameTable has none then, either.
const std::string* HandedWindows::name(Client& client, std::uint32_t number) {
  if (client.names.size() >= NameTable::kMost && !client.names.contains(number)) return nullptr;
  const auto [at, is_new] = client.names.try_emplace(number);
  if (is_new && client.names.size() == NameTable::kMost) {
    warn(fmt::format("process {} has {}", client.pid, NameTable::kFull));
  }
  return &at->second;
}

bool HandedWindows::take(ClientId id, meters::Names&& names, HostTime) {
  Client& client = clients_.at(id);
  for (auto& text : names.names) {
    const std::uint32_t number = names.first++;
    if (name(client, number) != nullptr) client.names[number] = std::move(text);
  }
  return true;
}

bool HandedWindows::take(ClientId id, meters::Devices&& devices, HostTime) {
  std::vector<model::DomainId> some;
  std::ranges::copy_if(measured_, std::back_inserter(some), [&](auto domain) {
    const auto& all = devices.domains;
    return std::ranges::find(all, domain) != all.end();
  });
  clients_.at(id).devices =
      some.size() == measured_.size() ? model::DeviceSet{} : model::DeviceSet(some);
  return true;
}

bool HandedWindows::take(ClientId id, meters::Lost&& lost, HostTime) {
  warn(
      fmt::format("process {} lost {} of its windows: it ended them faster than they could be "
                  "taken",
                  clients_.at(id).pid, lost.count));
  return true;
}

bool HandedWindows::take(ClientId id, meters::Windows&& windows, HostTime now) {
  if (windows.ring && *windows.ring >= spans::SharedRings::kMost) return false;
  Client& client = clients_.at(id);
  if (windows.ring) client.received[*windows.ring] += windows.windows.size();
  for (const auto& window : windows.windows) record(client, windows.thread, window, now);
  return true;
}

void HandedWindows::record(Client& client, pid_t thread, const spans::WindowRecord& window,
                           HostTime now) {
  if (window.end < window.begin || window.begin < 0 || host(window.end) > now + kFuture) return;
  const std::string* const known = name(client, window.name);
  const bool is_recorded = quota_.take();
  if (auto warning = quota_.warning()) warn(std::move(*warning));
  if (!is_recorded) return;
  const std::lock_guard lock(mutex_);
  windows_.push_back({known != nullptr ? *known : "", host(window.begin), host(window.end),
                      client.pid, thread, (window.flags & kDeviceTime) != 0, client.devices});
}

std::vector<model::OpenWindow> HandedWindows::named(const Client& client,
                                                    const std::vector<spans::OpenWindow>& windows,
                                                    HostTime now) {
  std::vector<model::OpenWindow> open;
  for (const auto& window : windows) {
    if (host(window.begin) > now) continue;
    const auto known = client.names.find(window.name);
    open.push_back(
        {known != client.names.end() ? known->second : "", host(window.begin), client.pid});
  }
  return open;
}

void HandedWindows::look_at_open_windows(HostTime now) {
  std::vector<model::OpenWindow> open;
  for (const auto& [id, client] : clients_) {
    if (!client.rings) continue;
    auto found = named(client, spans::read_left_open(client.rings.get()).windows, now);
    std::ranges::move(found, std::back_inserter(open));
  }
  const std::lock_guard lock(mutex_);
  open_ = std::move(open);
}

void HandedWindows::take(std::vector<model::Window>& windows, std::vector<std::string>& warnings) {
  const std::lock_guard lock(mutex_);
  windows = std::exchange(windows_, {});
  warnings = std::exchange(warnings_, {});
}

std::vector<model::OpenWindow> HandedWindows::open_windows() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

void HandedWindows::warn(std::string text) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(std::move(text));
}

}  // namespace jouleprof::session
