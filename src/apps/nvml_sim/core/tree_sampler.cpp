#include "apps/nvml_sim/core/tree_sampler.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/clock.h"

namespace jouleprof::nvml_sim {
namespace {

// To the nanosecond; /proc/PID/stat knows ticks of 10 ms only.
std::optional<std::int64_t> cpu_time_of(pid_t pid) {
  clockid_t clock{};
  timespec ts{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &ts) != 0) return std::nullopt;
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

class Follow final : public Curve {
 public:
  Follow(std::shared_ptr<const TreeSampler> sampler, double idle, double full)
      : sampler_(std::move(sampler)), idle_(idle), full_(full) {}

  double watts_near(double, double inside) const override {
    return idle_ + (full_ - idle_) * sampler_->use(inside);
  }
  double joules(double begin, double end) const override {
    return idle_ * (end - begin) + (full_ - idle_) * sampler_->use_seconds(begin, end);
  }
  double next_break(double t) const override { return sampler_->next_step(t); }
  double lowest() const override { return std::min(idle_, full_); }
  double highest() const override { return std::max(idle_, full_); }

 private:
  std::shared_ptr<const TreeSampler> sampler_;
  double idle_, full_;
};

}  // namespace

TreeSampler::TreeSampler(TreeTarget target, double cpus, double period_seconds,
                         std::int64_t epoch_ns)
    : target_(std::move(target)), cpus_(cpus), epoch_ns_(epoch_ns) {
  if (period_seconds <= 0) return;
  sample();  // so that the tree is known from the beginning
  // The host program's signals are for its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, period_seconds] { run(period_seconds); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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

double TreeSampler::now() const {
  return static_cast<double>(RealClock::now().time_since_epoch().count() - epoch_ns_) * 1e-9;
}

void TreeSampler::run(double period_seconds) {
  const auto period = std::chrono::duration<double>(period_seconds);
  std::unique_lock lock(mutex_);
  while (!stop_signal_.wait_for(lock, period, [this] { return stop_; })) {
    lock.unlock();
    sample();
    lock.lock();
  }
}

void TreeSampler::sample() {
  const double at = now();
  const bool first = cpu_time_ns_.empty();
  const double elapsed = std::max(at - last_sample_, 1e-3);
  std::map<pid_t, std::int64_t> times;
  std::vector<Member> found;
  double use = 0;
  for (const pid_t pid : tree_members(target_)) {
    const auto time = cpu_time_of(pid);
    if (!time) continue;
    times[pid] = *time;
    const auto known = cpu_time_ns_.find(pid);
    // A process that is new may have worked for long before it joined the tree.
    const double spent = known != cpu_time_ns_.end()
                             ? static_cast<double>(*time - known->second) * 1e-9
                             : std::min(static_cast<double>(*time) * 1e-9, elapsed);
    const double share = first ? 0 : std::clamp(spent / elapsed / cpus_, 0.0, 1.0);
    found.push_back({pid, share});
    use += share;
  }
  last_sample_ = at;
  cpu_time_ns_ = std::move(times);
  record(at, use, std::move(found));
}

void TreeSampler::record(double t, double use, std::vector<Member> members) {
  const std::lock_guard lock(mutex_);
  t = std::max(t, asked_);  // what was answered stays true
  use = std::clamp(use, 0.0, 1.0);
  const double sum = steps_.empty() ? 0 : until(t);
  steps_.push_back({t, use, sum});
  members_ = std::move(members);
}

double TreeSampler::until(double t) const {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), t,
                                      [](double at, const Step& s) { return at < s.from; });
  if (after == steps_.begin()) return 0;
  const Step& step = *std::prev(after);
  return step.sum + step.use * (t - step.from);
}

double TreeSampler::use(double t) const {
  const std::lock_guard lock(mutex_);
  asked_ = std::max(asked_, t);
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), t,
                                      [](double at, const Step& s) { return at < s.from; });
  return after == steps_.begin() ? 0 : std::prev(after)->use;
}

double TreeSampler::next_step(double t) const {
  const std::lock_guard lock(mutex_);
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), t,
                                      [](double at, const Step& s) { return at < s.from; });
  return after == steps_.end() ? kForever : after->from;
}

double TreeSampler::use_seconds(double begin, double end) const {
  const std::lock_guard lock(mutex_);
  asked_ = std::max(asked_, end);
  return until(end) - until(begin);
}

std::vector<TreeSampler::Member> TreeSampler::members() const {
  const std::lock_guard lock(mutex_);
  return members_;
}

CurvePtr follow(std::shared_ptr<const TreeSampler> sampler, double idle, double full) {
  return std::make_shared<Follow>(std::move(sampler), idle, full);
}

}  // namespace jouleprof::nvml_sim
