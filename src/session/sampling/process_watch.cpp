#include "session/sampling/process_watch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/process/cpu_time.h"
#include "session/sampling/look_budget.h"

namespace jouleprof::session {
namespace {

constexpr Duration kFirstStep = std::chrono::milliseconds{100};
constexpr Duration kLongestStep = std::chrono::seconds{10};

}  // namespace

ProcessWatch::ProcessWatch(const std::filesystem::path& root, Duration period)
    : procs_(root),
      tree_(procs_),
      period_(period),
      step_(period),
      in_pid_namespace_(spans::in_pid_namespace(root)) {}

void ProcessWatch::follow(const spans::TreeOptions& options) {
  tree_.follow(options);
  forks_.reset();
  step_ = std::min(kFirstStep, period_);
  next_ = HostTime{};
}

void ProcessWatch::add_root(pid_t root) {
  tree_.add_root(root);
  forks_.reset();
  step_ = std::min(kFirstStep, period_);
  next_ = HostTime{};
}

void ProcessWatch::look(HostTime now, Batch& out, bool all) {
  const Duration before = thread_cpu_time();
  const auto machine = procs_.machine(now);
  bool no_forks = false;
  if (machine) {
    out.process_readings.machine.push_back(machine->reading);
    no_forks = machine->forks && machine->forks == forks_;
    forks_ = machine->forks;
  }
  spans::TreeChanges changes;
  tree_.update(now, changes, no_forks, all);
  Batch found;
  found.processes = std::move(changes.processes);
  found.process_readings.processes = std::move(changes.readings);
  out.append(std::move(found));

  // Reading memory has a budget of its own, for which new processes do not wait.
  const Duration cost = thread_cpu_time() - before - tree_.memory_cost();
  next_ = now + pause_after(cost, step_, std::max(kLongestStep, period_));
  step_ = std::min(2 * step_, period_);
}

std::optional<std::string> ProcessWatch::add_gpu_uses(const std::vector<model::GpuProcessUse>& uses,
                                                      Batch& out,
                                                      const std::map<pid_t, pid_t>& parents) {
  if (uses.empty()) return std::nullopt;
  if (in_pid_namespace_) {
    return "the driver names processes by the machine's pids, which this container does not show: "
           "GPU energy cannot be split among processes";
  }
  spans::TreeChanges changes;
  const auto parent_of = [&parents](pid_t pid) {
    const auto found = parents.find(pid);
    return found == parents.end() ? 0 : found->second;
  };
  for (const auto& use : uses) {
    const auto id = use.pid == 0 ? std::optional(tree_.other_users(use.at, changes))
                                 : tree_.identify(use.pid, use.at, changes, parent_of(use.pid));
    if (!id) continue;
    out.process_readings.gpu_processes.push_back(
        {*id, use.domain, use.at, use.compute_utilisation, use.memory_bytes});
  }
  Batch found;
  found.processes = std::move(changes.processes);
  found.process_readings.processes = std::move(changes.readings);
  out.append(std::move(found));
  return std::nullopt;
}

void ProcessWatch::reap(pid_t except) {
  for (const pid_t pid : tree_.zombies_of(::getpid())) {
    if (pid != except) ::waitpid(pid, nullptr, WNOHANG);
  }
}

}  // namespace jouleprof::session
