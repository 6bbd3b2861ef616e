#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/timeline/sensors/sensor_fit.h"
#include "apps/cli/doctor/doctor.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/choices.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/file.h"
#include "base/result.h"
#include "base/say.h"
#include "base/text.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "meters/nvml/calibration/calibrator.h"
#include "meters/nvml/nvml_meter.h"
#include "report/cells.h"

namespace jouleprof::cli {
namespace {

namespace nvml = meters::nvml;
using model::SensorKind;
using model::SensorTraits;

// --- `doctor --forget` and `--forget-kernels`: remove what is stored of GPUs and of kernels ---

Result<std::vector<std::string>> uuids_of(const std::vector<std::string>& devices) {
  meters::NvmlOptions options;
  options.library = environment("JOULEPROF_NVML_LIBRARY");
  options.devices = devices;
  const auto meter = meters::NvmlMeter::open(options);
  if (!meter) return forward_error(meter);
  std::vector<std::string> uuids;
  for (const auto& gpu : (*meter)->gpus()) uuids.push_back(gpu.uuid);
  return uuids;
}

// Removes the traits and the power levels of the named GPUs (none named: of all that are stored),
// and prints on stderr of how many. Errors: invalid_argument for a GPU that does not exist;
// not_found without NVML, where GPUs are named; of the file system.
Result<void> forget(const std::vector<std::string>& devices) {
  Result<std::size_t> forgotten;
  if (devices.empty()) {
    forgotten = nvml::forget_all_devices();
  } else {
    const auto uuids = uuids_of(devices);
    if (!uuids) return forward_error(uuids);
    forgotten = nvml::forget_devices(*uuids);
  }
  if (!forgotten) return forward_error(forgotten);
  say("jouleprof: removed what was stored of {} GPU(s) in {}\n", *forgotten,
      nvml::calibration_path().string());
  return {};
}

// Removes what runs remember of kernels, and prints on stderr which file. Errors: of the file
// system.
Result<void> forget_kernels() {
  const auto path = kernel_store_path();
  if (path.empty()) return {};
  if (auto done = recording::forget_kernels(path); !done) return done;
  say("jouleprof: removed the remembered kernels in {}\n", path.string());
  return {};
}

// --- `doctor --calibrate`: a GPU's power levels, and its sensors' traits by the tool's own load
// ---

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

// Calibrates the named GPUs (none named: all) one after another, prints its progress on stderr, and
// stores the results (calibration_file.h). Takes about 30 s for each GPU, and up to
// 20 s more until it is at rest.
// Errors: not_found without NVML or CUDA; unavailable when a GPU is busy or the fit fails: then no
// traits are stored for that GPU, but levels that were observed are.
Result<void> calibrate(const std::vector<std::string>& devices) {
  meters::NvmlOptions options;
  options.library = environment("JOULEPROF_NVML_LIBRARY");
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

// --- The verb ---

// Lines of at most `width` columns, but for words that are longer; what is continued stands below
// the begin of its line.
std::string wrapped(std::string_view text, std::size_t width) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const auto indent = std::min(line.find_first_not_of(' '), line.size());
    const std::string begin(std::min(indent, width / 2), ' ');
    const std::size_t room = width - begin.size() - 2;
    const auto words = split_blanks(line);
    // A path stays whole, for who copies it.
    const bool has_room = std::ranges::all_of(
        words, [room](std::string_view word) { return report::display_width(word) <= room; });
    if (report::display_width(line) <= width || !has_room) {
      out.append(line) += "\n";
      continue;
    }
    bool first = true;
    for (const auto& part : report::wrap(line.substr(indent), room)) {
      out += begin + (first ? "" : "  ") + part + "\n";
      first = false;
    }
  }
  return out;
}

class DoctorVerb : public Verb {
 public:
  std::string_view name() const override { return "doctor"; }

  void declare(CLI::App& app) override {
    add(app, "--json", json_);
    auto* calibrate = add(app, "--calibrate", calibrate_);
    auto* wall = add(app, "--wall", wall_.wall)->needs(calibrate);
    add(app, "--wall-error", wall_error_)->needs(wall);
    add(app, "--supply-efficiency", efficiency_)->needs(wall);
    add(app, "--load", wall_.load)->needs(wall);
    add(app, "--forget", forget_);
    add(app, "--forget-kernels", forget_kernels_);
    sensors_.declare(app);
    auto* capture = add(app, "--capture", capture_);
    add(app, "--capture-time", capture_time_)->needs(capture);
  }

  int run(const std::vector<std::string>&) override {
    auto options = sensors_.meters({});
    if (!options) return complain(options.error(), kUsageError);
    options->devices = sensors_.devices;
    options->use_service = false;
    if (forget_) {
      const auto done = forget(sensors_.devices);
      const bool wrong = !done && done.error().code == Errc::kInvalidArgument;
      if (!done) return complain(done.error(), wrong ? kUsageError : kCannotWrite);
    }
    if (forget_kernels_) {
      if (const auto done = forget_kernels(); !done) return complain(done.error(), kCannotWrite);
    }
    std::optional<Result<void>> calibration;
    if (calibrate_ && wall_.wall.empty()) calibration = calibrate(sensors_.devices);
    if (calibrate_ && !wall_.wall.empty()) {
      auto wall = wall_options();
      if (!wall) return complain(wall.error(), kUsageError);
      calibration = calibrate_by_wall(*wall);
      if (!*calibration && calibration->error().code == Errc::kInvalidArgument) {
        return complain(calibration->error(), kUsageError);
      }
    }
    const bool failed = calibration && !*calibration;
    // With --json a document is printed also after a failure.
    if (failed && !json_) return complain(calibration->error(), kNothingToMeasure);
    auto found = meters::open_meters(*options);
    if (!found) return complain(found.error(), kUsageError);
    if (!capture_.empty()) return capture_sensors(*found);
    const auto memory = remembered();
    const auto written = write_output(
        Output{}, json_ ? doctor_json(*found, calibration, memory)
                        : wrapped(doctor_text(*found, memory, look_at_units(*found)),
                                  static_cast<std::size_t>(text_options(STDOUT_FILENO).width)));
    if (!written) return complain(written.error(), kCannotWrite);
    if (failed) return complain(calibration->error(), kNothingToMeasure);
    return found->can_measure() ? kDone : kNothingToMeasure;
  }

 private:
  Result<WallCalibration> wall_options() const {
    WallCalibration options = wall_;
    options.devices = sensors_.devices;
    if (auto read = parse_efficiency(efficiency_, options); !read) return forward_error(read);
    if (wall_error_.empty()) return options;
    const auto percent = parse_number(wall_error_);
    if (!percent || *percent < 0 || *percent > 50) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--wall-error {}: give percent, such as 1", wall_error_));
    }
    options.file_error = *percent / 100;
    return options;
  }

  int capture_sensors(meters::MeterSet& meters) const {
    const auto done = capture(meters, capture_, capture_time_);
    const bool wrong = !done && done.error().code == Errc::kInvalidArgument;
    if (!done) return complain(done.error(), wrong ? kUsageError : kCannotWrite);
    say("jouleprof: {} holds what the sensors show, without names, serial numbers and UUIDs; look "
        "at it before you send it (docs/hardware.md)\n",
        capture_);
    return kDone;
  }

  WallCalibration wall_;
  std::string wall_error_;
  std::string efficiency_;
  std::string capture_;
  Duration capture_time_ = std::chrono::minutes{1};
  bool json_ = false;
  bool calibrate_ = false;
  bool forget_ = false;
  bool forget_kernels_ = false;
  SensorChoice sensors_;
};

}  // namespace

std::unique_ptr<Verb> make_doctor() { return std::make_unique<DoctorVerb>(); }

}  // namespace jouleprof::cli
