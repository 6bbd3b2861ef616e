#include "spans/procs/cgroup_time.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::spans {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// A process's own time is read in steps of 10 ms, so that group and processes differ by some.
constexpr Duration kTick = milliseconds{10};

std::optional<Duration> usage_in(std::string_view text, bool unified) {
  if (!unified) {
    const auto value = parse_integer(trim(text));
    if (!value || *value < 0) return std::nullopt;
    return Duration{*value};
  }
  for (const auto line : split(text, '\n')) {
    constexpr std::string_view kKey = "usage_usec ";
    if (!line.starts_with(kKey)) continue;
    const auto value = parse_integer(line.substr(kKey.size()));
    if (!value || *value < 0 || *value > Duration::max().count() / 1000) return std::nullopt;
    return microseconds{*value};
  }
  return std::nullopt;
}

}  // namespace

CgroupTimes::CgroupTimes(const fs::path& root) : root_(root) {
  const auto mounts = read_file(root / "proc/self/mountinfo");
  if (!mounts) return;
  for (const auto line : split(*mounts, '\n')) {
    // id parent device root mount-point options ... - type source options (proc_pid_mountinfo(5))
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto fields = split_blanks(line.substr(0, dash));
    const auto kind = split_blanks(line.substr(dash + 3));
    if (fields.size() < 5 || kind.size() < 3) continue;
    const Mount mount{std::string(fields[3]),
                      root / fs::path(std::string(fields[4])).relative_path()};
    const auto options = split(kind[2], ',');
    const bool counts = std::find(options.begin(), options.end(), "cpuacct") != options.end();
    if (kind[0] == "cgroup2" && !unified_) unified_ = mount;
    if (kind[0] == "cgroup" && counts && !cpuacct_) cpuacct_ = mount;
  }
}

std::string CgroupTimes::keep(const ProcessGroup& group) {
  const auto& mount = group.unified ? unified_ : cpuacct_;
  std::string_view below = group.path;
  if (!mount || below.find("/..") != std::string_view::npos) return {};
  if (mount->within != "/") {
    if (!below.starts_with(mount->within)) return {};
    below.remove_prefix(mount->within.size());
  }
  while (below.ends_with('/')) below.remove_suffix(1);
  if (below.size() < 2) return {};
  const std::string key((group.unified ? "2:" : "1:") + std::string(below));
  const auto [found, is_new] = groups_.try_emplace(key);
  if (is_new) {
    auto& added = found->second;
    added.owner = owner_of_cgroup_path(group.path);
    added.unified = group.unified;
    added.is_new = true;
    const fs::path folder = mount->at / fs::path(std::string(below)).relative_path();
    added.file =
        std::make_unique<KeptFile>(folder / (group.unified ? "cpu.stat" : "cpuacct.usage"));
    const auto text = added.file->read();
    if (text) added.total = usage_in(*text, added.unified);
    if (!added.total) {
      groups_.erase(found);
      return {};
    }
  }
  return key;
}

CgroupTimes::Group* CgroupTimes::find(const std::string& key) {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : &found->second;
}

void CgroupTimes::read() {
  for (auto at = groups_.begin(); at != groups_.end();) {
    auto& group = at->second;
    const auto text = group.file->read();
    const auto total = text ? usage_in(*text, group.unified) : std::nullopt;
    if (!total) {  // its last time is in that of the group above
      at = groups_.erase(at);
      continue;
    }
    group.whole = std::max(*total - *group.total, Duration{});
    group.used = group.whole;
    group.total = total;
    group.is_new = false;
    group.processes = 0;
    group.listed = group.unlisted = Duration{};
    ++at;
  }
  for (const auto& [key, group] : groups_) {
    for (auto slash = key.rfind('/'); slash != std::string::npos && slash > 2;
         slash = key.rfind('/', slash - 1)) {
      const auto above = groups_.find(key.substr(0, slash));
      if (above == groups_.end()) continue;
      above->second.used = std::max(above->second.used - group.whole, Duration{});
      break;
    }
  }
}

void CgroupTimes::settle() {
  for (auto& [key, group] : groups_) {
    if (group.is_new) continue;
    group.balance += group.used - group.listed;
    const Duration tolerance = kTick * static_cast<int>(group.processes + 1);
    group.balance = std::max(group.balance, -tolerance);
    if (group.balance <= tolerance) continue;
    group.unlisted = group.balance;
    group.balance = Duration{};
  }
}

}  // namespace jouleprof::spans
