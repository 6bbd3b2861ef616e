#include "session/machine/machine_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace jouleprof::session {
namespace {

using analysis::MachineWindow;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

}  // namespace

Result<void> MachineWindows::check(std::string_view name) const {
  if (!name.empty() && name.size() <= options_.longest_name &&
      std::ranges::all_of(name, is_name_character)) {
    return {};
  }
  return fail(Errc::kInvalidArgument,
              fmt::format("a window's name has 1 to {} letters, digits, '.', '_' and '-'",
                          options_.longest_name));
}

Result<MachineWindow> MachineWindows::begin(std::string_view name, HostTime now,
                                            std::string_view caller) {
  if (auto ok = check(name); !ok) return forward_error(ok);
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(name);
  if (found != windows_.end() && !found->second.window.end) {
    return fail(Errc::kUnsupported,
                fmt::format("the window '{}' is open; end it first, or use another name", name));
  }
  std::size_t open = 0;
  std::size_t own = 0;
  for (const auto& [other, begun] : windows_) {
    if (begun.window.end) continue;
    ++open;
    if (begun.caller == caller) ++own;
  }
  if (own >= options_.most_open) {
    return fail(
        Errc::kUnavailable,
        fmt::format("{} windows of this caller are open, which is the limit; end one first", own));
  }
  if (open >= options_.most_open_of_all) {
    return fail(Errc::kUnavailable,
                fmt::format("{} windows are open, which is the limit; try again later", open));
  }
  Begun begun;
  begun.window.name = name;
  begun.window.begin = now;
  begun.window.begin_time = analysis::wall_time(ClockPoint::now(), now);
  begun.caller = caller;
  marks_.push_back(now);
  return windows_.insert_or_assign(begun.window.name, begun).first->second.window;
}

Result<MachineWindow> MachineWindows::end(std::string_view name, HostTime now) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(name);
  if (found == windows_.end()) {
    return fail(Errc::kNotFound, fmt::format("there is no window '{}'; begin it first", name));
  }
  auto& window = found->second.window;
  if (window.end) return window;
  window.end = now;
  window.end_time = analysis::wall_time(ClockPoint::now(), now);
  marks_.push_back(now);
  if (on_end_) on_end_();
  return window;
}

Result<MachineWindow> MachineWindows::find(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(name);
  if (found == windows_.end()) {
    return fail(Errc::kNotFound, fmt::format("there is no window '{}'; begin it first", name));
  }
  return found->second.window;
}

std::vector<HostTime> MachineWindows::take_marks() {
  const std::lock_guard lock(mutex_);
  return std::exchange(marks_, {});
}

std::optional<HostTime> MachineWindows::wanted() const {
  const std::lock_guard lock(mutex_);
  std::optional<HostTime> out;
  for (const auto& [name, begun] : windows_) {
    const auto& w = begun.window;
    if (w.end && !w.is_settled) out = std::max(out.value_or(*w.end), *w.end);
  }
  return out;
}

std::optional<HostTime> MachineWindows::oldest() const {
  const std::lock_guard lock(mutex_);
  std::optional<HostTime> out;
  for (const auto& [name, begun] : windows_) {
    const auto& w = begun.window;
    if (!w.is_settled) out = std::min(out.value_or(w.begin), w.begin);
  }
  return out;
}

void MachineWindows::settle(HostTime known, analysis::LiveEnergy& ledger) {
  const std::lock_guard lock(mutex_);
  for (auto& [name, begun] : windows_) {
    auto& w = begun.window;
    if (!w.end || w.is_settled || *w.end > known) continue;
    w.energies = ledger.energy(w.begin, *w.end);
    w.is_settled = true;
  }
}

void MachineWindows::interrupt() {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [](const auto& entry) { return entry.second.window.end.has_value(); });
}

void MachineWindows::tidy(HostTime now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [&](const auto& entry) {
    const auto& w = entry.second.window;
    return w.end ? now - *w.end > options_.keep_ended : now - w.begin > options_.longest;
  });
  std::map<std::string, std::size_t> ended;  // by caller
  std::size_t all = 0;
  for (const auto& [name, begun] : windows_) {
    if (!begun.window.end) continue;
    ++ended[begun.caller];
    ++all;
  }
  for (; all > options_.most_ended; --all) {
    const auto most = std::ranges::max_element(
        ended, [](const auto& a, const auto& b) { return a.second < b.second; });
    auto oldest = windows_.end();
    for (auto at = windows_.begin(); at != windows_.end(); ++at) {
      if (!at->second.window.end || at->second.caller != most->first) continue;
      if (oldest == windows_.end() || *at->second.window.end < *oldest->second.window.end) {
        oldest = at;
      }
    }
    --most->second;
    windows_.erase(oldest);
  }
}

}  // namespace jouleprof::session
