#include "apps/cli/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "analysis/timeline/sensor_fit.h"
#include "apps/cli/cuda_load.h"
#include "apps/cli/sensor_watch.h"
#include "meters/all/calibration_store.h"
#include "meters/nvml/nvml_error.h"
#include "meters/nvml/nvml_meter.h"

namespace jouleprof::cli {
namespace {

namespace nvml = meters::nvml;
using meters::NvmlMeter;
using model::SensorKind;
using namespace std::chrono_literals;

constexpr Duration kQuiet = 1s;     // watched for other work before the load
constexpr Duration kRest = 2500ms;  // without load, before and after it: longer than any window
constexpr Duration kLoad = 15s;
// Of bursts and pauses: random, so that no period of a sensor can hide behind theirs.
constexpr double kShortest = 0.030;
constexpr double kLongest = 0.400;
constexpr Duration kCounterTime = 4s;
constexpr unsigned kBusyPercent = 5;
constexpr double kBusyRatio = 0.02;

void tell(const std::string& text) { fmt::print(stderr, "jouleprof: {}\n", text); }

// NVML a second time, beside the meter's: the meter reads no more often than measuring needs.
class NvmlSession {
 public:
  static Result<NvmlSession> open(const std::string& library) {
    auto api = nvml::load_nvml(library);
    if (!api) return forward_error(api);
    if (const auto code = api->init(); code != abi::Return::kSuccess) {
      return tl::unexpected(nvml::nvml_error(*api, "nvmlInit", code));
    }
    return NvmlSession(std::move(*api));
  }
  NvmlSession(NvmlSession&& other) noexcept : api_(std::exchange(other.api_, {})) {}
  NvmlSession& operator=(NvmlSession&&) = delete;
  ~NvmlSession() {
    if (api_.shutdown) api_.shutdown();
  }
  const nvml::NvmlApi& api() const { return api_; }

 private:
  explicit NvmlSession(nvml::NvmlApi api) : api_(std::move(api)) {}
  nvml::NvmlApi api_;
};

// Errors: unavailable when somebody else works on the GPU.
Result<void> check_quiet(const nvml::NvmlApi& api, NvmlMeter& meter, const nvml::Gpu& gpu) {
  const auto busy = [&](const std::string& what) {
    return fail(
        Errc::kUnavailable,
        fmt::format("the GPU is in use: {}. Calibrate it while nothing else runs on it", what));
  };
  const HostTime end = HostClock::now() + kQuiet;
  do {
    abi::Utilization use{};
    if (api.utilisation && api.utilisation(gpu.handle, &use) == abi::Return::kSuccess &&
        use.gpu > kBusyPercent) {
      return busy(fmt::format("its utilisation is {} %", use.gpu));
    }
    std::this_thread::sleep_for(100ms);
  } while (HostClock::now() < end);

  const auto processes = meter.read_processes();
  if (!processes || !*processes) return {};  // it can't be told: the fit finds out
  std::size_t idle = 0;
  for (const auto& p : **processes) {
    if (meter.domains()[static_cast<std::size_t>(p.domain)].device != gpu.device()) continue;
    if (p.sm_utilisation.value_or(0) > kBusyRatio) {
      return busy(fmt::format("process {} runs on it", p.pid));
    }
    ++idle;
  }
  if (idle > 0) {
    tell(fmt::format("{}: {} process(es) hold it without working; they should not begin now",
                     gpu.device(), idle));
  }
  return {};
}

Result<std::vector<analysis::BusySpan>> run_bursts(CudaLoad& load) {
  std::mt19937 random(20);
  std::uniform_real_distribution<double> length(kShortest, kLongest);
  std::vector<analysis::BusySpan> spans;
  const HostTime end = HostClock::now() + kLoad;
  while (HostClock::now() < end) {
    auto span = load.burst(duration_of(length(random)));
    if (!span) return forward_error(span);
    spans.push_back(*span);
    std::this_thread::sleep_for(duration_of(length(random)));
  }
  return spans;
}

// What was known of the GPU's sensor of this kind; nothing when it has none.
std::optional<model::SensorTraits> assumed_traits(const NvmlMeter& meter, const nvml::Gpu& gpu,
                                                  SensorKind kind) {
  std::optional<model::SensorTraits> found;
  for (const auto& sensor : meter.sensors()) {
    const auto& domain = meter.domains()[static_cast<std::size_t>(sensor.domain)];
    if (sensor.kind != kind || domain.device != gpu.device()) continue;
    if (domain.kind == model::DomainKind::kGpu) return sensor.traits;
    if (domain.kind == model::DomainKind::kModule) found = sensor.traits;
  }
  return found;
}

double milliseconds(Duration d) { return seconds(d) * 1e3; }

void tell_row(std::string_view sensor, std::string_view trait,
              const std::optional<Duration>& assumed, const analysis::FittedDuration& found) {
  fmt::print(stderr, "  {:<16}{:<10}{:<13}{:.4g} ± {:.1g} ms\n", sensor, trait,
             assumed ? fmt::format("{:.4g} ms", milliseconds(*assumed)) : "unknown",
             milliseconds(found.value), milliseconds(found.error));
}

void tell_value(std::string_view trait, const std::optional<Duration>& assumed, Duration found) {
  fmt::print(stderr, "  {:<16}{:<10}{:<13}{:.3g} ms\n", "", trait,
             assumed ? fmt::format("{:.4g} ms", milliseconds(*assumed)) : "unknown",
             milliseconds(found));
}

// Fits one power sensor and shows the result. Nothing for a sensor that the GPU does not have.
Result<std::optional<model::SensorTraits>> fit_sensor(
    std::string_view name, const std::optional<model::SensorTraits>& assumed,
    const std::vector<analysis::BusySpan>& busy, const std::vector<model::PowerReading>& readings,
    analysis::Stamps stamps) {
  if (!assumed) return std::nullopt;
  const auto fit = analysis::fit_power_sensor(busy, readings, stamps);
  if (!fit) {
    fmt::print(stderr, "  {:<16}not found: {}\n", name, fit.error().message);
    return tl::unexpected(fit.error());
  }
  tell_row(name, "refresh", assumed->refresh, fit->refresh);
  if (!fit->first_order) {
    tell_row("", "window", assumed->window, fit->window);
    tell_row("", "lag", assumed->lag, fit->lag);
  }
  fmt::print(stderr, "  {:<16}{:.0f} W without load, {:.0f} W with it; the fit explains {:.1f} %\n",
             "", fit->idle.watts(), (fit->idle + fit->step).watts(), 100 * fit->r_squared);
  if (fit->first_order) {
    tell_value("rise", assumed->rise, fit->first_order->time_constant);
    tell_value("window", assumed->window, fit->first_order->window);
    tell_value("lag", assumed->lag, fit->first_order->lag);
  }
  model::SensorTraits traits;
  traits.refresh = fit->refresh.value;
  traits.window = fit->first_order ? fit->first_order->window : fit->window.value;
  traits.lag = fit->first_order ? fit->first_order->lag : fit->lag.value;
  if (fit->first_order) traits.rise = fit->first_order->time_constant;
  return traits;
}

// A counter that agrees with what was assumed keeps that: its period is used over many updates, and
// is better known than a few seconds tell.
model::SensorTraits fit_counter(const std::optional<model::SensorTraits>& assumed,
                                const std::vector<model::CounterReading>& reads) {
  model::SensorTraits traits;
  if (!assumed) return traits;
  const auto fit = analysis::fit_counter_refresh(reads);
  if (!fit) {
    fmt::print(stderr, "  {:<16}not found: {}\n", "energy counter", fit.error().message);
    return traits;
  }
  tell_row("energy counter", "refresh", assumed->refresh, *fit);
  const bool agrees =
      assumed->refresh && std::chrono::abs(*assumed->refresh - fit->value) <= 2 * fit->error;
  traits.refresh = agrees ? *assumed->refresh : fit->value;
  return traits;
}

Result<nvml::GpuTraits> calibrate_gpu(const nvml::NvmlApi& api, NvmlMeter& meter,
                                      const nvml::Gpu& gpu) {
  if (gpu.error) return tl::unexpected(*gpu.error);
  if (gpu.mig_enabled) {
    return fail(Errc::kUnsupported,
                "the GPU is in MIG mode: a load in one instance tells nothing sure about the "
                "board's sensors");
  }
  auto load = CudaLoad::open(gpu.uuid);
  if (!load) return forward_error(load);
  if (auto quiet = check_quiet(api, meter, gpu); !quiet) return forward_error(quiet);
  tell(fmt::format("{}: calibrating the sensors of this {} with a load, about {:.0f} s",
                   gpu.device(), gpu.name, seconds(2 * kRest + kLoad + kCounterTime)));
  if (auto started = load->start(); !started) return forward_error(started);
  // The context itself changes the power; what follows begins when that is over.
  std::this_thread::sleep_for(kRest);
  SensorWatch watch(api, gpu);
  auto busy = run_bursts(*load);
  if (!busy) return forward_error(busy);
  std::this_thread::sleep_for(kRest);
  const Watched watched = watch.stop();
  const auto reads = read_counter(api, gpu, kCounterTime);

  const auto assumed = [&](SensorKind kind) { return assumed_traits(meter, gpu, kind); };
  fmt::print(stderr, "  {:<16}{:<10}{:<13}{}\n", "sensor", "trait", "assumed", "found");
  nvml::GpuTraits traits;
  traits.counter = fit_counter(assumed(SensorKind::kEnergyCounter), reads);
  const auto ring = fit_sensor("power samples", assumed(SensorKind::kPowerRing), *busy,
                               watched.ring, analysis::Stamps::kOfSensor);
  const auto instant = fit_sensor("instant power", assumed(SensorKind::kPowerInstant), *busy,
                                  watched.instant, analysis::Stamps::kOfPoll);
  const auto average = fit_sensor("average power", assumed(SensorKind::kPowerAverage), *busy,
                                  watched.average, analysis::Stamps::kOfPoll);
  // The counter integrates what the samples show.
  if (ring && *ring) traits.counter.rise = (*ring)->rise;
  // What the course of power is taken from decides whether this was a good run.
  bool decided = false;
  for (const auto& [found, into] :
       {std::pair{&ring, &traits.ring}, std::pair{&instant, &traits.instant},
        std::pair{&average, &traits.average}}) {
    if (*found && **found) *into = ***found;
    if (!*found && !decided) {
      return fail(found->error().code, "not calibrated: " + found->error().message);
    }
    decided = decided || (*found && **found);
  }
  if (decided) return traits;
  return fail(Errc::kUnsupported,
              "the driver tells no power of this GPU: there is nothing to calibrate");
}

}  // namespace

Result<void> calibrate(const std::vector<std::string>& devices) {
  meters::NvmlOptions options;
  if (const char* library = std::getenv("JOULEPROF_NVML_LIBRARY")) options.library = library;
  options.demand.shortest_window = 10ms;
  options.devices = devices;
  options.calibrations = meters::read_calibrations();
  auto meter = NvmlMeter::open(options);
  if (!meter) return forward_error(meter);
  auto session = NvmlSession::open(options.library);
  if (!session) return forward_error(session);

  nvml::Calibrations found;
  std::optional<Error> first_error;
  std::string last_reason;
  for (const auto& gpu : (*meter)->gpus()) {
    auto traits = calibrate_gpu(session->api(), **meter, gpu);
    if (traits) {
      found[gpu.uuid] = nvml::overlay(options.calibrations[gpu.uuid], *traits);
      continue;
    }
    // The same for all (no CUDA) is said once.
    if (std::exchange(last_reason, traits.error().message) == traits.error().message) continue;
    traits.error().message = fmt::format("{}: {}", gpu.device(), traits.error().message);
    if (first_error) tell(traits.error().message);
    if (!first_error) first_error = std::move(traits.error());
  }
  if (!found.empty()) {
    if (auto kept = meters::keep_calibrations(found); !kept) return kept;
    tell(fmt::format("kept in {}", meters::calibration_path().string()));
  }
  if (first_error) return tl::unexpected(std::move(*first_error));
  return {};
}

}  // namespace jouleprof::cli
