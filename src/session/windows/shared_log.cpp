#include "session/windows/shared_log.h"

#include <algorithm>
#include <utility>

namespace jouleprof::session {
namespace {

template <typename Id>
std::uint32_t number(Id id) {
  return static_cast<std::uint32_t>(id);
}

}  // namespace

class SharedLog::First final : public ForwardingSink {
 public:
  explicit First(std::shared_ptr<SharedLog> log) : log_(std::move(log)) {}

  using ForwardingSink::add;
  Result<void> add(const model::Domain& domain) override {
    return forward([&](Sink& file) {
      log_->domains_ = std::max(log_->domains_, number(domain.id) + 1);
      return file.add(domain);
    });
  }
  Result<void> add(const model::Sensor& sensor) override {
    return forward([&](Sink& file) {
      log_->sensors_ = std::max(log_->sensors_, number(sensor.id) + 1);
      return file.add(sensor);
    });
  }
  Result<void> finish() override {
    return forward([&](Sink& file) {
      log_->is_finished_ = true;
      return file.finish();
    });
  }
  std::optional<Error> trouble() const override {
    const std::lock_guard lock(log_->mutex_);
    return log_->file_->trouble();
  }

 private:
  Result<void> forward(const Call& call) override {
    const std::lock_guard lock(log_->mutex_);
    return call(*log_->file_);
  }

  const std::shared_ptr<SharedLog> log_;
};

class SharedLog::Later final : public Sink {
 public:
  Later(std::shared_ptr<SharedLog> log, std::uint32_t domains, std::uint32_t sensors)
      : log_(std::move(log)), first_domain_(domains), first_sensor_(sensors) {}

  Result<void> add(const model::Domain& domain) override {
    model::Domain own = domain;
    own.id = here(domain.id);
    if (own.parent) own.parent = here(*own.parent);
    return with([&](Sink& file) {
      log_->domains_ = std::max(log_->domains_, number(own.id) + 1);
      return file.add(own);
    });
  }
  Result<void> add(const model::Sensor& sensor) override {
    model::Sensor own = sensor;
    own.id = here(sensor.id);
    own.domain = here(sensor.domain);
    return with([&](Sink& file) {
      log_->sensors_ = std::max(log_->sensors_, number(own.id) + 1);
      return file.add(own);
    });
  }
  Result<void> add(const model::Warning& warning) override {
    return with([&](Sink& file) { return file.add(warning); });
  }
  Result<void> append(const model::Readings& readings) override {
    model::Readings own = readings;
    for (auto& r : own.counters) r.sensor = here(r.sensor);
    for (auto& r : own.powers) r.sensor = here(r.sensor);
    for (auto& r : own.gauges) r.sensor = here(r.sensor);
    for (auto& r : own.failures) r.sensor = here(r.sensor);
    return with([&](Sink& file) { return file.append(own); });
  }
  Result<void> commit() override {
    return with([](Sink& file) { return file.commit(); });
  }

  Result<void> set_run(const model::RunInfo&) override { return {}; }
  Result<void> add(const ClockPoint&) override { return {}; }
  Result<void> add(const model::Process&) override { return {}; }
  Result<void> add(const model::IdleSpan&) override { return {}; }
  Result<void> set_overhead(const model::Overhead&) override { return {}; }
  Result<void> append(const model::ProcessReadings&) override { return {}; }
  Result<void> append(const std::vector<model::Window>&) override { return {}; }
  Result<void> append(std::uint32_t, const model::Trace&) override { return {}; }
  Result<void> finish() override { return commit(); }

 private:
  model::DomainId here(model::DomainId id) const {
    return model::DomainId{first_domain_ + number(id)};
  }
  model::SensorId here(model::SensorId id) const {
    return model::SensorId{first_sensor_ + number(id)};
  }
  template <typename Call>
  Result<void> with(const Call& call) {
    const std::lock_guard lock(log_->mutex_);
    if (log_->is_finished_) return {};
    return call(*log_->file_);
  }

  const std::shared_ptr<SharedLog> log_;
  const std::uint32_t first_domain_, first_sensor_;
};

std::unique_ptr<Sink> SharedLog::first() { return std::make_unique<First>(shared_from_this()); }

std::unique_ptr<Sink> SharedLog::later() {
  const std::lock_guard lock(mutex_);
  return std::make_unique<Later>(shared_from_this(), domains_, sensors_);
}

}  // namespace jouleprof::session
