#include "spans/procs/cgroup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::spans {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// This process's own cgroup v2 folder.
std::optional<fs::path> own_folder(const fs::path& root) {
  const auto groups = read_file(root / "proc/self/cgroup");
  const auto mounts = read_file(root / "proc/self/mountinfo");
  if (!groups || !mounts) return std::nullopt;
  std::optional<std::string> own;
  for (const auto line : split(*groups, '\n')) {
    if (line.starts_with("0::/")) own = line.substr(3);
  }
  // A path with ".." lies outside what this process is shown of the hierarchy.
  if (!own || own->find("/..") != std::string::npos) return std::nullopt;
  for (const auto line : split(*mounts, '\n')) {
    // id parent device root mount-point options ... - type source options (proc_pid_mountinfo(5))
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos || !line.substr(dash + 3).starts_with("cgroup2 ")) continue;
    const auto fields = split_blanks(line.substr(0, dash));
    if (fields.size() < 5) continue;
    std::string_view below = *own;
    if (fields[3] != "/") {
      if (!below.starts_with(fields[3])) continue;
      below.remove_prefix(fields[3].size());
    }
    const auto trimmed = fs::path(std::string(below)).relative_path();
    const fs::path folder = root / fs::path(std::string(fields[4])).relative_path() / trimmed;
    std::error_code ignored;
    if (fs::is_directory(folder, ignored)) return folder.lexically_normal();
  }
  return std::nullopt;
}

// Runtimes (Go, Java, .NET) read the limits of their own group, and many not those above it: in a
// group without them they would begin threads and heaps for the whole machine.
bool has_limits(const fs::path& folder) {
  for (const char* name : {"cpu.max", "memory.max", "memory.high"}) {
    const auto limit = read_attribute(folder / name);
    if (limit && !limit->starts_with("max")) return true;
  }
  return false;
}

bool has_mark(const fs::path& folder, const char* name) {
  char value = 0;
  return getxattr(folder.c_str(), name, &value, 1) == 1 && value == '1';
}

// Where systemd manages the tree, root may write anywhere and should not: only groups marked as
// delegated are others' to divide. (systemd.io/CGROUP_DELEGATION)
bool is_delegated(const fs::path& own, const fs::path& root) {
  std::error_code ignored;
  if (geteuid() != 0 || !fs::exists(root / "run/systemd/system", ignored)) return true;
  for (fs::path folder = own; folder.has_relative_path(); folder = folder.parent_path()) {
    if (has_mark(folder, "user.delegate") || has_mark(folder, "trusted.delegate")) return true;
  }
  return false;
}

Result<void> write_pid(const fs::path& folder, pid_t pid) {
  const fs::path file = folder / "cgroup.procs";
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return system_failure(fmt::format("cannot open {}", file.string()), errno);
  const std::string text = fmt::format("{}\n", pid);
  const ssize_t n = ::write(fd, text.data(), text.size());
  const int err = errno;
  ::close(fd);
  if (n < 0) {
    return system_failure(fmt::format("cannot move process {} to {}", pid, folder.string()), err);
  }
  return {};
}

void append_members(const fs::path& folder, std::vector<pid_t>& out) {
  const auto text = read_file(folder / "cgroup.procs");
  if (!text) return;
  for (const auto word : split_blanks(*text)) {
    if (const auto pid = parse_integer(word)) out.push_back(static_cast<pid_t>(*pid));
  }
}

// `folder` and all groups below it, the deepest first.
std::vector<fs::path> groups_below(const fs::path& folder) {
  std::vector<fs::path> all;
  for (const auto& name : folders_in(folder)) {
    auto below = groups_below(folder / name);
    all.insert(all.end(), below.begin(), below.end());
  }
  all.push_back(folder);
  return all;
}

// Removes the groups of tools that were killed: `name` and others that have another pid after its
// last '-', where that process has ended. A group that holds processes or groups stays.
void remove_left_over(const fs::path& own, std::string_view name) {
  const auto stem = name.substr(0, name.rfind('-') + 1);
  for (const auto& left : folders_in(own)) {
    if (left != name) {
      if (stem.empty() || !left.starts_with(stem)) continue;
      const auto pid = parse_integer(std::string_view(left).substr(stem.size()));
      if (!pid || *pid <= 0 || *pid > std::numeric_limits<pid_t>::max()) continue;
      if (::kill(static_cast<pid_t>(*pid), 0) == 0 || errno != ESRCH) continue;
    }
    ::rmdir((own / left).c_str());
  }
}

// A process's own time is read in steps of 10 ms, so that group and processes differ by some.
constexpr Duration kTick = milliseconds{10};
// And the last process of a large machine some time after its group, by up to this part of it.
constexpr int kReadLater = 16;

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

Result<Cgroup> Cgroup::create(const std::string& name, const fs::path& root) {
  const auto own = own_folder(root);
  if (!own) {
    return fail(Errc::kUnsupported, "no cgroup v2 hierarchy holds this process");
  }
  if (!is_delegated(*own, root)) {
    return fail(Errc::kUnsupported,
                fmt::format("{} is systemd's and was not delegated", own->string()));
  }
  if (has_limits(*own)) {
    return fail(Errc::kUnsupported, fmt::format("programs read the limits of {}", own->string()));
  }
  remove_left_over(*own, name);
  const fs::path folder = *own / name;
  if (::mkdir(folder.c_str(), 0755) != 0) {
    return system_failure(fmt::format("cannot create {}", folder.string()), errno);
  }
  return Cgroup(folder);
}

Cgroup::Cgroup(Cgroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}

Cgroup& Cgroup::operator=(Cgroup&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

Cgroup::~Cgroup() {
  if (path_.empty()) return;
  std::vector<pid_t> left;
  list(left);
  for (const pid_t pid : left) static_cast<void>(write_pid(path_.parent_path(), pid));
  for (const auto& folder : groups_below(path_)) ::rmdir(folder.c_str());
}

Result<void> Cgroup::add(pid_t pid) const { return write_pid(path_, pid); }

void Cgroup::list(std::vector<pid_t>& out) const {
  for (const auto& folder : groups_below(path_)) append_members(folder, out);
}

CgroupTimes::CgroupTimes(const fs::path& root) {
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
    const bool counts = std::ranges::find(options, "cpuacct") != options.end();
    if (kind[0] == "cgroup2" && !unified_) unified_ = mount;
    if (kind[0] == "cgroup" && counts && !cpuacct_) cpuacct_ = mount;
  }
}

std::string CgroupTimes::keep(const ProcessGroup& group, bool began) {
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
    const auto before = at_first_->extract(key);  // a later group may have the name
    const Duration used = *added.total - (before ? before.mapped() : Duration{});
    if (began && used >= Duration{} && used <= busy_) {
      added.is_new = false;
      added.whole = used;
      divide();
    }
    // A job has its steps' time and a pod its containers', also of those that no look finds.
    ProcessGroup above = group;
    above.path.resize(above.path.find_last_not_of('/') + 1);
    above.path.resize(std::min(above.path.rfind('/'), above.path.size()));
    if (owner_of_cgroup_path(above.path) != model::Owner{}) keep(above, began);
  }
  return key;
}

CgroupTimes::Group* CgroupTimes::find(const std::string& key) {
  const auto found = groups_.find(key);
  return found == groups_.end() ? nullptr : &found->second;
}

void CgroupTimes::read(Duration busy) {
  busy_ = busy;
  if (!at_first_) {
    at_first_.emplace();
    for (const auto* mount : {&unified_, &cpuacct_}) {
      if (!*mount) continue;
      const bool unified = mount == &unified_;
      for (const auto& folder : groups_below((*mount)->at)) {
        const auto text = read_file(folder / (unified ? "cpu.stat" : "cpuacct.usage"));
        const auto total = text ? usage_in(*text, unified) : std::nullopt;
        if (!total || *total == Duration{}) continue;
        const auto below = folder.lexically_relative((*mount)->at).string();
        (*at_first_)[(unified ? "2:/" : "1:/") + below] = *total;
      }
    }
  }
  for (auto at = groups_.begin(); at != groups_.end();) {
    auto& group = at->second;
    const auto text = group.file->read();
    const auto total = text ? usage_in(*text, group.unified) : std::nullopt;
    if (!total) {  // its last time is in that of the group above
      at = groups_.erase(at);
      continue;
    }
    group.whole = std::max(*total - *group.total, Duration{});
    group.total = total;
    group.is_new = false;
    group.processes = 0;
    group.listed = group.unlisted = Duration{};
    ++at;
  }
  divide();
}

// Of what a group used, what groups kept below it used is theirs.
void CgroupTimes::divide() {
  for (auto& [key, group] : groups_) group.used = group.whole;
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

// The group whose time has that of this group's processes: itself, or the one above it if it is
// new.
CgroupTimes::Group* CgroupTimes::counting(const std::string& key) {
  auto at = groups_.find(key);
  if (at == groups_.end()) return nullptr;
  for (auto slash = key.rfind('/'); at == groups_.end() || at->second.is_new;
       slash = key.rfind('/', slash - 1)) {
    if (slash == std::string::npos || slash <= 2) return nullptr;
    at = groups_.find(key.substr(0, slash));
  }
  return &at->second;
}

void CgroupTimes::list(const std::string& key, Duration used) {
  auto* const group = counting(key);
  if (group == nullptr) return;
  ++group->processes;
  group->listed += used;
}

void CgroupTimes::unlist(const std::string& key, Duration used) {
  auto* const group = counting(key);
  if (group == nullptr) return;
  --group->processes;
  group->listed -= used;
}

std::optional<Duration> CgroupTimes::room(const std::string& key, Duration used) {
  const auto* const group = counting(key);
  if (group == nullptr) return std::nullopt;
  return std::clamp(group->balance + group->used - group->listed, Duration{}, used);
}

bool CgroupTimes::lacks_process(const std::string& key) const {
  const auto found = groups_.find(key);
  if (found == groups_.end() || found->second.is_new) return false;
  const auto& group = found->second;
  return group.listed - group.used - group.balance > group.tolerance() + group.listed / kReadLater;
}

Duration CgroupTimes::Group::tolerance() const { return kTick * static_cast<int>(processes + 1); }

void CgroupTimes::settle() {
  for (auto& [key, group] : groups_) {
    if (group.is_new) continue;
    group.balance += group.used - group.listed;
    const Duration tolerance = group.tolerance();
    group.balance = std::max(group.balance, -tolerance);
    if (group.balance <= tolerance) continue;
    group.unlisted = group.balance;
    group.balance = Duration{};
  }
}

}  // namespace jouleprof::spans
