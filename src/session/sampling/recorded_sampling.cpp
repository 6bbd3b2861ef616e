#include "session/sampling/recorded_sampling.h"

#include <fmt/format.h>

#include <utility>

namespace jouleprof::session {
namespace {

constexpr std::size_t kMostWarnings = 1000;

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
  auto observed = clock_.look(ClockPoint::now());
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

void RecordedSampling::stop(Duration patience) {
  Sampled sampled;
  sampler_.stop(patience, sampled);
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

}  // namespace jouleprof::session
