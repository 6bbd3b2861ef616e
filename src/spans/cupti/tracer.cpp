#include "spans/cupti/tracer.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <utility>

#include "base/process/threads.h"
#include "spans/cupti/cupti_api.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::cupti {

struct Tracer::Kernels {
  Kernels(CuptiApi api, model::ActivitySink& sink, const Options& options, sem_t& wake)
      : collector(std::move(api), options.most_buffers, [&wake] { sem_post(&wake); }),
        classes(sink),
        aggregator(sink, {.events = options.events}),
        reader(collector.api(), collector.launches(), collector.nodes(), classes, aggregator) {}

  Collector collector;
  KernelClasses classes;
  ActivityAggregator aggregator;
  RecordReader reader;
  GraphSampler sampler;
  StampConverter stamps;
  struct Counts {
    std::uint64_t lost = 0;  // dropped, without times or of unknown devices
    std::uint64_t graphs = 0;
    std::uint64_t divided_graphs = 0;
  };
  Counts counted() const {
    return {dropped + reader.without_times() + aggregator.unplaced(), aggregator.graph_launches(),
            aggregator.graph_expanded()};
  }

  std::uint64_t dropped = 0;
  Counts all;      // of the last look
  Counts program;  // without those of isolated re-runs
  bool runtime_calls = false;
  // Launches without buffers
  std::uint64_t completed = 0;
  std::uint32_t launch = 0;
  std::optional<HostTime> silent_since;
  std::uint32_t silent_launch = 0;
  std::string taken_away;
};

Tracer::Tracer(std::unique_ptr<model::ActivitySink> sink, Options options)
    : options_(options), sink_(std::move(sink)) {
  sem_init(&wake_, 0, 0);
  scopes::send_all_again();
  auto thread = start_thread([this] { run(); }, [this](const char* why) { give_up(why); });
  if (thread) {
    thread_ = std::move(*thread);
  } else {  // the program runs untraced
    ended_ = true;
  }
}

void Tracer::start_cupti(const std::function<Result<CuptiApi>()>& load, bool whole_graphs) {
  if (stop_.load() || kernels_started_.exchange(true)) return;
  std::string problem;
  if (auto api = load(); !api) {
    problem = api.error().message;
  } else {
    // Never destroyed: CUPTI may hold on to it even where it refused something.
    auto* kernels = new Kernels(std::move(*api), *sink_, options_, wake_);
    const auto started = kernels->collector.start(whole_graphs, options_.events);
    problem = started ? kernels->collector.problem() : started.error().message;
    (started ? kernels_ : refused_).store(kernels);
  }
  {
    const std::scoped_lock lock(mutex_);
    start_problem_ = problem;
  }
  if (stop_.load()) stop_collecting();  // its thread may have ended meanwhile
  sem_post(&wake_);
}

bool Tracer::start_work(const MakeWork& make) {
  if (stop_.load() || kernels_started_.exchange(true)) return false;
  auto work = make(*sink_, [this] { sem_post(&wake_); });
  if (!work) {
    const std::scoped_lock lock(mutex_);
    start_problem_ = work.error().message;
  } else {
    work_.store(work->release());
  }
  if (stop_.load()) stop_collecting();  // its thread may have ended meanwhile
  sem_post(&wake_);
  return work.has_value();
}

void Tracer::stop_collecting() {
  if (WorkSource* const work = work_.exchange(nullptr)) work->stop();
  Kernels* const kernels = kernels_.exchange(nullptr);
  if (kernels == nullptr) return;
  kernels->collector.stop();
  refused_.store(kernels);  // kept, as CUPTI may hold on to it
}

// On its thread, which ends: nothing may pile up of what launches and CUPTI hand over.
void Tracer::give_up(const char* why) {
  stop_.store(true);
  try {
    {
      const std::scoped_lock lock(mutex_);
      start_problem_ = fmt::format("the trace ends early: {}", why);
    }
    send_status(true);
    sink_.reset();
  } catch (...) {  // no memory to say so: the trace is one that was cut off
  }
  stop_collecting();
  finish(UINT64_MAX, true);
}

void Tracer::add_source(Source source) {
  const std::scoped_lock lock(mutex_);
  sources_.push_back(source);
}

void Tracer::set_reruns(bool active) {
  in_reruns_.store(active);
  sem_post(&wake_);
}

bool Tracer::flush(Duration timeout) {
  const std::uint64_t mine = flushes_wanted_.fetch_add(1) + 1;
  sem_post(&wake_);
  return wait_for(mine, timeout);
}

bool Tracer::end(Duration timeout, bool exiting) {
  stop_.store(true);
  sem_post(&wake_);
  const bool in_time = wait_for(UINT64_MAX, timeout);
  {
    const std::scoped_lock lock(mutex_);
    if (thread_.joinable()) {
      if (in_time && !exiting) {
        thread_.join();
      } else {
        thread_.detach();
      }
    }
  }
  if (in_time && !exiting) stop_collecting();
  return in_time;
}

bool Tracer::wait_for(std::uint64_t flush, Duration timeout) {
  std::unique_lock lock(mutex_);
  return reported_.wait_for(lock, timeout, [&] { return ended_ || flushes_done_ >= flush; });
}

void Tracer::wait_until(HostTime deadline) {
  const auto nanoseconds = deadline.time_since_epoch().count();
  timespec at{};
  at.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
  at.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
  while (sem_clockwait(&wake_, CLOCK_MONOTONIC, &at) != 0) {
    if (errno != EINTR) return;
  }
  while (sem_trywait(&wake_) == 0) {  // one round answers all
  }
}

void Tracer::run() {
  pthread_setname_np(pthread_self(), "jouleprof");
  next_round_ = HostClock::now() + options_.period;
  while (true) {
    HostTime deadline = next_round_;
    Kernels* kernels = kernels_.load();
    if (kernels != nullptr) {
      if (const auto next = kernels->sampler.next()) deadline = std::min(deadline, *next);
    }
    wait_until(deadline);
    const bool stopping = stop_.load();
    const std::uint64_t flushes = flushes_wanted_.load();
    kernels = kernels_.load();
    if (kernels != nullptr) drain(*kernels);
    if (WorkSource* const work = work_.load()) work->drain();
    if (stopping) {
      round(true, true);
      send_status(true);
      sink_.reset();
      finish(flushes, true);
      return;
    }
    std::uint64_t done = 0;
    {
      const std::scoped_lock lock(mutex_);
      done = flushes_done_;
    }
    if (flushes != done || HostClock::now() >= next_round_) {
      round(flushes != done, false);
      send_status(false);
      finish(flushes, false);
      next_round_ = HostClock::now() + options_.period;
    }
    if (kernels != nullptr) sample_graphs(*kernels);
  }
}

void Tracer::finish(std::uint64_t flushes, bool ended) {
  {
    const std::scoped_lock lock(mutex_);
    flushes_done_ = flushes;
    ended_ = ended;
  }
  reported_.notify_all();
}

void Tracer::drain(Kernels& kernels) {
  BufferPool& buffers = kernels.collector.buffers();
  for (FullBuffer full = buffers.next(); full.data != nullptr; full = buffers.next()) {
    kernels.reader.read(full, kernels.stamps, HostClock::now());
    buffers.put_back(full.data);
  }
}

void Tracer::round(bool all, bool forced) {
  Kernels* kernels = kernels_.load();
  if (kernels != nullptr) {
    kernels->classes.renew();
    const std::unique_lock asking(asking_, std::try_to_lock);
    if (asking) kernels->collector.api().flush_all(forced ? abi::cupti::kFlushForced : 0);
    kernels->stamps.point(ClockPoint::now());
    drain(*kernels);
    for (const auto& launch : kernels->collector.take_unrecorded()) {
      kernels->aggregator.add(launch);
    }
    const std::uint64_t dropped = asking ? kernels->collector.take_dropped() : 0;
    kernels->dropped += dropped;
    kernels->aggregator.settle(all, dropped > 0);
    const Kernels::Counts before = std::exchange(kernels->all, kernels->counted());
    if (!in_reruns_.load()) {
      kernels->program.lost += kernels->all.lost - before.lost;
      kernels->program.graphs += kernels->all.graphs - before.graphs;
      kernels->program.divided_graphs += kernels->all.divided_graphs - before.divided_graphs;
    }
    watch(*kernels);
  }
  WorkSource* const work = work_.load();
  if (work != nullptr) work->collect(all);
  scopes::send(*sink_);
  if (kernels != nullptr) kernels->aggregator.send();
  if (work != nullptr) work->send();
  std::vector<Source> sources;
  {
    const std::scoped_lock lock(mutex_);
    sources = sources_;
  }
  for (const Source source : sources) source(*sink_);
}

void Tracer::sample_graphs(Kernels& kernels) {
  const GraphSampler::Seen seen{
      std::max(kernels.collector.graph_launches(),
               kernels.aggregator.graph_launches() + kernels.aggregator.node_launches()),
      kernels.aggregator.unknown_graphs()};
  const bool sampled = kernels.sampler.nodes(HostClock::now(), seen);
  kernels.collector.graph_nodes(sampled, in_reruns_.load());
}

// CUPTI keeps a buffer while any of its launches still runs. While it has one of ours that is not
// full, a missing buffer alone therefore proves nothing.
bool Tracer::taken_away(Kernels& k, HostTime now, std::uint32_t launch) const {
  constexpr std::uint32_t kMoreThanABuffer = 40'000;
  const Duration silence = now - *k.silent_since;
  return silence >= options_.taken_away_after &&
         (k.collector.buffers().outside() == 0 || launch - k.silent_launch > kMoreThanABuffer ||
          silence >= 12 * options_.taken_away_after);
}

void Tracer::watch(Kernels& k) {
  // Where a launch through the runtime has an identifier of its own.
  const std::uint64_t launches = k.reader.matched() + k.reader.unmatched();
  if (!k.runtime_calls && k.collector.subscribed() && launches >= 1000 &&
      k.reader.unmatched() > launches / 2) {
    k.runtime_calls = true;
    k.collector.watch_runtime_calls();
  }

  const std::uint64_t completed = k.collector.buffers().completed();
  const std::uint32_t launch = k.collector.last_launch();
  const HostTime now = HostClock::now();
  if (completed != k.completed) {
    k.silent_since.reset();
    k.taken_away.clear();
  } else if (launch != k.launch) {
    if (!k.silent_since) {
      k.silent_since = now;
      k.silent_launch = launch;
    }
    if (k.taken_away.empty() && taken_away(k, now, launch)) {
      k.taken_away = fmt::format(
          "work is launched, but CUPTI no longer hands over its records: {} seems to take them. "
          "Let it write its trace and run `jouleprof annotate` on that",
          likely_profiler(loaded_libraries()));
    }
  }
  k.completed = completed;
  k.launch = launch;
  k.collector.memsets().adapt(now);
}

void Tracer::send_status(bool ended) {
  model::TraceStatus status;
  {
    const std::scoped_lock lock(mutex_);
    status.problem = start_problem_;
  }
  if (const Kernels* k = kernels_.load()) {
    status.activities = k->aggregator.activities();
    status.dropped = k->program.lost;
    status.late = k->aggregator.late();
    status.graph_launches = k->program.graphs;
    status.graph_expanded = k->program.divided_graphs;
    status.memsets_left_out = k->collector.memsets().left_out();
    if (!k->taken_away.empty()) status.problem = k->taken_away;
  }
  if (const WorkSource* const work = work_.load()) work->add_to(status);
  status.ended = ended;
  if (any_status_ && status == last_status_) return;
  sink_->status(status);
  last_status_ = status;
  any_status_ = true;
}

}  // namespace jouleprof::cupti
