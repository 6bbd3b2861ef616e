// What all kinds of session share: sampling, processes, windows, traces and signals, served in turn
// by one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include "session/hub/hub_server.h"
#include "session/live/live_engine.h"
#include "session/run/session.h"
#include "session/run/signals.h"
#include "session/run/trace_watch.h"
#include "session/sampling/recorded_sampling.h"

namespace jouleprof::session {

class Engine {
 public:
  // `domains`: those of the sampler with their visibility decided.
  Engine(const SessionOptions& options, SignalStream& signals, Sampler sampler,
         std::vector<model::Domain> domains, Sink* sink);

  void start();

  // From now on snapshots count their energy and time anew.
  void restart_snapshots() { snapshots_since_ = HostClock::now(); }
  void read_soon() { sampling_.read_soon(); }

  // What to do with a signal. Default: it interrupts.
  std::function<void(const Signal&)> on_signal;

  // Serves everything until `until`, or `ended` says so, or an interruption. `ended` is asked after
  // each signal and whenever `fd` is readable.
  void serve(HostTime until, const std::function<bool()>& ended = nullptr, int fd = -1);
  bool interrupted() const { return interrupted_by.has_value() || options_.stop.stop_requested(); }

  void warn(std::string text) { sampling_.warn(std::move(text)); }
  void look_at_processes(bool all = false);
  void post_run() { sampling_.batch.run = run; }  // records `run` as it is now
  void post(const model::IdleSpan& span) { sampling_.batch.idle_spans.push_back(span); }

  // Last reads, then everything is written and closed.
  SessionResult finish();

  model::RunInfo run;
  ProcessWatch processes;
  std::optional<int> interrupted_by;
  pid_t child = 0;               // the one child that is not to be reaped
  HubServer* hub = nullptr;      // outlives the engine; stopped in finish()
  TraceWatch* traces = nullptr;  // outlives the engine; asked for the rest in finish()

 private:
  HostTime buffer_due() const;
  void take_in(const Sampled& sampled);
  HostTime serve_programs();
  void serve_members();
  void show_snapshot(HostTime now);
  void flush();
  void gather();  // what programs have sent, into the batch
  void take_traces();
  void end_traces();
  void warn_all(std::vector<std::string>&& texts);

  const SessionOptions& options_;
  SignalStream& signals_;
  std::optional<LiveEngine> live_;  // where snapshots are wanted
  RecordedSampling sampling_;
  AskedReads reads_;
  std::vector<model::GpuProcessUse> uses_;  // since the last look
  std::map<pid_t, pid_t> parents_;          // likewise; as Sampled's
  HostTime begin_{};
  Duration cpu_at_begin_{};
  HostTime snapshots_since_{};
  HostTime next_collect_{};
  HostTime next_snapshot_{};
  std::uint64_t snapshots_ = 0;
};

}  // namespace jouleprof::session
