#include "session/sampling/recorded_sampling.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "session/sampling/sampler.h"
#include "spans/procs/procfs.h"

namespace jouleprof::session {
namespace {

constexpr std::size_t kMostWarnings = 1000;

// Between two looks. A clock being slewed changes by 0.5 ms a second at most.
constexpr Duration kStep = std::chrono::milliseconds{50};
constexpr Duration kSleep = std::chrono::milliseconds{100};
// Between two looks at processes.
constexpr Duration kFirstStep = std::chrono::milliseconds{100};
constexpr Duration kLongestStep = std::chrono::seconds{10};

void add(spans::TreeChanges changes, Batch& out) {
  std::ranges::move(changes.processes, std::back_inserter(out.processes));
  std::ranges::move(changes.readings, std::back_inserter(out.process_readings.processes));
}

}  // namespace

RecordedSampling::RecordedSampling(Sampler sampler, std::vector<model::Domain> domains, Sink* sink,
                                   Consumer consumer)
    : sampler_(std::move(sampler)),
      domains_(std::move(domains)),
      sensors_(sampler_.sensors()),
      consumer_(std::move(consumer)),
      recorder_(sink) {}

void RecordedSampling::start(std::function<void()> on_news) {
  batch.domains = domains_;
  batch.sensors = sensors_;
  watch_clock();
  flush();
  if (on_news) sampler_.on_news(on_news);
  sampler_.start();
}

void RecordedSampling::collect() {
  Sampled sampled;
  sampler_.take(sampled);
  take_in(std::move(sampled));
}

void RecordedSampling::take_in(Sampled&& sampled) {
  for (auto& warning : sampled.warnings) warn(std::move(warning.text));
  consumer_(sampled);
  Batch got;
  got.readings = std::move(sampled.readings);
  batch.append(std::move(got));
}

void RecordedSampling::watch_clock() {
  auto observed = clock_.observe(ClockPoint::now());
  batch.clock_points.insert(batch.clock_points.end(), observed.points.begin(),
                            observed.points.end());
  if (observed.warning) warn(std::move(*observed.warning));
}

void RecordedSampling::flush() {
  if (auto error = recorder_.error()) {
    warn(fmt::format("the recording ends early: {}", error->message));
  }
  recorder_.post(std::exchange(batch, Batch{}));
  if (recorder_.is_losing()) {
    warn("the disk takes no data and the queue is full: readings are lost until it recovers");
  }
  warn_of_loss(false);
}

void RecordedSampling::warn_of_loss(bool now) {
  if (const auto loss = recorder_.take_loss(now)) warn(loss->text());
}

void RecordedSampling::stop(Duration patience, bool last_reads) {
  Sampled sampled;
  sampler_.stop(patience, sampled, last_reads);
  take_in(std::move(sampled));
}

Result<void> RecordedSampling::finish() {
  if (auto error = recorder_.error()) {
    warn(fmt::format("the recording ends early: {}", error->message));
  }
  batch.clock_points.push_back(ClockPoint::now());
  warn_of_loss(true);
  recorder_.post_last(std::exchange(batch, Batch{}));
  auto finished = recorder_.finish();
  if (!finished) warn(fmt::format("the recording ends early: {}", finished.error().message));
  return finished;
}

void RecordedSampling::warn(std::string text) {
  if (warned_.size() >= kMostWarnings || !warned_.insert(text).second) return;
  warnings_.push_back({HostClock::now(), std::move(text)});
  batch.warnings.push_back(warnings_.back());
}

ClockWatch::Observed ClockWatch::observe(const ClockPoint& now) {
  Observed observed;
  if (last_) {
    const Duration slept = now.suspended - last_->suspended;
    const Duration host = now.host - last_->host;
    const Duration step = (now.real - last_->real) - host - slept;
    if (slept > kSleep) {
      observed.warning = fmt::format(
          "the machine was suspended for {:.1f} s: nothing was measured meanwhile", seconds(slept));
    } else if (std::chrono::abs(step) > kStep) {
      observed.warning =
          fmt::format("the wall clock was set {} by {:.3f} s while recording",
                      step > Duration{} ? "forward" : "back", seconds(std::chrono::abs(step)));
    }
    if (observed.warning && recorded_->host != last_->host) observed.points.push_back(*last_);
  }
  if (!recorded_ || observed.warning || now.host - recorded_->host >= period_) {
    observed.points.push_back(now);
    recorded_ = now;
  }
  last_ = now;
  return observed;
}

model::RunInfo run_info_here(std::string tool_version) {
  model::RunInfo run;
  run.tool_version = std::move(tool_version);
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0) run.host = name.data();
  run.boot_id = spans::boot_id();
  run.rank = spans::rank_of();
  run.user = spans::user_here();
  run.node_list = spans::node_list_of();
  std::error_code err;
  run.working_directory = std::filesystem::current_path(err).string();
  return run;
}

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

std::optional<std::string> ProcessWatch::look(HostTime now, Batch& out, bool all) {
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
  auto warning = std::move(changes.warning);
  add(std::move(changes), out);

  // Reading memory has a budget of its own, for which new processes do not wait.
  const Duration cost = thread_cpu_time() - before - tree_.memory_cost();
  // The first looks are few, and find what lives only as long as a short command.
  const bool is_first = step_ < period_;
  next_ = now + (is_first ? step_ : pause_after(cost, step_, std::max(kLongestStep, period_)));
  step_ = std::min(2 * step_, period_);
  return warning;
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
  add(std::move(changes), out);
  return std::nullopt;
}

void ProcessWatch::reap(pid_t except) {
  for (const pid_t pid : tree_.zombies_of(::getpid())) {
    if (pid != except) ::waitpid(pid, nullptr, WNOHANG);
  }
}

}  // namespace jouleprof::session
