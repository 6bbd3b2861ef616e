#include "spans/procs/process_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/clock.h"
#include "spans/procs/procfs.h"

namespace jouleprof::spans {
namespace {

// A process that has just begun is about to become another program: its memory is not measured yet.
constexpr Duration kSettled = std::chrono::milliseconds{500};
constexpr Duration kClockTick = std::chrono::milliseconds{10};  // of the kernel's start times

}  // namespace

void ProcessTree::follow(const TreeOptions& options) {
  options_ = options;
  for (const auto& entry : entries_) ended_[entry.process.pid] = entry.process.id;
  entries_.clear();
  known_.clear();
  not_adopted_.clear();
  root_listed_ = false;
  warned_ = false;
  new_roots_.clear();
  has_more_roots_ = false;
  if (options_.root == 0 || options_.adopter == 0) return;
  std::vector<pid_t> present;
  if (!procs_.children(options_.adopter, 2, present)) scan(present);
  for (const pid_t pid : present) {
    const auto stat = procs_.stat(pid);
    if (stat && pid != options_.root) not_adopted_[pid] = stat->start_ticks;
  }
}

void ProcessTree::update(HostTime at, TreeChanges& out, bool no_forks, bool all) {
  memory_cost_ = {};
  if (options_.root == 0) return;
  if (!std::exchange(root_listed_, true)) adopt({options_.root}, out);
  if (!new_roots_.empty()) {
    has_more_roots_ = true;
    no_forks = false;
    adopt(std::exchange(new_roots_, {}), out);
  }
  if (!no_forks) {
    // A new process may have children already, which only the next round finds.
    for (std::size_t first = 0;;) {
      const auto found = discover(first);
      if (found.empty()) break;
      first = entries_.size();
      adopt(found, out);
    }
  }
  // Parents are read before their children: see ChildTime.
  for (auto& entry : entries_) read(entry, at, out);
  adopt_reused(at, out);
  settle(out);
  read_memory(at);
  for (auto& entry : entries_) emit(entry, at, all, out);
  for (const auto& entry : entries_) {
    if (!entry.gone) continue;
    known_.erase(entry.process.pid);
    ended_[entry.process.pid] = entry.process.id;
  }
  std::erase_if(entries_, [](const Entry& e) { return e.gone; });
  for (const auto& entry : entries_) known_.insert(entry.process.pid);  // reused ones, too
}

// A process that has the pid of one that ended since the last scan: it was not news, because the
// pid was known, and without another fork no scan would look for it again.
void ProcessTree::adopt_reused(HostTime at, TreeChanges& out) {
  for (std::size_t first = 0; first < entries_.size();) {
    std::vector<pid_t> found;
    for (std::size_t i = first; i < entries_.size(); ++i) {
      const auto& entry = entries_[i];
      if (!entry.gone || !entry.reused_by) continue;
      known_.erase(entry.process.pid);
      const pid_t parent = *entry.reused_by;
      if (known_.contains(parent) || (options_.adopter != 0 && parent == options_.adopter)) {
        found.push_back(entry.process.pid);
      }
    }
    first = entries_.size();
    if (found.empty()) return;
    adopt(found, out);
    for (std::size_t begun = first; begun < entries_.size();) {
      const auto children = discover(begun);
      begun = entries_.size();
      adopt(children, out);
    }
    for (std::size_t i = first; i < entries_.size(); ++i) read(entries_[i], at, out);
  }
}

// New processes: all (`first` 0), or the children of entries from `first` on.
std::vector<pid_t> ProcessTree::discover(std::size_t first) {
  std::vector<pid_t> found;
  std::size_t tasks = 0;
  for (const auto& entry : entries_) tasks += static_cast<std::size_t>(entry.threads);
  bool listed = true;
  if (options_.group != nullptr && first == 0) options_.group->list(found);
  if (options_.group != nullptr && !has_more_roots_) {
    // The group has them all.
  } else if (tasks > procs_.count_estimate()) {
    listed = false;  // a file for each thread costs more than one for each process
  } else {
    for (std::size_t i = first; i < entries_.size(); ++i) {
      const auto& entry = entries_[i];
      if (entry.zombie || procs_.children(entry.process.pid, entry.threads, found)) continue;
      listed = listed && !procs_.stat(entry.process.pid).has_value();
    }
  }
  // Zombies are in no group's list, and orphans are children of their adopter only.
  if (listed && first == 0 && options_.adopter != 0) {
    // The kernel hands them to the first thread that lives: the main one.
    listed = procs_.children(options_.adopter, 1, found);
  }
  if (!listed) scan(found);
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::erase_if(found, [this](pid_t pid) { return !is_news(pid); });
  return found;
}

bool ProcessTree::is_news(pid_t pid) {
  if (known_.contains(pid)) return false;
  const auto own = not_adopted_.find(pid);
  if (own == not_adopted_.end()) return true;
  const auto stat = procs_.stat(pid);
  return stat && stat->start_ticks != own->second;
}

// All processes whose parent is in the tree or is the adopter.
void ProcessTree::scan(std::vector<pid_t>& out) {
  std::vector<pid_t> pids;
  procs_.all(pids);
  for (const pid_t pid : pids) {
    if (known_.contains(pid)) continue;
    const auto stat = procs_.stat(pid);
    if (!stat) continue;
    if (known_.contains(stat->parent) ||
        (options_.adopter != 0 && stat->parent == options_.adopter)) {
      out.push_back(pid);
    }
  }
}

model::Process ProcessTree::describe(const ProcessStat& stat, bool in_tree) {
  model::Process process;
  process.id = model::ProcessId{next_id_++};
  process.pid = stat.pid;
  process.own_pid = procs_.own_pid(stat.pid);
  process.parent_pid = stat.parent;
  process.name = stat.name;
  process.command_line = procs_.command_line(stat.pid);
  process.start = ProcFs::start_time(stat.start_ticks);
  process.in_tree = in_tree;
  if (in_tree) process.rank = rank_in(procs_.environment(stat.pid));
  return process;
}

void ProcessTree::adopt(const std::vector<pid_t>& pids, TreeChanges& out) {
  std::map<pid_t, ProcessStat> fresh;
  for (const pid_t pid : pids) {
    if (known_.contains(pid)) continue;
    if (auto stat = procs_.stat(pid)) fresh.emplace(pid, std::move(*stat));
  }
  while (!fresh.empty()) {
    // One whose parent is not waiting here itself.
    auto next = std::ranges::find_if(
        fresh, [&](const auto& f) { return !fresh.contains(f.second.parent); });
    if (next == fresh.end()) next = fresh.begin();  // pids reused while they were listed
    Entry entry;
    entry.process = describe(next->second, true);
    entry.start_ticks = next->second.start_ticks;
    entry.parent = next->second.parent;
    entry.threads = next->second.threads;
    known_.insert(entry.process.pid);
    out.processes.push_back(entry.process);
    entries_.push_back(std::move(entry));
    fresh.erase(next);
  }
}

void ProcessTree::read(Entry& entry, HostTime at, TreeChanges& out) {
  auto& process = entry.process;
  const auto stat = procs_.stat(process.pid);
  bool changed = false;
  if (stat ? stat->start_ticks != entry.start_ticks : stat.error().code == Errc::kNotFound) {
    entry.gone = true;
    if (stat) entry.reused_by = stat->parent;
    if (!process.end) process.end = at, changed = true;
  } else if (stat) {
    entry.read_at = at;
    entry.parent = stat->parent;
    entry.threads = stat->threads;
    entry.zombie = stat->ended();
    entry.ignores_children = stat->ignores_children;
    entry.cpu_time = stat->cpu_time;
    // No parent in the tree gets the part below the kernel's ticks.
    if (entry.zombie && stat->parent == options_.adopter) {
      entry.cpu_time = std::max(entry.cpu_time, clock_.time(process.pid).value_or(Duration{}));
    }
    entry.children_cpu_time = stat->children_cpu_time;
    // 0 while a program begins or ends, and of threads of the kernel: not known.
    const bool has_memory = !entry.zombie && stat->rss_bytes > 0;
    entry.rss_bytes = has_memory ? std::optional(stat->rss_bytes) : std::nullopt;
    if (entry.zombie && !process.end) process.end = at, changed = true;
    // What was first seen between fork and exec had its parent's name and command line.
    if (!entry.zombie && (++entry.looks == 2 || stat->name != process.name)) {
      auto command_line = procs_.command_line(process.pid);
      changed = stat->name != process.name || command_line != process.command_line;
      process.name = stat->name;
      process.command_line = std::move(command_line);
      process.rank = rank_in(procs_.environment(process.pid));
    }
  }
  if (changed) out.processes.push_back(process);
}

void ProcessTree::settle(TreeChanges& out) {
  std::unordered_map<pid_t, Entry*> by_pid;
  for (auto& entry : entries_) by_pid[entry.process.pid] = &entry;
  // Children stand behind their parents: going backwards, what a whole branch passes up adds up.
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (!entry->gone) continue;
    const auto parent = by_pid.find(entry->parent);
    if (parent == by_pid.end()) continue;
    parent->second->listed_gone += entry->counted();
    // Others, as short, have begun and ended between two looks.
    if (!parent->second->ignores_children || entry->looks > 2 || std::exchange(warned_, true)) {
      continue;
    }
    const model::Process& p = parent->second->process;
    out.warning = fmt::format(
        "process {} ({}) ignores SIGCHLD, so the kernel drops the CPU time of its ended children. "
        "That of short ones is missing: the command's CPU energy is larger by an unknown part. Let "
        "the process wait for its children",
        p.pid, p.name);
  }
  for (auto& entry : entries_) {
    if (entry.gone) continue;
    entry.children.update(entry.children_cpu_time, std::exchange(entry.listed_gone, Duration{}));
  }
}

void ProcessTree::read_memory(HostTime at) {
  if (at < memory_allowed_) return;
  Entry* next = nullptr;  // the longest unread
  for (auto& entry : entries_) {
    if (entry.gone || entry.zombie || at - entry.process.start < kSettled) continue;
    if (entry.memory_at != HostTime{} && at - entry.memory_at < options_.memory_period) continue;
    if (next == nullptr || entry.memory_at < next->memory_at) next = &entry;
  }
  if (next == nullptr) return;
  const Duration before = thread_cpu_time();
  next->memory = procs_.memory(next->process.pid);
  next->memory_at = at;
  memory_cost_ = thread_cpu_time() - before;
  memory_allowed_ = at + duration_of(seconds(memory_cost_) / options_.memory_budget);
}

void ProcessTree::emit(Entry& entry, HostTime at, bool all, TreeChanges& out) {
  if (entry.read_at != at) {
    // It has ended: its unchanged figures up to the last scan are recorded.
    if (entry.skipped) out.readings.push_back(*entry.skipped);
    entry.skipped.reset();
    return;
  }
  model::ProcessReading now{entry.process.id, at, entry.cpu_time, entry.children.unseen(), {}, {},
                            entry.rss_bytes};
  const bool has_memory = entry.memory_at == at && entry.memory;
  if (has_memory) {
    now.pss_bytes = entry.memory->pss_bytes;
    now.uss_bytes = entry.memory->uss_bytes;
  }
  const auto& last = entry.written;
  if (!all && !has_memory && last && last->cpu_time == now.cpu_time &&
      last->unseen_children_cpu_time == now.unseen_children_cpu_time &&
      last->rss_bytes == now.rss_bytes) {
    entry.skipped = now;
    return;
  }
  if (entry.skipped) out.readings.push_back(*entry.skipped);
  entry.skipped.reset();
  out.readings.push_back(now);
  entry.written = now;
}

// Whether an ancestor is in the tree, which the last scan need not have shown.
bool ProcessTree::descends(const ProcessStat& stat) {
  pid_t parent = stat.parent;
  for (int steps = 0; parent > 1 && steps < 64; ++steps) {
    if (known_.contains(parent)) return true;
    const auto next = procs_.stat(parent);
    if (!next) return false;
    parent = next->parent;
  }
  return false;
}

std::optional<model::ProcessId> ProcessTree::identify(pid_t pid, HostTime at, TreeChanges& out,
                                                      pid_t parent) {
  const auto stat = procs_.stat(pid);
  for (const auto& entry : entries_) {
    if (entry.process.pid != pid) continue;
    // The pid may have been given out again since the last scan. The next scan finds one of the
    // tree; another program's is named here, unless it began after the driver's list.
    const bool is_foreign = stat && stat->start_ticks != entry.start_ticks &&
                            ProcFs::start_time(stat->start_ticks) <= at + kClockTick &&
                            stat->parent != options_.adopter && !descends(*stat);
    if (!is_foreign) return entry.process.id;
    break;
  }
  const auto known = outsiders_.find(pid);
  if (known != outsiders_.end()) {
    auto& [process, start_ticks, cpu_time] = known->second;
    // A driver may still name one that has just ended.
    const bool lives = stat && stat->start_ticks == start_ticks;
    if (!lives && !process.end) {
      process.end = at;
      out.processes.push_back(process);
    }
    if (lives && stat->cpu_time != cpu_time) {
      cpu_time = stat->cpu_time;
      out.readings.push_back({process.id, at, cpu_time, {}, {}, {}, {}});
    }
    if (lives || !stat) return process.id;
    outsiders_.erase(known);
  }
  if (!stat) {
    const auto ended = ended_.find(pid);
    if (ended != ended_.end()) return ended->second;
    if (parent == 0 || !(knows(parent) || ended_.contains(parent))) return std::nullopt;
    model::Process process;
    process.id = model::ProcessId{next_id_++};
    process.pid = pid;
    process.parent_pid = parent;
    process.name = "ended at once";
    process.start = at;
    process.end = at;
    process.in_tree = true;
    out.processes.push_back(process);
    ended_[pid] = process.id;
    return process.id;
  }
  if (descends(*stat)) {
    const std::size_t first = entries_.size();
    adopt({pid}, out);
    if (entries_.size() > first) {
      read(entries_.back(), at, out);
      return entries_.back().process.id;
    }
  }
  Outsider outsider{describe(*stat, false), stat->start_ticks, stat->cpu_time};
  out.processes.push_back(outsider.process);
  out.readings.push_back({outsider.process.id, at, stat->cpu_time, {}, {}, {}, {}});
  const auto id = outsider.process.id;
  outsiders_.emplace(pid, std::move(outsider));
  return id;
}

model::ProcessId ProcessTree::other_users(HostTime at, TreeChanges& out) {
  if (!other_users_) {
    model::Process process;
    process.id = model::ProcessId{next_id_++};
    process.name = "other users";
    process.start = at;
    out.processes.push_back(process);
    other_users_ = process.id;
  }
  return *other_users_;
}

std::vector<model::Process> ProcessTree::alive() const {
  std::vector<model::Process> out;
  for (const auto& entry : entries_) {
    if (!entry.process.end) out.push_back(entry.process);
  }
  return out;
}

std::vector<pid_t> ProcessTree::zombies_of(pid_t parent) const {
  std::vector<pid_t> out;
  for (const auto& entry : entries_) {
    if (entry.zombie && entry.parent == parent) out.push_back(entry.process.pid);
  }
  return out;
}

void ChildTime::update(Duration children_total, Duration listed_gone) {
  Duration arrived = std::max(children_total - unseen_ - paid_, Duration{});
  const Duration old_debt = std::min(arrived, owed_);
  arrived -= old_debt;
  const Duration new_debt = std::min(arrived, listed_gone);
  arrived -= new_debt;
  paid_ += old_debt + new_debt;
  owed_ = listed_gone - new_debt;
  unseen_ += arrived;
}

}  // namespace jouleprof::spans
