#include "meters/nvml/calibration/calibrator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <utility>

#include "base/process/threads.h"
#include "meters/nvml/api/nvml_api.h"
#include "meters/nvml/device_sensors.h"
#include "meters/nvml/probes/probes.h"
#include "model/device/sensor.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;
using abi::Return;

constexpr Duration kCheck = 1s;     // watched for other work before the load
constexpr Duration kRest = 2500ms;  // without load, before and after it: longer than any window
constexpr Duration kLoad = 15s;
// Of bursts and pauses: random, so that no period of a sensor coincides with theirs.
constexpr double kShortest = 0.030;
constexpr double kLongest = 0.400;
constexpr Duration kCounterTime = 4s;
// Of power levels: how long one is observed, and how long to wait for the board to be at rest and
// for the power to be steady after the context was created.
constexpr Duration kRestTime = 2s;
constexpr Duration kRestPatience = 20s;
constexpr Duration kHeldTime = 1500ms;
constexpr int kHeldAttempts = 4;
constexpr unsigned kBusyPercent = 5;
constexpr double kBusyRatio = 0.02;

Result<std::vector<model::BusySpan>> run_bursts(CudaLoad& load) {
  std::mt19937 random(20);
  std::uniform_real_distribution<double> length(kShortest, kLongest);
  std::vector<model::BusySpan> spans;
  const HostTime end = HostClock::now() + kLoad;
  while (HostClock::now() < end) {
    auto span = load.burst(duration_of(length(random)));
    if (!span) return forward_error(span);
    spans.push_back(*span);
    std::this_thread::sleep_for(duration_of(length(random)));
  }
  return spans;
}

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

// Boards at rest run at 210 to 345 MHz, with a context at more than 1 GHz.
constexpr double kHighClock = 600e6;
constexpr double kBusy = 0.05;

// Of steady_power().
constexpr Duration kBin = std::chrono::milliseconds{100};
constexpr std::size_t kFewest = 10;  // bins
constexpr double kTwoSided = 1.96;   // standard deviations

struct Level {
  double mean = 0;
  double deviation = 0;  // standard deviation

  double error(std::size_t count) const {
    return kTwoSided * deviation / std::sqrt(static_cast<double>(count));
  }
};

Level level_of(std::span<const double> watts) {
  Level level;
  for (const double w : watts) level.mean += w / static_cast<double>(watts.size());
  double squares = 0;
  for (const double w : watts) squares += (w - level.mean) * (w - level.mean);
  level.deviation = std::sqrt(squares / static_cast<double>(watts.size() - 1));
  return level;
}

double at_least(double watts, double ratio, double of) { return std::max(watts, ratio * of); }

std::vector<double> bins_of(const std::vector<model::PowerReading>& readings, HostTime begin) {
  struct Bin {
    double sum = 0;
    int count = 0;
  };
  std::map<std::int64_t, Bin> bins;
  for (const auto& r : readings) {
    if (r.at < begin) continue;
    Bin& bin = bins[(r.at - begin) / kBin];
    bin.sum += r.power.watts();
    ++bin.count;
  }
  std::vector<double> means;
  for (const auto& [number, bin] : bins) means.push_back(bin.sum / bin.count);
  return means;
}

// Reads the energy counter for `length` without pauses (one read takes about 2.5 ms).
// Empty when a read fails.
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

}  // namespace

Calibrator::Calibrator(std::unique_ptr<NvmlMeter> meter, std::shared_ptr<const NvmlApi> api,
                       Progress progress)
    : meter_(std::move(meter)), api_(std::move(api)), progress_(std::move(progress)) {}

Calibrator::Calibrator(Calibrator&&) noexcept = default;
Calibrator::~Calibrator() = default;

Result<Calibrator> Calibrator::open(const NvmlOptions& options, Progress progress) {
  auto meter = NvmlMeter::open(options);
  if (!meter) return forward_error(meter);
  auto api = open_nvml(options.library);
  if (!api) return forward_error(api);
  return Calibrator(std::move(*meter), std::move(*api), std::move(progress));
}

std::optional<model::SensorTraits> Calibrator::assumed_traits(const Gpu& gpu,
                                                              model::SensorKind kind) const {
  std::optional<model::SensorTraits> found;
  for (const auto& sensor : meter_->sensors()) {
    const auto& domain = meter_->domains()[static_cast<std::size_t>(sensor.domain)];
    if (sensor.kind != kind || domain.device != gpu.device()) continue;
    if (domain.kind == model::DomainKind::kGpu) return sensor.traits;
    if (domain.kind == model::DomainKind::kModule) found = sensor.traits;
  }
  return found;
}

Result<void> Calibrator::check_usable(const Gpu& gpu) const {
  if (gpu.error) return tl::unexpected(*gpu.error);
  if (!gpu.mig_enabled) return {};
  return fail(Errc::kUnsupported,
              "the GPU is in MIG mode: a load in one instance does not calibrate the sensors of "
              "the whole GPU. Disable MIG mode to calibrate it");
}

// Levels are those of the GPU, not of a superchip's module.
Result<void> Calibrator::check_own_power(const Gpu& gpu) const {
  for (const auto& sensor : meter_->sensors()) {
    const auto& domain = meter_->domains()[static_cast<std::size_t>(sensor.domain)];
    const bool own = domain.kind == model::DomainKind::kGpu && domain.uuid == gpu.uuid;
    if (own && sensor.kind != model::SensorKind::kGauge) return {};
  }
  return fail(Errc::kUnsupported, "the driver does not report the power of the GPU alone");
}

Result<model::KnownLevel> Calibrator::observe_level(const Gpu& gpu, Duration length) {
  SensorWatch watch(*api_, gpu);
  const HostTime begin = HostClock::now();
  std::this_thread::sleep_for(length);
  const Watched seen = watch.stop();
  for (const auto* readings : {&seen.ring, &seen.instant, &seen.average}) {
    if (readings->empty()) continue;
    const auto steady = steady_power(*readings, begin);
    if (!steady) return forward_error(steady);
    return model::KnownLevel{steady->power, steady->spread, look_at(*meter_, gpu).temperature,
                             RealClock::now()};
  }
  return fail(Errc::kUnavailable, "its power could not be read");
}

Result<model::KnownLevel> Calibrator::observe_rest(const Gpu& gpu) {
  if (auto usable = check_usable(gpu); !usable) return forward_error(usable);
  if (auto own = check_own_power(gpu); !own) return forward_error(own);
  const HostTime end = HostClock::now() + kRestPatience;
  for (;;) {
    // Before and after: a context may begin meanwhile.
    auto reason = look_at(*meter_, gpu).not_at_rest();
    if (!reason) {
      auto level = observe_level(gpu, kRestTime);
      reason = look_at(*meter_, gpu).not_at_rest();
      if (level && !reason) return level;
      if (!reason) reason = level.error().message;
    }
    const bool listed = look_at(*meter_, gpu).processes.value_or(0) > 0;
    if (listed || HostClock::now() >= end) return fail(Errc::kUnavailable, *reason);
    std::this_thread::sleep_for(500ms);
  }
}

// With the load's context. Its creation changes the power for a while.
Result<model::KnownLevel> Calibrator::observe_held(const Gpu& gpu) {
  if (auto own = check_own_power(gpu); !own) return forward_error(own);
  Result<model::KnownLevel> level;
  for (int attempt = 0; attempt < kHeldAttempts; ++attempt) {
    level = observe_level(gpu, kHeldTime);
    if (level) return level;
  }
  return level;
}

Result<void> Calibrator::check_unused(const Gpu& gpu) {
  const auto used = [](const std::string& what) {
    return fail(
        Errc::kUnavailable,
        fmt::format("the GPU is in use: {}. Calibrate it when no other program uses it", what));
  };
  const NvmlApi& api = *api_;
  const HostTime end = HostClock::now() + kCheck;
  do {
    abi::Utilization use{};
    if (api.utilisation && api.utilisation(gpu.handle, &use) == abi::Return::kSuccess &&
        use.gpu > kBusyPercent) {
      return used(fmt::format("its utilisation is {} %", use.gpu));
    }
    std::this_thread::sleep_for(100ms);
  } while (HostClock::now() < end);

  model::Readings ignored;
  const auto processes = meter_->read_processes(ignored);
  if (!processes || !*processes) return {};  // unknown: other work makes the fit fail
  std::size_t idle = 0;
  for (const auto& p : **processes) {
    if (meter_->domains()[static_cast<std::size_t>(p.domain)].device != gpu.device()) continue;
    if (p.compute_utilisation.value_or(0) > kBusyRatio) {
      return used(fmt::format("process {} runs on it", p.pid));
    }
    ++idle;
  }
  if (idle > 0) {
    progress_(fmt::format("{}: {} idle process(es) have a context on it; do not use them now",
                          gpu.device(), idle));
  }
  return {};
}

Result<LoadObservation> Calibrator::observe(const Gpu& gpu) {
  if (auto usable = check_usable(gpu); !usable) return forward_error(usable);
  auto load = CudaLoad::open(gpu.uuid);
  if (!load) return forward_error(load);
  if (auto unused = check_unused(gpu); !unused) return forward_error(unused);
  progress_(fmt::format("{}: calibrating the sensors of this {} with a load, about {:.0f} s",
                        gpu.device(), gpu.name, seconds(2 * kRest + kLoad + kCounterTime)));
  if (auto started = load->start(); !started) return forward_error(started);
  // Creating the context changes the power; wait until that has passed.
  std::this_thread::sleep_for(kRest - kHeldTime);
  LoadObservation observed;
  observed.held = observe_held(gpu);
  SensorWatch watch(*api_, gpu);
  auto busy = run_bursts(*load);
  if (!busy) return forward_error(busy);
  std::this_thread::sleep_for(kRest);
  observed.busy = std::move(*busy);
  observed.powers = watch.stop();
  observed.counter = read_counter(*api_, gpu, kCounterTime);
  return observed;
}

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

std::optional<std::string> BoardLook::not_at_rest() const {
  if (processes && *processes > 0) {
    return fmt::format("{:.0f} process(es) hold a context on it", *processes);
  }
  if (utilisation && *utilisation > kBusy) {
    return fmt::format("its utilisation is {:.0f} %", 100 * *utilisation);
  }
  if (sm_clock && *sm_clock > kHighClock) {
    return fmt::format("its clocks are up ({:.0f} MHz)", *sm_clock * 1e-6);
  }
  if (processes || sm_clock) return std::nullopt;
  return "the driver reports neither its processes nor its clock";
}

BoardLook look_at(NvmlMeter& meter, const Gpu& gpu) {
  model::Readings readings;
  const std::string state = gpu.device() + " state";
  for (std::size_t i = 0; i < meter.probes().size(); ++i) {
    if (meter.probes()[i].name == state) meter.read(i, readings);
  }
  (void)meter.read_processes(readings);
  BoardLook look;
  for (const auto& r : readings.gauges) {
    const auto& sensor = meter.sensors()[static_cast<std::size_t>(r.sensor)];
    const auto& domain = meter.domains()[static_cast<std::size_t>(sensor.domain)];
    if (domain.device != gpu.device()) continue;
    if (sensor.name == model::gauge::kProcessCount) look.processes = r.value;
    if (sensor.name == model::gauge::kSmClock) look.sm_clock = r.value;
    if (sensor.name == model::gauge::kGpuUtilisation) look.utilisation = r.value;
    if (sensor.name == model::gauge::kTemperature) look.temperature = r.value;
  }
  return look;
}

Result<SteadyPower> steady_power(const std::vector<model::PowerReading>& readings, HostTime begin) {
  const auto bins = bins_of(readings, begin);
  if (bins.size() < kFewest) {
    return fail(Errc::kUnavailable, fmt::format("there are readings of {:.1f} s only",
                                                seconds(kBin) * static_cast<double>(bins.size())));
  }
  const std::span all(bins);
  const std::size_t half = bins.size() / 2;
  const Level first = level_of(all.first(half));
  const Level last = level_of(all.last(half));
  const double errors = std::hypot(first.error(half), last.error(half));
  if (std::abs(last.mean - first.mean) > at_least(0.5, 0.005, last.mean) + errors) {
    return fail(Errc::kUnavailable,
                fmt::format("its power was still {} ({:.1f} to {:.1f} W)",
                            last.mean < first.mean ? "falling" : "rising", first.mean, last.mean));
  }
  const auto [low, high] = std::ranges::minmax_element(bins);
  const Level level = level_of(all);
  if (*high - *low > at_least(3, 0.03, level.mean)) {
    return fail(Errc::kUnavailable,
                fmt::format("its power varied between {:.1f} and {:.1f} W", *low, *high));
  }
  const double spread = std::max(kTwoSided * level.deviation, at_least(1, 0.01, level.mean));
  return SteadyPower{Power::watts(level.mean), Power::watts(spread)};
}

}  // namespace jouleprof::meters::nvml
