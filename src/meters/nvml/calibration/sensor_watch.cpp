#include "meters/nvml/calibration/sensor_watch.h"

#include <chrono>
#include <optional>
#include <utility>

#include "base/process/threads.h"
#include "meters/nvml/power_scopes.h"
#include "meters/nvml/probes/counter_probe.h"
#include "meters/nvml/probes/ring_probe.h"

namespace jouleprof::meters::nvml {
namespace {

using abi::Return;
using namespace std::chrono_literals;

constexpr Duration kPoll = 1ms;
constexpr Duration kRingRead = 250ms;

std::optional<RingProbe> open_ring(const NvmlApi& api, const Gpu& gpu, const NvmlClock& clock) {
  for (const auto type : {abi::SamplingType::kTotalPower, abi::SamplingType::kModulePower}) {
    RingContent content;
    if (read_ring(api, gpu.handle, type, content) != Return::kSuccess) continue;
    const Duration refresh = content.refresh().value_or(20ms);
    return std::make_optional<RingProbe>(api, gpu.handle, type, model::SensorId{},
                                         std::move(content), refresh, kRingRead, clock);
  }
  return std::nullopt;
}

}  // namespace

SensorWatch::SensorWatch(const NvmlApi& api, const Gpu& gpu) : api_(api), gpu_(gpu) {
  auto thread =
      start_thread([this] { watch(stop_.get_token()); }, [this](const char*) { watched_ = {}; });
  if (thread) thread_ = std::move(*thread);
}

SensorWatch::~SensorWatch() { (void)stop(); }

Watched SensorWatch::stop() {
  stop_.request_stop();
  if (thread_.joinable()) thread_.join();
  return std::move(watched_);
}

void SensorWatch::watch(const std::stop_token& stop) {
  const auto scopes = find_powers(api_, gpu_.handle, gpu_.generation);
  const auto& powers = scopes.gpu.any() ? scopes.gpu : scopes.module;
  std::vector<Field> fields;
  std::vector<std::vector<model::PowerReading>*> into;
  const auto add = [&](const std::optional<Field>& field, auto& readings) {
    if (!field) return;
    fields.push_back(*field);
    into.push_back(&readings);
  };
  add(powers.instant, watched_.instant);
  add(powers.average, watched_.average);

  const NvmlClock clock = NvmlClock::complete({});
  auto ring = open_ring(api_, gpu_, clock);
  model::Readings readings;
  HostTime ring_due = HostClock::now() + kRingRead;
  while (true) {
    const bool last = stop.stop_requested();
    const HostTime before = HostClock::now();
    const auto answers = read_fields(api_, gpu_.handle, fields);
    const HostTime at = before + (HostClock::now() - before) / 2;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (answers[i].code != Return::kSuccess || !answers[i].value) continue;
      into[i]->push_back({model::SensorId{}, at, Power::watts(*answers[i].value * 1e-3)});
    }
    if (ring && (last || at >= ring_due)) {
      ring->read(readings);
      ring_due = at + kRingRead;
    }
    if (last) break;
    std::this_thread::sleep_for(kPoll);
  }
  watched_.ring = std::move(readings.powers);
}

std::vector<model::CounterReading> read_counter(const NvmlApi& api, const Gpu& gpu,
                                                Duration length) {
  std::vector<model::CounterReading> reads;
  const HostTime end = HostClock::now() + length;
  while (HostClock::now() < end) {
    Return code{};
    const HostTime before = HostClock::now();
    const auto total = read_total_energy(api, gpu.handle, code);
    if (!total) return {};
    reads.push_back({model::SensorId{}, before, HostClock::now(), *total});
    std::this_thread::sleep_for(kPoll);
  }
  return reads;
}

}  // namespace jouleprof::meters::nvml
