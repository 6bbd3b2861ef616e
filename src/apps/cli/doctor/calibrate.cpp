#include "apps/cli/doctor/calibrate.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "analysis/timeline/sensors/sensor_fit.h"
#include "apps/cli/doctor/level_text.h"
#include "base/say.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "meters/nvml/calibration/calibration_store.h"
#include "meters/nvml/calibration/calibrator.h"
#include "meters/nvml/calibration/level_store.h"

namespace jouleprof::cli {
namespace {

namespace nvml = meters::nvml;
using model::SensorKind;
using model::SensorTraits;

void note(const std::string& text) { say("jouleprof: {}\n", text); }

double milliseconds(Duration d) { return seconds(d) * 1e3; }

void print_row(std::string_view sensor, std::string_view trait,
               const std::optional<Duration>& assumed, const analysis::FittedDuration& found) {
  say("  {:<16}{:<10}{:<13}{:.4g} ± {:.1g} ms\n", sensor, trait,
      assumed ? fmt::format("{:.4g} ms", milliseconds(*assumed)) : "unknown",
      milliseconds(found.value), milliseconds(found.error));
}

void print_value(std::string_view trait, const std::optional<Duration>& assumed, Duration found) {
  say("  {:<16}{:<10}{:<13}{:.3g} ms\n", "", trait,
      assumed ? fmt::format("{:.4g} ms", milliseconds(*assumed)) : "unknown", milliseconds(found));
}

// Fits one power sensor and prints the result; absent for a sensor that the GPU does not have.
Result<std::optional<SensorTraits>> fit_sensor(std::string_view name,
                                               const std::optional<SensorTraits>& assumed,
                                               const std::vector<model::BusySpan>& busy,
                                               const std::vector<model::PowerReading>& readings,
                                               analysis::Stamps stamps) {
  if (!assumed) return std::nullopt;
  const auto fit = analysis::fit_power_sensor(busy, readings, stamps);
  if (!fit) {
    say("  {:<16}not found: {}\n", name, fit.error().message);
    return tl::unexpected(fit.error());
  }
  print_row(name, "refresh", assumed->refresh, fit->refresh);
  if (!fit->first_order) {
    print_row("", "window", assumed->window, fit->window);
    print_row("", "lag", assumed->lag, fit->lag);
  }
  say("  {:<16}{:.0f} W without load, {:.0f} W with it; the fit explains {:.1f} %\n", "",
      fit->idle.watts(), (fit->idle + fit->step).watts(), 100 * fit->r_squared);
  if (fit->first_order) {
    print_value("rise", assumed->rise, fit->first_order->time_constant);
    print_value("window", assumed->window, fit->first_order->window);
    print_value("lag", assumed->lag, fit->first_order->lag);
  }
  SensorTraits traits;
  traits.refresh = fit->refresh.value;
  traits.window = fit->first_order ? fit->first_order->window : fit->window.value;
  traits.lag = fit->first_order ? fit->first_order->lag : fit->lag.value;
  if (fit->first_order) traits.rise = fit->first_order->time_constant;
  return traits;
}

// A counter that agrees with the assumed period keeps it: that period was found over many updates,
// more precisely than a few seconds allow.
SensorTraits fit_counter(const std::optional<SensorTraits>& assumed,
                         const std::vector<model::CounterReading>& reads) {
  SensorTraits traits;
  if (!assumed) return traits;
  const auto fit = analysis::fit_counter_refresh(reads);
  if (!fit) {
    say("  {:<16}not found: {}\n", "energy counter", fit.error().message);
    return traits;
  }
  print_row("energy counter", "refresh", assumed->refresh, *fit);
  const bool agrees =
      assumed->refresh && std::chrono::abs(*assumed->refresh - fit->value) <= 2 * fit->error;
  traits.refresh = agrees ? *assumed->refresh : fit->value;
  return traits;
}

// Stored at once: the levels count also when the calibration fails. Returns why storing failed.
Result<void> keep_level(const nvml::Gpu& gpu, std::string_view name,
                        const Result<model::KnownLevel>& level,
                        std::optional<model::KnownLevel> model::KnownLevels::*which) {
  if (!level) {
    note(fmt::format("{}: its power {} was not observed: {}", gpu.device(), name,
                     level.error().message));
    return {};
  }
  note(fmt::format("{}: power {}", gpu.device(), level_text(name, *level)));
  model::KnownLevels levels;
  levels.*which = *level;
  return nvml::keep_levels({{gpu.uuid, levels}});
}

Result<nvml::GpuTraits> calibrate_gpu(nvml::Calibrator& calibrator, const nvml::Gpu& gpu) {
  if (auto usable = calibrator.check_usable(gpu); !usable) return forward_error(usable);
  const auto rest = calibrator.observe_rest(gpu);
  if (auto kept = keep_level(gpu, kAtRest, rest, &model::KnownLevels::rest); !kept) {
    return forward_error(kept);
  }
  const auto observed = calibrator.observe(gpu);
  if (!observed) return forward_error(observed);
  if (auto kept = keep_level(gpu, kHeld, observed->held, &model::KnownLevels::held); !kept) {
    return forward_error(kept);
  }
  const auto assumed = [&](SensorKind kind) { return calibrator.assumed_traits(gpu, kind); };
  say("  {:<16}{:<10}{:<13}{}\n", "sensor", "trait", "assumed", "found");
  nvml::GpuTraits traits;
  traits.counter = fit_counter(assumed(SensorKind::kEnergyCounter), observed->counter);
  const auto fit = [&](const char* name, SensorKind kind,
                       const std::vector<model::PowerReading>& readings, analysis::Stamps stamps) {
    return fit_sensor(name, assumed(kind), observed->busy, readings, stamps);
  };
  const auto& [of_ring, of_instant, of_average] = observed->powers;
  const auto ring =
      fit("power samples", SensorKind::kPowerRing, of_ring, analysis::Stamps::kOfSensor);
  const auto instant =
      fit("instant power", SensorKind::kPowerInstant, of_instant, analysis::Stamps::kOfPoll);
  const auto average =
      fit("average power", SensorKind::kPowerAverage, of_average, analysis::Stamps::kOfPoll);
  // The counter integrates what the samples show.
  if (ring && *ring) traits.counter.rise = (*ring)->rise;
  // The calibration succeeds if the sensor that gives the power curve was fitted.
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
  return fail(
      Errc::kUnsupported,
      "not calibrated: the driver reports no power of this GPU, so there is no sensor to fit");
}

}  // namespace

Result<void> calibrate(const std::vector<std::string>& devices) {
  meters::NvmlOptions options;
  if (const char* library = std::getenv("JOULEPROF_NVML_LIBRARY")) options.library = library;
  options.demand.shortest_window = std::chrono::milliseconds{10};
  options.devices = devices;
  options.calibrations = nvml::read_calibrations();
  auto calibrator = nvml::Calibrator::open(options, note);
  if (!calibrator) return forward_error(calibrator);

  nvml::Calibrations found;
  std::optional<Error> first_error;
  std::string last_reason;
  for (const auto& gpu : calibrator->gpus()) {
    auto traits = calibrate_gpu(*calibrator, gpu);
    if (traits) {
      found[gpu.uuid] = nvml::overlay(options.calibrations[gpu.uuid], *traits);
      continue;
    }
    // A reason that all GPUs share (no CUDA) is printed once.
    if (std::exchange(last_reason, traits.error().message) == traits.error().message) continue;
    traits.error().message = fmt::format("{}: {}", gpu.device(), traits.error().message);
    if (first_error) note(traits.error().message);
    if (!first_error) first_error = std::move(traits.error());
  }
  if (!found.empty()) {
    if (auto kept = nvml::keep_calibrations(found); !kept) return kept;
    note(fmt::format("wrote {}", nvml::calibration_path().string()));
  }
  if (first_error) return tl::unexpected(std::move(*first_error));
  return {};
}

}  // namespace jouleprof::cli
