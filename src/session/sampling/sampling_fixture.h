// Meters for tests.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "meters/meter.h"
#include "model/device/sensor.h"
#include "session/sampling/recording_sink.h"

namespace jouleprof::session {

// One GPU with a counter (sensor 0) and a power sensor (sensor 1), each with a probe of its own,
// and its memory as a domain within it (sensor 2, no probe).
class FakeMeter : public meters::Meter {
 public:
  explicit FakeMeter(std::string device = "gpu0", std::string uuid = "GPU-0",
                     Duration period = std::chrono::milliseconds{5})
      : probes_{{device + " counter", period}, {device + " power", period}} {
    using model::DomainId;
    using model::SensorId;
    using model::SensorKind;
    domains_.push_back(
        {DomainId{0}, model::DomainKind::kGpu, device, "Fake GPU", uuid, {}, true, ""});
    domains_.push_back({DomainId{1}, model::DomainKind::kGpuMemory, device, "Fake GPU", uuid,
                        DomainId{0}, true, ""});
    for (std::uint32_t i = 0; i < 3; ++i) {
      model::Sensor sensor;
      sensor.id = SensorId{i};
      sensor.domain = DomainId{i / 2};
      sensor.kind = i == 0 ? SensorKind::kEnergyCounter : SensorKind::kPowerInstant;
      sensor.name = "fake";
      sensors_.push_back(sensor);
    }
  }

  std::string name() const override { return "fake"; }
  const std::vector<model::Domain>& domains() const override { return domains_; }
  const std::vector<model::Sensor>& sensors() const override { return sensors_; }
  const std::vector<meters::Missing>& missing() const override { return missing_; }
  const std::vector<meters::Probe>& probes() const override { return probes_; }

  HostTime read(std::size_t index, model::Readings& out) override {
    const HostTime now = HostClock::now();
    if (index == 0) {
      out.counters.push_back({model::SensorId{0}, now, HostClock::now(), Energy::joules(++reads_)});
    } else {
      out.powers.push_back({model::SensorId{1}, now, Power::watts(100)});
      out.powers.push_back({model::SensorId{2}, now, Power::watts(10)});
    }
    return now + probes_[index].period;
  }

 protected:
  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
  std::vector<meters::Missing> missing_;
  std::vector<meters::Probe> probes_;

 private:
  double reads_ = 0;
};

// A gate that a test opens in the end, so that no thread outlives it.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// Its counter does not answer before the gate opens. `destroyed` opens when it is gone.
class HangingMeter final : public FakeMeter {
 public:
  HangingMeter(std::shared_ptr<Gate> gate, std::shared_ptr<Gate> destroyed)
      : FakeMeter("gpu7", "GPU-7"), gate_(std::move(gate)), destroyed_(std::move(destroyed)) {}
  ~HangingMeter() override { destroyed_->open(); }
  HostTime read(std::size_t index, model::Readings& out) override {
    if (index == 0) gate_->wait();
    return FakeMeter::read(index, out);
  }

 private:
  std::shared_ptr<Gate> gate_;
  std::shared_ptr<Gate> destroyed_;
};

// Its probes name their sensors, and it counts how often each is read.
class NamingMeter final : public FakeMeter {
 public:
  using Counts = std::array<std::atomic<int>, 2>;
  explicit NamingMeter(std::shared_ptr<Counts> counts) : counts_(std::move(counts)) {
    probes_[0].sensors = {model::SensorId{0}};
    probes_[1].sensors = {model::SensorId{1}, model::SensorId{2}};
  }
  HostTime read(std::size_t index, model::Readings& out) override {
    ++(*counts_)[index];
    return FakeMeter::read(index, out);
  }

 private:
  std::shared_ptr<Counts> counts_;
};

// Every read fails.
class FailingMeter final : public FakeMeter {
 public:
  HostTime read(std::size_t index, model::Readings& out) override {
    const HostTime now = HostClock::now();
    out.failures.push_back({model::SensorId{static_cast<std::uint32_t>(index)}, now,
                            Error{Errc::kUnavailable, "GPU is lost"}});
    return now + std::chrono::milliseconds{5};
  }
};

// Says what a function says about the processes on its device.
class ProcessMeter final : public FakeMeter {
 public:
  using Answer = std::function<Result<std::vector<model::GpuProcessUse>>()>;
  // `utilisation` is that of the whole board; absent: it has none.
  explicit ProcessMeter(Answer answer, std::optional<double> utilisation = {})
      : answer_(std::move(answer)), utilisation_(utilisation) {
    if (!utilisation_) return;
    model::Sensor sensor;
    sensor.id = model::SensorId{3};
    sensor.domain = model::DomainId{0};
    sensor.kind = model::SensorKind::kGauge;
    sensor.name = model::gauge::kGpuUtilisation;
    sensors_.push_back(sensor);
  }
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override {
    if (utilisation_) out.gauges.push_back({model::SensorId{3}, HostClock::now(), *utilisation_});
    return answer_();
  }

 private:
  Answer answer_;
  std::optional<double> utilisation_;
};

using Meters = std::vector<std::unique_ptr<meters::Meter>>;

template <typename... M>
Meters meters_of(std::unique_ptr<M>... all) {
  Meters list;
  (list.push_back(std::move(all)), ...);
  return list;
}

// Another sink, which outlives it.
class SinkReference final : public Sink {
 public:
  explicit SinkReference(Sink& to) : to_(to) {}
  Result<void> append(const Batch& batch) override { return to_.append(batch); }
  Result<void> commit() override { return to_.commit(); }
  Result<void> finish() override { return to_.finish(); }

 private:
  Sink& to_;
};

inline Batch batch_of(model::Readings readings) {
  Batch batch;
  batch.readings = std::move(readings);
  return batch;
}
inline Batch batch_of(const model::RunInfo& run) {
  Batch batch;
  batch.run = run;
  return batch;
}

// A sink whose disk becomes full, for tests.
class FailingSink final : public Sink {
 public:
  // The commit after so many good ones fails, and everything after it.
  explicit FailingSink(int good_commits) : good_(good_commits) {}
  int commits() const { return commits_; }

  Result<void> append(const Batch&) override { return state(); }
  Result<void> commit() override {
    if (commits_ == good_) full_ = true;
    if (!full_) ++commits_;
    return state();
  }
  Result<void> finish() override { return state(); }

 private:
  Result<void> state() const {
    return full_ ? Result<void>(fail(Errc::kUnavailable, "disk full")) : Result<void>{};
  }
  int good_;
  std::atomic<int> commits_{0};
  std::atomic<bool> full_{false};
};

}  // namespace jouleprof::session
