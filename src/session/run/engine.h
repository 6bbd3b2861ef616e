// What all kinds of session share: meters, processes, clocks, recording and signals, served in
// turn.
#pragma once

#include <functional>
#include <set>

#include "session/run/process_watch.h"
#include "session/run/session.h"
#include "session/run/signals.h"
#include "session/run/trace_watch.h"
#include "session/sampling/clock_watch.h"
#include "session/sampling/live_power.h"
#include "session/sampling/recorder.h"
#include "session/sampling/sampler.h"
#include "session/windows/window_server.h"

namespace jouleprof::session {

class Engine {
 public:
  // `domains`: those of the sampler with their visibility decided.
  Engine(const SessionOptions& options, SignalStream& signals, Sampler sampler,
         std::vector<model::Domain> domains, Sink* sink);

  void start();

  void begin_phase(Phase phase);
  void read_soon() { sampler_.read_soon(); }

  // What to do with a signal. Default: it interrupts.
  std::function<void(const Signal&)> on_signal;

  // Serves everything until `until`, or `ended` says so, or an interruption. `ended` is asked after
  // each signal and whenever `fd` is readable.
  void serve(HostTime until, const std::function<bool()>& ended = nullptr, int fd = -1);
  bool interrupted() const { return interrupted_by.has_value() || options_.stop.stop_requested(); }

  void warn(std::string text);
  void look_at_processes(bool all = false);
  void post_run();  // records `run` as it is now
  void post(const model::IdleSpan& span) { batch_.idle_spans.push_back(span); }

  // Last reads, then everything is written and closed.
  SessionResult finish();

  model::RunInfo run;
  ProcessWatch processes;
  std::optional<int> interrupted_by;
  pid_t child = 0;                  // the one child that is not to be reaped
  WindowServer* windows = nullptr;  // outlives the engine; stopped in finish()
  TraceWatch* traces = nullptr;     // outlives the engine; asked for the rest in finish()

 private:
  HostTime buffer_due() const;
  void collect();
  void take_in(Sampled&& sampled);
  void serve_windows();
  void watch_clock();
  void tell_status(HostTime now);
  void tick(HostTime now);
  void flush();
  void take_traces();
  void end_traces();

  const SessionOptions& options_;
  SignalStream& signals_;
  Sampler sampler_;
  std::vector<model::Domain> domains_;
  LivePower live_;
  ClockWatch clock_;
  Recorder recorder_;
  Batch batch_;
  std::vector<model::GpuProcessUse> uses_;  // since the last look
  model::Readings tick_readings_;
  model::ProcessReadings tick_process_readings_;
  std::vector<model::Warning> warnings_;
  std::set<std::string> reported_;
  HostTime begin_{};
  Duration cpu_at_begin_{};
  Phase phase_{};
  HostTime phase_begin_{};
  HostTime next_collect_{};
  HostTime next_status_{};
  HostTime last_tick_{};
  HostTime next_tick_{};
  std::uint64_t ticks_ = 0;
};

}  // namespace jouleprof::session
