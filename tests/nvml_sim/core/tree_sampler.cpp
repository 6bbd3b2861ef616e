#include "nvml_sim/core/tree_sampler.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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
  return std::any_of(entries.begin(), entries.end(), [wanted](std::string_view entry) {
    return entry == wanted || (wanted.find('=') == std::string_view::npos &&
                               entry.substr(0, entry.find('=')) == wanted);
  });
}

// In nanoseconds; /proc/PID/stat has a resolution of 10 ms.
std::optional<std::int64_t> cpu_time_of(pid_t pid) {
  clockid_t clock{};
  timespec ts{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0) return std::nullopt;
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

}  // namespace

std::vector<pid_t> tree_members(const TreeTarget& target, const std::filesystem::path& proc) {
  const auto is_root = [&](pid_t pid) {
    if (target.pid != 0) return pid == target.pid;
    if (target.environment.empty()) return pid == getpid();
    return has_environment(proc / std::to_string(pid), target.environment);
  };
  std::map<pid_t, pid_t> parents;
  std::set<pid_t> members;
  for (const auto& name : list_folder(proc).value_or(std::vector<std::string>{})) {
    const auto number = parse_integer(name);
    const auto parent = number ? parent_of(proc / name) : std::nullopt;
    if (!parent) continue;
    const auto pid = static_cast<pid_t>(*number);
    parents[pid] = *parent;
    if (is_root(pid)) members.insert(pid);
  }
  for (std::size_t before = 0; before != members.size();) {
    before = members.size();
    for (const auto& [pid, parent] : parents) {
      if (members.contains(parent)) members.insert(pid);
    }
  }
  return {members.begin(), members.end()};
}

TreeSampler::TreeSampler(TreeSpec spec, std::int64_t epoch_ns)
    : spec_(std::move(spec)), epoch_ns_(epoch_ns) {
  if (spec_.period <= 0) return;
  sample();  // so that the first call already lists the members
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
  const auto period = std::chrono::duration<double>(spec_.period);
  std::unique_lock lock(mutex_);
  while (!stop_signal_.wait_for(lock, period, [this] { return stop_; })) {
    lock.unlock();
    sample();
    lock.lock();
  }
}

void TreeSampler::sample() {
  const double now =
      static_cast<double>(RealClock::now().time_since_epoch().count() - epoch_ns_) * 1e-9;
  const bool first = cpu_time_ns_.empty();
  const double elapsed = std::max(now - last_sample_, 1e-3);
  std::map<pid_t, std::int64_t> times;
  std::vector<Member> found;
  double use = 0;
  for (const pid_t pid : tree_members(spec_.target)) {
    const auto time = cpu_time_of(pid);
    if (!time) continue;
    times[pid] = *time;
    const auto known = cpu_time_ns_.find(pid);
    // A new member may have run for long before it joined the tree.
    const double spent = known != cpu_time_ns_.end()
                             ? static_cast<double>(*time - known->second) * 1e-9
                             : std::min(static_cast<double>(*time) * 1e-9, elapsed);
    const double share = first ? 0 : std::clamp(spent / elapsed / spec_.cpus, 0.0, 1.0);
    found.push_back({pid, share});
    use += share;
  }
  last_sample_ = now;
  cpu_time_ns_ = std::move(times);
  record(now, use, std::move(found));
}

void TreeSampler::record(double t, double use, std::vector<Member> members) {
  const std::lock_guard lock(mutex_);
  t = std::max(t, read_until_);  // a use that was returned never changes
  steps_.push_back({t, std::clamp(use, 0.0, 1.0), use_seconds_until(t)});
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

const TreeSampler::Step* TreeSampler::step_at(double t) const {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), t,
                                      [](double at, const Step& s) { return at < s.from; });
  return after == steps_.begin() ? nullptr : &*std::prev(after);
}

double TreeSampler::use_seconds_until(double t) const {
  const Step* step = step_at(t);
  return step == nullptr ? 0 : step->sum + step->use * (t - step->from);
}

double TreeSampler::use(double t) const {
  const std::lock_guard lock(mutex_);
  read_until_ = std::max(read_until_, t);
  const Step* step = step_at(t);
  return step == nullptr ? 0 : step->use;
}

double TreeSampler::next_step(double t) const {
  const std::lock_guard lock(mutex_);
  const Step* step = step_at(t);
  const auto next = step == nullptr ? 0 : static_cast<std::size_t>(step - steps_.data()) + 1;
  return next < steps_.size() ? steps_[next].from : kForever;
}

double TreeSampler::use_seconds(double begin, double end) const {
  const std::lock_guard lock(mutex_);
  read_until_ = std::max(read_until_, end);
  return use_seconds_until(end) - use_seconds_until(begin);
}

std::vector<TreeSampler::Member> TreeSampler::members() const {
  const std::lock_guard lock(mutex_);
  return members_;
}

std::shared_ptr<const TreeSampler> Samplers::get(const TreeSpec& spec) {
  for (const auto& sampler : samplers_) {
    if (sampler->spec().target == spec.target && sampler->spec().cpus == spec.cpus) return sampler;
  }
  return samplers_.emplace_back(std::make_shared<TreeSampler>(spec, epoch_ns_));
}

Curve follow(std::shared_ptr<const TreeSampler> sampler, double idle, double full) {
  return {[=](double, double inside) { return idle + (full - idle) * sampler->use(inside); },
          [=](double begin, double end) {
            return idle * (end - begin) + (full - idle) * sampler->use_seconds(begin, end);
          },
          [=](double t) { return sampler->next_step(t); }, std::min(idle, full),
          std::max(idle, full)};
}

}  // namespace jouleprof::nvml_sim
