#include "session/sampling/recorder.h"

#include <iterator>
#include <utility>

#include "session/sampling/threads.h"

namespace jouleprof::session {
namespace {

template <typename T>
void move_append(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <typename T>
Result<void> add_all(Sink& sink, const std::vector<T>& items) {
  for (const auto& item : items) {
    if (auto ok = sink.add(item); !ok) return ok;
  }
  return {};
}

}  // namespace

bool Batch::empty() const {
  return !run && clock_points.empty() && domains.empty() && sensors.empty() && processes.empty() &&
         idle_spans.empty() && warnings.empty() && !overhead && readings.empty() &&
         process_readings.empty() && windows.empty() && traces.empty();
}

void Batch::append(Batch&& later) {
  if (later.run) run = std::move(later.run);
  if (later.overhead) overhead = later.overhead;
  move_append(later.clock_points, clock_points);
  move_append(later.domains, domains);
  move_append(later.sensors, sensors);
  move_append(later.processes, processes);
  move_append(later.idle_spans, idle_spans);
  move_append(later.warnings, warnings);
  move_append(later.readings.counters, readings.counters);
  move_append(later.readings.powers, readings.powers);
  move_append(later.readings.gauges, readings.gauges);
  move_append(later.readings.failures, readings.failures);
  move_append(later.process_readings.processes, process_readings.processes);
  move_append(later.process_readings.gpu_processes, process_readings.gpu_processes);
  move_append(later.process_readings.machine, process_readings.machine);
  move_append(later.windows, windows);
  move_append(later.traces, traces);
}

Recorder::Recorder(Sink* sink) : sink_(sink) {
  if (sink_ == nullptr) return;
  thread_ = start_without_signals([this] { run(); });
}

Recorder::~Recorder() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  posted_.notify_one();
  thread_.join();
}

void Recorder::post(Batch&& batch) {
  if (sink_ == nullptr || batch.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
    waiting_.append(std::move(batch));
  }
  posted_.notify_one();
}

std::optional<Error> Recorder::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool Recorder::caught_up() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !writing_ && !error_;
}

Result<void> Recorder::finish() {
  if (sink_ == nullptr) return {};
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  posted_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (error_) return tl::unexpected(*error_);
  return sink_->finish();
}

void Recorder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Batch batch = std::exchange(waiting_, Batch{});
    writing_ = true;
    lock.unlock();
    const auto written = write(batch);
    lock.lock();
    writing_ = false;
    if (!written) {
      error_ = written.error();
      waiting_ = Batch{};
      return;
    }
  }
}

Result<void> Recorder::write(const Batch& batch) {
  Sink& sink = *sink_;
  Result<void> ok{};
  if (batch.run) ok = sink.set_run(*batch.run);
  if (ok) ok = add_all(sink, batch.domains);
  if (ok) ok = add_all(sink, batch.sensors);
  if (ok) ok = add_all(sink, batch.clock_points);
  if (ok) ok = add_all(sink, batch.processes);
  if (ok) ok = add_all(sink, batch.idle_spans);
  if (ok) ok = add_all(sink, batch.warnings);
  if (ok && batch.overhead) ok = sink.set_overhead(*batch.overhead);
  if (ok && !batch.readings.empty()) ok = sink.append(batch.readings);
  if (ok && !batch.process_readings.empty()) ok = sink.append(batch.process_readings);
  if (ok && !batch.windows.empty()) ok = sink.append(batch.windows);
  for (const auto& part : batch.traces) {
    if (ok) ok = sink.append(part.trace, part.more);
  }
  if (ok) ok = sink.commit();
  return ok;
}

}  // namespace jouleprof::session
