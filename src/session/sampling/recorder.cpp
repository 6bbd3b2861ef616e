#include "session/sampling/recorder.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/process/threads.h"

namespace jouleprof::session {

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
  const std::size_t bytes = recording::series_bytes(batch);
  {
    std::unique_lock lock(mutex_);
    if (stopped_) return;
    if (!thread_.joinable()) return write_all(batch, lock);
    losing_ = limited && bytes > 0 && recording::series_bytes(waiting_) + bytes > most_bytes_;
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
    written = sink_->append(batch);
    if (written) written = sink_->commit();
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

}  // namespace jouleprof::session
