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

class SharedLog::First final : public Sink {
 public:
  explicit First(std::shared_ptr<SharedLog> log) : log_(std::move(log)) {}

  Result<void> append(const Batch& batch) override {
    const std::lock_guard lock(log_->mutex_);
    return log_->append(batch);
  }
  Result<void> commit() override {
    const std::lock_guard lock(log_->mutex_);
    return log_->file_->commit();
  }
  Result<void> finish() override {
    const std::lock_guard lock(log_->mutex_);
    log_->is_finished_ = true;
    return log_->file_->finish();
  }
  std::optional<Error> trouble() const override {
    const std::lock_guard lock(log_->mutex_);
    return log_->file_->trouble();
  }

 private:
  const std::shared_ptr<SharedLog> log_;
};

class SharedLog::Later final : public Sink {
 public:
  Later(std::shared_ptr<SharedLog> log, std::uint32_t domains, std::uint32_t sensors)
      : log_(std::move(log)), first_domain_(domains), first_sensor_(sensors) {}

  Result<void> append(const Batch& batch) override {
    Batch own;
    own.domains = batch.domains;
    own.sensors = batch.sensors;
    own.readings = batch.readings;
    own.warnings = batch.warnings;
    for (auto& domain : own.domains) {
      domain.id = here(domain.id);
      if (domain.parent) domain.parent = here(*domain.parent);
    }
    for (auto& sensor : own.sensors) {
      sensor.id = here(sensor.id);
      sensor.domain = here(sensor.domain);
    }
    for (auto& r : own.readings.counters) r.sensor = here(r.sensor);
    for (auto& r : own.readings.powers) r.sensor = here(r.sensor);
    for (auto& r : own.readings.gauges) r.sensor = here(r.sensor);
    for (auto& r : own.readings.failures) r.sensor = here(r.sensor);
    const std::lock_guard lock(log_->mutex_);
    return log_->is_finished_ ? Result<void>{} : log_->append(own);
  }
  Result<void> commit() override {
    const std::lock_guard lock(log_->mutex_);
    return log_->is_finished_ ? Result<void>{} : log_->file_->commit();
  }
  Result<void> finish() override { return commit(); }

 private:
  model::DomainId here(model::DomainId id) const {
    return model::DomainId{first_domain_ + number(id)};
  }
  model::SensorId here(model::SensorId id) const {
    return model::SensorId{first_sensor_ + number(id)};
  }

  const std::shared_ptr<SharedLog> log_;
  const std::uint32_t first_domain_, first_sensor_;
};

Result<void> SharedLog::append(const Batch& batch) {
  for (const auto& domain : batch.domains) domains_ = std::max(domains_, number(domain.id) + 1);
  for (const auto& sensor : batch.sensors) sensors_ = std::max(sensors_, number(sensor.id) + 1);
  return file_->append(batch);
}

std::unique_ptr<Sink> SharedLog::first() { return std::make_unique<First>(shared_from_this()); }

std::unique_ptr<Sink> SharedLog::later() {
  const std::lock_guard lock(mutex_);
  return std::make_unique<Later>(shared_from_this(), domains_, sensors_);
}

}  // namespace jouleprof::session
