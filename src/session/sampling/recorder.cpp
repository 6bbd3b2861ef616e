#include "session/sampling/recorder.h"

#include <fmt/format.h>

#include <exception>
#include <iterator>
#include <utility>

#include "base/process/threads.h"

namespace jouleprof::session {
namespace {

template <typename T>
Result<void> add_all(Sink& sink, const std::vector<T>& items) {
  for (const auto& item : items) {
    if (auto ok = sink.add(item); !ok) return ok;
  }
  return {};
}

template <typename T>
void move_append(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <typename... T>
std::size_t bytes_of(const std::vector<T>&... lists) {
  return ((lists.size() * sizeof(T)) + ... + 0);
}

}  // namespace

std::string RecordingLoss::text() const {
  return fmt::format(
      "the disk took nothing for too long: {} readings and {} windows of {:.1f} s were not "
      "recorded",
      readings, windows, seconds(end - begin));
}

Recorder::Recorder(Sink* sink, std::size_t most_bytes) : sink_(sink), most_bytes_(most_bytes) {
  if (sink_ == nullptr) return;
  auto thread = start_thread([this] { run(); }, [this](const char* why) { stop(why); });
  if (thread) thread_ = std::move(*thread);  // else post() writes
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

void Recorder::post(Batch&& batch) { post(std::move(batch), true); }

void Recorder::post_last(Batch&& batch) { post(std::move(batch), false); }

void Recorder::post(Batch&& batch, bool limited) {
  if (sink_ == nullptr || batch.empty()) return;
  const std::size_t bytes = batch.series_bytes();
  {
    std::unique_lock lock(mutex_);
    if (stopped_) return;
    if (!thread_.joinable()) return write_all(batch, lock);
    losing_ = limited && bytes > 0 && waiting_.series_bytes() + bytes > most_bytes_;
    if (losing_) drop_series_of(batch);
    waiting_.append(std::move(batch));
  }
  posted_.notify_one();
}

void Recorder::drop_series_of(Batch& batch) {
  const HostTime now = HostClock::now();
  if (!loss_) loss_ = RecordingLoss{now, now, 0, 0};
  loss_->end = now;
  const auto& r = batch.readings;
  const auto& p = batch.process_readings;
  loss_->readings += r.counters.size() + r.powers.size() + r.gauges.size() + r.failures.size() +
                     p.processes.size() + p.gpu_processes.size() + p.machine.size();
  loss_->windows += batch.windows.size();
  batch.drop_series();
}

std::optional<RecordingLoss> Recorder::take_loss(bool now) {
  if (losing_ && !now) return std::nullopt;
  return std::exchange(loss_, std::nullopt);
}

std::optional<Error> Recorder::error() {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool Recorder::caught_up() {
  const std::lock_guard lock(mutex_);
  return waiting_.empty() && !writing_ && !error_;
}

bool Recorder::has_waiting_traces() {
  const std::lock_guard lock(mutex_);
  return !waiting_.traces.empty();
}

Result<void> Recorder::finish() {
  if (sink_ == nullptr) return {};
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  posted_.notify_one();
  if (thread_.joinable()) thread_.join();
  if (stopped_) return tl::unexpected(*error_);
  try {
    return sink_->finish();
  } catch (const std::exception& e) {
    return fail(Errc::kInternal, fmt::format("cannot finish the recording: {}", e.what()));
  }
}

void Recorder::stop(const char* why) {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  waiting_ = Batch{};
  error_ = Error{Errc::kInternal, fmt::format("cannot write the recording: {}", why)};
}

void Recorder::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Batch batch = std::exchange(waiting_, Batch{});
    write_all(batch, lock);
    if (stopped_) return;
  }
}

void Recorder::write_all(const Batch& batch, std::unique_lock<std::mutex>& lock) {
  writing_ = true;
  lock.unlock();
  Result<void> written;
  std::optional<Error> trouble;
  try {
    written = write(batch);
    trouble = sink_->trouble();
  } catch (const std::exception& e) {
    written = fail(Errc::kInternal, fmt::format("cannot write the recording: {}", e.what()));
  }
  lock.lock();
  writing_ = false;
  if (trouble) error_ = trouble;
  if (written) return;
  error_ = written.error();
  waiting_ = Batch{};
  stopped_ = true;
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

std::size_t Batch::series_bytes() const {
  return bytes_of(readings.counters, readings.powers, readings.gauges, readings.failures,
                  process_readings.processes, process_readings.gpu_processes,
                  process_readings.machine, windows);
}

void Batch::drop_series() {
  readings.clear();
  process_readings.clear();
  windows.clear();
}

}  // namespace jouleprof::session
