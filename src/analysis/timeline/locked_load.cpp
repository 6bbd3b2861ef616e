#include "analysis/timeline/locked_load.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "analysis/timeline/sensors/error_model.h"
#include "analysis/timeline/sensors/sampling_error.h"
#include "model/device/gauge_names.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

constexpr std::size_t kFewest = 20;  // windows or samples
constexpr double kRegular = 0.02;    // of the period: the middle half of the windows' begins
constexpr double kPartlyBusy[] = {0.05, 0.9};
constexpr int kFewestReadings = 3;  // of utilisation

double quantile(std::vector<double>& values, double q) {
  const auto at =
      values.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::optional<SuspectedLock> by_windows(const model::Recording& recording, HostTime begin,
                                        HostTime end, const SamplingSensor& sensor) {
  struct Times {
    std::vector<HostTime> begins;
    double busy = 0;
  };
  std::map<std::string, Times> names;
  for (const auto& window : recording.windows) {
    if (window.begin < begin || window.end > end) continue;
    auto& times = names[window.name];
    times.begins.push_back(window.begin);
    times.busy += seconds(window.end - window.begin);
  }
  std::optional<SuspectedLock> worst;
  for (auto& [name, times] : names) {
    auto& begins = times.begins;
    if (begins.size() < kFewest) continue;
    std::sort(begins.begin(), begins.end());
    std::vector<double> apart;
    for (std::size_t i = 1; i < begins.size(); ++i) {
      apart.push_back(seconds(begins[i] - begins[i - 1]));
    }
    const double middle = quantile(apart, 0.5);
    if (quantile(apart, 0.75) - quantile(apart, 0.25) > kRegular * middle) continue;
    const double length = seconds(begins.back() - begins.front());
    const double period = length / std::round(length / middle);
    const double duty = times.busy / static_cast<double>(begins.size()) / period;
    const double error = square_wave_error(period, std::clamp(duty, 0.05, 0.95), sensor, length);
    if (error > kErrors.least_locked && (!worst || error > worst->error))
      worst = {period, error, true};
  }
  return worst;
}

}  // namespace

void widen(model::Measurement& measurement, Energy by) {
  for (Energy* half : {&measurement.error, &measurement.repeatability}) {
    *half = Energy::joules(std::hypot(half->joules(), by.joules()));
  }
}

std::optional<SuspectedLock> suspected_lock(const model::Recording& recording,
                                            const model::Domain& domain, EnergyTimeline& timeline,
                                            HostTime begin, HostTime end, double rest_watts) {
  const auto& power = timeline.sensors().power;
  if (!power || power->kind != model::SensorKind::kPowerRing || !power->traits.refresh ||
      !power->traits.window || power->provenance != model::Provenance::kMeasured) {
    return std::nullopt;
  }
  const SamplingSensor sensor{seconds(*power->traits.refresh), seconds(*power->traits.window),
                              timeline.time_constant()};
  if (sensor.window >= kErrors.locked_seen * sensor.every) return std::nullopt;
  if (auto found = by_windows(recording, begin, end, sensor)) return found;
  double busy = 0;
  int readings = 0;
  for (const auto& r : gauge_of(recording, domain, model::gauge::kGpuUtilisation, begin, end)) {
    busy += r.value;
    ++readings;
  }
  if (readings < kFewestReadings) return std::nullopt;
  const double duty = busy / readings;
  if (duty < kPartlyBusy[0] || duty > kPartlyBusy[1]) return std::nullopt;
  double sum = 0;
  double squares = 0;
  std::size_t count = 0;
  for (const ObservedPower& s : timeline.observations(begin, end, {begin})) {
    if (s.counter) continue;
    sum += s.watts - rest_watts;
    squares += std::pow(s.watts - rest_watts, 2);
    ++count;
  }
  if (count < kFewest) return std::nullopt;
  const double mean = sum / static_cast<double>(count);
  const double spread =
      std::sqrt(std::max(squares / static_cast<double>(count) - mean * mean, 0.0));
  if (mean <= 0 || spread > kErrors.flat_samples * mean) return std::nullopt;
  return SuspectedLock{sensor.every, square_wave_error(sensor.every, duty, sensor), false};
}

}  // namespace jouleprof::analysis
