#include "spans/procs/machine_processes.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace jouleprof::spans {
namespace {

using namespace std::chrono_literals;

constexpr pid_t kKernelThreads = 2;  // the parent of all threads of the kernel
// A scheduler moves a new process into its group: it is looked at again soon, later now and then.
constexpr unsigned kFirstLooks = 3;
constexpr unsigned kYoung = 60;  // looks
constexpr unsigned kYoungPeriod = 12;
constexpr unsigned kOldPeriod = 60;
// Pids are given out in turn: with fewer new ones than this none was given out again.
constexpr std::uint64_t kFewForks = 10'000;
// The only thread of a process that works runs between any two looks: asking whether it did is then
// a waste.
constexpr unsigned kPause = 10;
constexpr std::size_t kMostFiles = 20'000;

// A later process with the same pid began at another clock tick. Never 0.
std::uint64_t identity(const ProcessStat& stat) {
  constexpr int kPidBits = 22;  // PID_MAX_LIMIT is 2^22
  return stat.start_ticks << kPidBits | static_cast<std::uint64_t>(stat.pid);
}

std::size_t files_to_keep() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return std::min<std::size_t>(limit.rlim_cur / 2, kMostFiles);
}

}  // namespace

MachineProcesses::MachineProcesses(const std::filesystem::path& root)
    : procs_(root), groups_(root), most_files_(files_to_keep()) {}

Result<MachineLook> MachineProcesses::look() {
  const HostTime now = HostClock::now();
  auto machine = procs_.machine(now);
  if (!machine) return forward_error(machine);
  may_skip_ = machine_ && machine->forks && machine_->forks &&
              *machine->forks >= *machine_->forks && *machine->forks - *machine_->forks < kFewForks;
  Duration busy{};
  if (machine_) {
    busy = std::max(machine->reading.busy_cpu_time - machine_->reading.busy_cpu_time, Duration{});
  }
  groups_.read();
  find_processes();
  groups_.settle();
  machine_ = std::move(*machine);
  looked_at_ = now;
  return result(busy);
}

void MachineProcesses::find_processes() {
  ++looks_;
  pids_.clear();
  procs_.all(pids_);
  for (const pid_t pid : pids_) {
    auto& entry = entries_[pid];
    if (!read(pid, entry)) {
      entries_.erase(pid);
      continue;
    }
    entry.seen = looks_;
    if (entry.kernel) continue;
    if (auto* const group = groups_.find(entry.group)) {
      ++group->processes;
      group->listed += entry.used;
    }
  }
  std::erase_if(entries_, [this](const auto& e) { return e.second.seen != looks_; });
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
      return true;
    }
  }
  if (known && stands_still(pid, entry)) return true;
  const auto stat = this->stat(pid, entry);
  if (!stat) return false;
  if (!known || stat->start_ticks != entry.start_ticks) {
    entry = Entry{};
    entry.id = identity(*stat);
    entry.start_ticks = stat->start_ticks;
    entry.kernel = pid == kKernelThreads || stat->parent == kKernelThreads;
    // The time before the first look does not count; of what began since the look before all does.
    const bool began = machine_ && ProcFs::start_time(stat->start_ticks) > looked_at_ - 100ms;
    if (!began) entry.cpu_time = stat->cpu_time;
  }
  entry.used = std::max(stat->cpu_time - entry.cpu_time, Duration{});
  entry.cpu_time = stat->cpu_time;
  entry.name = stat->name;
  entry.threads = stat->threads;
  if (stat->ended()) return known;  // its group and user are gone
  // Those that began together are not read in the same look.
  const unsigned turn = entry.looks + static_cast<unsigned>(pid);
  const bool is_due = turn % (entry.looks < kYoung ? kYoungPeriod : kOldPeriod) == 0;
  if (!entry.kernel && (entry.looks < kFirstLooks || is_due)) read_owner(pid, entry);
  ++entry.looks;
  return true;
}

// Whether it has one thread, which has not run since the look before: then it has neither used CPU
// time nor begun threads.
bool MachineProcesses::stands_still(pid_t pid, Entry& entry) const {
  if (entry.threads != 1 || entry.looks <= kFirstLooks) return false;
  if (entry.pause > 0) {
    --entry.pause;
    return false;
  }
  const auto before = entry.main_thread;
  entry.main_thread = entry.files.main_thread_time(procs_.folder(), pid);
  if (entry.main_thread && entry.main_thread == before) return true;
  if (!entry.main_thread || before) {
    entry.pause = kPause;
    entry.main_thread.reset();
  }
  return false;
}

std::optional<ProcessStat> MachineProcesses::stat(pid_t pid, Entry& entry) {
  if (entries_.size() * ProcessFiles::kFiles < most_files_) {
    return entry.files.stat(procs_.folder(), pid);
  }
  entry.files.close();
  auto stat = procs_.stat(pid);
  if (!stat) return std::nullopt;
  return std::move(*stat);
}

void MachineProcesses::read_owner(pid_t pid, Entry& entry) {
  const auto group = parse_process_group(procs_.cgroup(pid));
  entry.owner = group.owner;
  entry.hidden = group.hidden;
  if (const auto user = procs_.user(pid)) entry.user = *user;
  entry.owner.user = entry.user;
  entry.group = groups_.keep(group);
}

MachineLook MachineProcesses::result(Duration busy) {
  MachineLook out;
  out.machine = machine_->reading;
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

}  // namespace jouleprof::spans
