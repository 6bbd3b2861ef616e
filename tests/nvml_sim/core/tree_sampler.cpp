#include "nvml_sim/core/tree_sampler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/clock.h"
#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"

namespace jouleprof::nvml_sim {
namespace {

// Absent for a process that has ended.
std::optional<pid_t> parent_of(const std::filesystem::path& process) {
  const auto stat = read_attribute(process / "stat");
  if (!stat) return std::nullopt;
  // The fields follow the name, which may itself hold blanks and parentheses.
  const auto close = stat->rfind(')');
  if (close == std::string::npos) return std::nullopt;
  const auto fields = split_blanks(std::string_view(*stat).substr(close + 1));
  const auto parent = fields.size() > 1 ? parse_integer(fields[1]) : std::nullopt;
  if (!parent || fields[0] == "Z") return std::nullopt;
  return static_cast<pid_t>(*parent);
}

bool has_environment(const std::filesystem::path& process, std::string_view wanted) {
  const auto environment = read_file(process / "environ");
  if (!environment) return false;
  const auto entries = split(*environment, '\0');
  return std::find(entries.begin(), entries.end(), wanted) != entries.end();
}

}  // namespace

std::vector<pid_t> tree_members(const std::string& environment, const std::filesystem::path& proc) {
  std::map<pid_t, pid_t> parents;
  std::set<pid_t> members;
  for (const auto& name : list_folder(proc).value_or(std::vector<std::string>{})) {
    const auto number = parse_integer(name);
    const auto parent = number ? parent_of(proc / name) : std::nullopt;
    if (!parent) continue;
    const auto pid = static_cast<pid_t>(*number);
    parents[pid] = *parent;
    if (has_environment(proc / name, environment)) members.insert(pid);
  }
  for (std::size_t before = 0; before != members.size();) {
    before = members.size();
    for (const auto& [pid, parent] : parents) {
      if (members.contains(parent)) members.insert(pid);
    }
  }
  return {members.begin(), members.end()};
}

TreeSampler::TreeSampler(std::string environment, double period, std::int64_t epoch_ns)
    : environment_(std::move(environment)), period_(period), epoch_ns_(epoch_ns) {
  if (period_ <= 0) return;
  look();  // so that the first call already lists the members
  // Without it, or once it has ended, the members that were found last stay.
  auto thread = start_thread([this] { run(); }, [](const char*) {});
  if (thread) thread_ = std::move(*thread);
}

TreeSampler::~TreeSampler() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stop_signal_.notify_all();
  thread_.join();
}

void TreeSampler::run() {
  const auto period = std::chrono::duration<double>(period_);
  std::unique_lock lock(mutex_);
  while (!stop_signal_.wait_for(lock, period, [this] { return stop_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void TreeSampler::look() {
  const double now =
      static_cast<double>(RealClock::now().time_since_epoch().count() - epoch_ns_) * 1e-9;
  record(now, tree_members(environment_));
}

void TreeSampler::record(double t, std::vector<pid_t> members) {
  const std::lock_guard lock(mutex_);
  t = std::max(t, read_until_);  // what was returned never changes
  members_ = std::move(members);
  const bool is_open = !presence_.empty() && presence_.back().second == kForever;
  if (!members_.empty() && !is_open) presence_.emplace_back(t, kForever);
  if (members_.empty() && is_open) presence_.back().second = t;
}

std::vector<std::pair<double, double>> TreeSampler::presence(double t) const {
  const std::lock_guard lock(mutex_);
  read_until_ = std::max(read_until_, t);
  auto spans = presence_;
  std::erase_if(spans, [t](const auto& span) { return span.first > t; });
  return spans;
}

std::vector<pid_t> TreeSampler::members() const {
  const std::lock_guard lock(mutex_);
  return members_;
}

}  // namespace jouleprof::nvml_sim
