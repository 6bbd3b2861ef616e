#include "spans/procs/machine_processes.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace jouleprof::spans {
namespace {

using namespace std::chrono_literals;

constexpr pid_t kInit = 1;
constexpr pid_t kKernelThreads = 2;  // the parent of all threads of the kernel
// A scheduler moves a new process into its group: it is looked at again soon, later now and then.
constexpr unsigned kFirstLooks = 3;
constexpr unsigned kYoung = 60;  // looks
constexpr unsigned kYoungPeriod = 12;
constexpr unsigned kOldPeriod = 60;
// Pids are given out in turn: with fewer new ones than this none was given out again.
constexpr std::uint64_t kFewForks = 10'000;

// A later process with the same pid began at another clock tick. Never 0.
std::uint64_t identity(const ProcessStat& stat) {
  constexpr int kPidBits = 22;  // PID_MAX_LIMIT is 2^22
  return stat.start_ticks << kPidBits | static_cast<std::uint64_t>(stat.pid);
}

// As clock_getcpuclockid(3) has it, without its system call to check the pid: the kernel's
// interface (MAKE_PROCESS_CPUCLOCK with CPUCLOCK_SCHED).
clockid_t clock_of(pid_t pid) {
  constexpr unsigned kSched = 2;
  return static_cast<clockid_t>(~static_cast<unsigned>(pid) << 3 | kSched);
}

}  // namespace

MachineProcesses::MachineProcesses(const std::filesystem::path& root)
    : procs_(root), clock_(root), groups_(root) {}

Result<MachineLook> MachineProcesses::look() {
  const HostTime now = HostClock::now();
  auto machine = procs_.machine(now);
  if (!machine) return forward_error(machine);
  const bool any_began = !machine_ || !machine->forks || machine->forks != machine_->forks;
  may_skip_ = machine_ && machine->forks && machine_->forks &&
              *machine->forks >= *machine_->forks && *machine->forks - *machine_->forks < kFewForks;
  Duration busy{};
  if (machine_) {
    busy = std::max(machine->reading.busy_cpu_time - machine_->reading.busy_cpu_time, Duration{});
  }
  groups_.read(busy);
  if (any_began) {
    pids_.clear();
    procs_.all(pids_);
  }
  find_processes();
  groups_.settle();
  machine_ = std::move(*machine);
  looked_at_ = now;
  return result(busy);
}

std::optional<FoundProcess> MachineProcesses::find(pid_t pid) {
  const auto stat = procs_.stat(pid);
  if (!stat) return std::nullopt;
  FoundProcess out;
  out.start = ProcFs::start_time(stat->start_ticks);
  out.process.id = identity(*stat);
  out.process.pid = pid;
  out.process.name = stat->name;
  const auto known = entries_.find(pid);
  if (known != entries_.end() && known->second.id == out.process.id) {
    out.process.owner = known->second.owner;
    return out;
  }
  if (stat->ended()) return std::nullopt;
  out.process.owner = parse_process_group(procs_.cgroup(pid)).owner;
  if (const auto user = procs_.user(pid)) out.process.owner.user = *user;
  return out;
}

void MachineProcesses::find_processes() {
  ++looks_;
  for (const pid_t pid : pids_) {
    auto& entry = entries_[pid];
    if (!read(pid, entry)) {
      entries_.erase(pid);
      continue;
    }
    entry.seen = looks_;
    if (!entry.kernel) groups_.list(entry.left.value_or(entry.group), entry.used);
  }
  std::erase_if(entries_, [this](const auto& e) { return e.second.seen != looks_; });
  follow_into_groups();
}

// What a process that moved used before and after: each group's time has its part, which would else
// count twice.
void MachineProcesses::follow_into_groups() {
  for (auto& [pid, entry] : entries_) {
    if (entry.kernel) continue;
    if (!entry.left && entry.used > Duration{} && groups_.lacks_process(entry.group)) {
      read_owner(pid, entry);
    }
    if (!entry.left) continue;
    groups_.unlist(*entry.left, entry.used);
    entry.used -= groups_.room(*entry.left, entry.used).value_or(Duration{});
    entry.left.reset();
    // Its time may have last been read long before it moved.
    entry.used = groups_.room(entry.group, entry.used).value_or(entry.used);
    groups_.list(entry.group, entry.used);
  }
}

// False: it has ended, and so have the looks at it.
bool MachineProcesses::read(pid_t pid, Entry& entry) {
  const bool known = entry.id != 0;
  entry.used = {};
  if (known && may_skip_) {
    if (entry.kernel) return true;
    const auto* const group = groups_.find(entry.group);
    if (group != nullptr && !group->is_new && group->used == Duration{} &&
        entry.looks > kFirstLooks) {
      // Unless another program has moved it: it counts from here on, as one that was not known.
      if ((looks_ + static_cast<unsigned>(pid)) % kOldPeriod != 0) return true;
      read_owner(pid, entry);
      if (!entry.left) return true;
      entry = Entry{};
    }
  }
  auto time = clock_.time(pid);
  // Less than before: another process has the pid.
  if (known && may_skip_ && time && *time >= entry.cpu_time) {
    // A process that did not run has the name and the user that it had.
    if (*time == entry.cpu_time && entry.looks > kFirstLooks) return true;
    if (!is_due(pid, entry) && !is_group_gone(entry)) {
      count(*time, entry);
      return true;
    }
  }
  const auto stat = procs_.stat(pid);
  if (!stat) return false;
  if (!time) time = stat->cpu_time;
  if (!known || stat->start_ticks != entry.start_ticks) {
    entry = Entry{};
    entry.id = identity(*stat);
    entry.start_ticks = stat->start_ticks;
    entry.kernel = pid == kKernelThreads || stat->parent == kKernelThreads;
    // The time before the first look does not count; of what began since the look before all does.
    const bool began = machine_ && ProcFs::start_time(stat->start_ticks) > looked_at_ - 100ms;
    if (!began) entry.cpu_time = *time;
  }
  entry.name = stat->name;
  // Once it ended, its group and user are gone.
  if (!entry.kernel && !stat->ended() && (is_due(pid, entry) || is_group_gone(entry))) {
    read_owner(pid, entry);
  }
  count(*time, entry);
  return known || !stat->ended();
}

// Whether more than its CPU time is to be read. Those that began together are not read in the same
// look.
bool MachineProcesses::is_due(pid_t pid, const Entry& entry) const {
  const unsigned turn = entry.looks + static_cast<unsigned>(pid);
  const unsigned period = entry.looks < kYoung ? kYoungPeriod : kOldPeriod;
  return entry.looks < kFirstLooks || turn % period == 0;
}

bool MachineProcesses::is_group_gone(const Entry& entry) {
  return !entry.group.empty() && groups_.find(entry.group) == nullptr;
}

void MachineProcesses::count(Duration cpu_time, Entry& entry) const {
  entry.used = std::max(cpu_time - entry.cpu_time, Duration{});
  entry.cpu_time = std::max(cpu_time, entry.cpu_time);
  ++entry.looks;
}

void MachineProcesses::read_owner(pid_t pid, Entry& entry) {
  const auto text = procs_.cgroup(pid);
  if (!text.empty() || entry.looks == 0) {  // else it has ended since
    const auto group = parse_process_group(text);
    entry.owner = group.owner;
    entry.hidden = group.hidden;
    if (unknown_job_.empty()) unknown_job_ = group.unknown_job;
    const bool began = entry.looks == 0 && entry.cpu_time == Duration{};
    auto key = groups_.keep(group, began);
    if (entry.looks > 0 && key != entry.group) entry.left = entry.group;
    entry.group = std::move(key);
  }
  read_user(pid, entry);
  entry.owner.user = entry.user;
}

// The real user takes the kernel longer to show than all else that is read of a process.
void MachineProcesses::read_user(pid_t pid, Entry& entry) {
  const auto effective = procs_.effective_user(pid);
  const unsigned turn = entry.looks + static_cast<unsigned>(pid);
  const bool is_new = entry.looks < kFirstLooks || turn % kOldPeriod == 0;
  if (!is_new && effective && effective == entry.effective_user) return;
  const auto user = procs_.user(pid);
  if (!user) return;
  entry.user = *user;
  entry.effective_user = effective;
}

MachineLook MachineProcesses::result(Duration busy) {
  MachineLook out;
  out.machine = machine_->reading;
  out.unknown_job = unknown_job_;
  out.hides_processes = !procs_.stat(kInit);  // every namespace of processes has one
  Duration sum{};
  for (const pid_t pid : pids_) {
    const auto found = entries_.find(pid);
    if (found == entries_.end() || found->second.kernel) continue;
    const auto& e = found->second;
    out.processes.push_back({e.id, pid, e.name, e.owner, e.used});
    out.hides_owners |= e.hidden;
    sum += e.used;
  }
  for (const auto& [key, group] : groups_.all()) {
    if (group.unlisted == Duration{}) continue;
    out.unlisted.push_back({group.owner, group.unlisted});
    sum += group.unlisted;
  }
  out.others = std::max(busy - sum, Duration{});
  return out;
}

ProcessClock::ProcessClock(const std::filesystem::path& root) {
  std::error_code err;
  const auto self = std::filesystem::read_symlink(root / "proc/self", err);
  works_ = !err && root == "/" && self.string() == std::to_string(getpid());
}

std::optional<Duration> ProcessClock::time(pid_t pid) const {
  timespec time{};
  if (!works_ || pid <= 0 || clock_gettime(clock_of(pid), &time) != 0) return std::nullopt;
  return std::chrono::seconds{time.tv_sec} + Duration{time.tv_nsec};
}

}  // namespace jouleprof::spans
