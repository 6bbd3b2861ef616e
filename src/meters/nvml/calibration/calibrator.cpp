#include "meters/nvml/calibration/calibrator.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "meters/nvml/api/nvml_error.h"
#include "meters/nvml/calibration/board_look.h"
#include "meters/nvml/calibration/cuda_load.h"
#include "meters/nvml/calibration/steady_power.h"

namespace jouleprof::meters::nvml {
namespace {

using namespace std::chrono_literals;

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

}  // namespace

// A second use of NVML besides the meter's, because the meter limits how often it reads.
class Calibrator::Session {
 public:
  static Result<std::unique_ptr<Session>> open(const std::string& library) {
    auto api = load_nvml(library);
    if (!api) return forward_error(api);
    if (const auto code = api->init(); code != abi::Return::kSuccess) {
      return tl::unexpected(nvml_error(*api, "nvmlInit", code));
    }
    return std::unique_ptr<Session>(new Session(std::move(*api)));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { api_.shutdown(); }
  const NvmlApi& api() const { return api_; }

 private:
  explicit Session(NvmlApi api) : api_(std::move(api)) {}
  NvmlApi api_;
};

Calibrator::Calibrator(std::unique_ptr<NvmlMeter> meter, std::unique_ptr<Session> session,
                       Progress progress)
    : meter_(std::move(meter)), session_(std::move(session)), progress_(std::move(progress)) {}

Calibrator::Calibrator(Calibrator&&) noexcept = default;
Calibrator::~Calibrator() = default;

Result<Calibrator> Calibrator::open(const NvmlOptions& options, Progress progress) {
  auto meter = NvmlMeter::open(options);
  if (!meter) return forward_error(meter);
  auto session = Session::open(options.library);
  if (!session) return forward_error(session);
  return Calibrator(std::move(*meter), std::move(*session), std::move(progress));
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
  SensorWatch watch(session_->api(), gpu);
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
  const NvmlApi& api = session_->api();
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
  SensorWatch watch(session_->api(), gpu);
  auto busy = run_bursts(*load);
  if (!busy) return forward_error(busy);
  std::this_thread::sleep_for(kRest);
  observed.busy = std::move(*busy);
  observed.powers = watch.stop();
  observed.counter = read_counter(session_->api(), gpu, kCounterTime);
  return observed;
}

}  // namespace jouleprof::meters::nvml
