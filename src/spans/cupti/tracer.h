// Traces the work of this process on GPUs, and sends its records to a sink about once a second.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "model/activity/activity.h"
#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/collector.h"
#include "spans/cupti/record_modes.h"
#include "spans/cupti/records.h"

namespace jouleprof::cupti {

// Work that another library than CUPTI records. All calls but stop() from the tracer's thread.
class WorkSource {
 public:
  virtual ~WorkSource() = default;
  virtual void drain() = 0;  // takes what the library has handed over
  // Takes all that has ended; `all`: no more is expected.
  virtual void collect(bool all) = 0;
  virtual void send() = 0;  // after scopes were defined
  virtual void add_to(model::TraceStatus& status) const = 0;
  virtual void stop() = 0;
};

// Has a thread of its own, which takes no signals; only that thread calls the sink. Where memory
// runs out there, the trace ends with a problem in its status, and the program goes on. Never
// destroyed: its owner keeps it until the process ends, because the driver may call at any time.
// Thread safety: all functions from any thread.
class Tracer {
 public:
  struct Options {
    bool events = false;  // keep each launch
    std::size_t most_buffers = 24;
    Duration period = std::chrono::seconds{1};
    Duration taken_away_after = std::chrono::seconds{10};
  };
  // Sends other records to the sink. Called on the tracer's thread, about once a second and at the
  // end, after layers, ranges and scopes were defined.
  using Source = void (*)(model::ActivitySink& sink);

  // The sink is destroyed on the tracer's thread, after the last record.
  Tracer(std::unique_ptr<model::ActivitySink> sink, Options options);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Begins to collect kernels, once: later and concurrent calls do nothing. Holds
  // no lock while CUPTI works, because CUPTI may wait for another thread that calls this. With
  // an error in what `load` returns, or where CUPTI refuses, the status says why there are no
  // kernels.
  // `whole_graphs`: no graph can have been made executable yet.
  void start_cupti(const std::function<Result<CuptiApi>()>& load, bool whole_graphs);
  void add_source(Source source);

  // Begins to collect from `make`, once, where CUPTI was not started; with its error the status
  // says why there are no kernels. `wake` may be called from any thread when there is much to
  // drain. False where it collects nothing.
  using MakeWork = std::function<Result<std::unique_ptr<WorkSource>>(model::ActivitySink& sink,
                                                                     std::function<void()> wake)>;
  bool start_work(const MakeWork& make);

  bool events() const { return options_.events; }  // whether each launch is kept

  // Between these the process runs isolated re-runs alone. All launches of CUDA graphs are recorded
  // node by node, from some launch soon on, and records that are lost are none of the program's.
  // Graphs that are made meanwhile must not be launched afterwards.
  void begin_reruns() { set_reruns(true); }
  void end_reruns() { set_reruns(false); }
  // Between these, on one thread, CUPTI is not asked: its functions do not return while a kernel
  // does not end, and nothing would be sent any more, not even why.
  void begin_risk() { asking_.lock(); }
  void end_risk() { asking_.unlock(); }

  // Returns when all work that ended before is sent; false when that took longer than `timeout`.
  bool flush(Duration timeout);
  // Sends all records, then ends; false when that took longer than `timeout`. `exiting`: the
  // process is about to end, and the driver may be half gone.
  bool end(Duration timeout, bool exiting);

  // After a fork, in the child: the parent's tracers collect nothing here.
  static void forget_all() noexcept { Collector::forget(); }

 private:
  void set_reruns(bool active);
  struct Kernels;  // what there is once CUPTI was started

  void run();
  void give_up(const char* why);
  void stop_collecting();
  void wait_until(HostTime deadline);
  void drain(Kernels& kernels);
  void round(bool all, bool forced);
  void sample_graphs(Kernels& kernels);
  void watch(Kernels& kernels);
  bool taken_away(Kernels& kernels, HostTime now, std::uint32_t launch) const;
  void send_status(bool ended);
  void finish(std::uint64_t flushes, bool ended);
  bool wait_for(std::uint64_t flush, Duration timeout);

  const Options options_;
  std::unique_ptr<model::ActivitySink> sink_;
  sem_t wake_;
  std::atomic<std::uint64_t> flushes_wanted_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> in_reruns_{false};
  std::mutex asking_;  // held while CUPTI is asked for records
  std::atomic<bool> kernels_started_{false};
  std::atomic<Kernels*> kernels_{nullptr};
  std::atomic<Kernels*> refused_{nullptr};  // what CUPTI may hold on to nevertheless
  std::atomic<WorkSource*> work_{nullptr};  // never destroyed, for the same reason

  std::mutex mutex_;  // guards what follows
  std::condition_variable reported_;
  std::uint64_t flushes_done_ = 0;
  bool ended_ = false;
  std::string start_problem_;
  std::vector<Source> sources_;
  std::thread thread_;

  // The tracer's thread's own
  HostTime next_round_{};
  model::TraceStatus last_status_;
  bool any_status_ = false;
};

}  // namespace jouleprof::cupti
