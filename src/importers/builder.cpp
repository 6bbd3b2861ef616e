#include "importers/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/median.h"
#include "base/text.h"
#include "importers/source_text.h"
#include "model/device/sensor.h"

namespace jouleprof::importers {
namespace {

using model::DomainKind;

constexpr Duration kShortestPause = std::chrono::seconds{5};
constexpr Duration kLongestStep = std::chrono::hours{24};
constexpr int kPauseFactor = 10;
// Far from the end of a count of nanoseconds, whatever the file says.
constexpr HostTime kLatest{std::chrono::hours{24 * 365 * 100}};

// A board exceeds its limit for some milliseconds, by up to a half (spikes of GA102 boards).
constexpr double kAboveLimit = 1.6;
constexpr double kLeastWatts = 0.3;  // of a GPU that is in use
// The greatest limit of a board on sale is 1400 W. The energies of windows are those of sensors,
// whose means have no spikes.
constexpr double kMostOfWindows = 1500;

// The greatest limits that vendors' data sheets give, of boards and modules that are far below
// others; the first name that fits counts.
struct Board {
  std::string_view name;
  double watts;
};
constexpr std::array kBoards{Board{"nano", 25},      Board{"tx2", 30},       Board{"xavier", 40},
                             Board{"orin", 75},      Board{"tegra", 130},    Board{"thor", 150},
                             Board{"jetson", 150},   Board{"tesla t4", 70},  Board{"nvidia t4", 70},
                             Board{"nvidia l4", 75}, Board{"nvidia a2", 70}, Board{"v100", 350},
                             Board{"a100", 500},     Board{"h100", 800},     Board{"h200", 800}};

// Whether a product's name, in lower case, has the board's as words of its own: "nvidia l4" is not
// in "nvidia l40s".
bool names(std::string_view product, std::string_view board) {
  const auto at = product.find(board);
  if (at == product.npos) return false;
  const auto is_apart = [&](std::size_t place) {
    return place >= product.size() || std::isalnum(static_cast<unsigned char>(product[place])) == 0;
  };
  return is_apart(at - 1) && is_apart(at + board.size());
}

// What no device of the kind draws.
double most_watts(const model::Domain& domain) {
  switch (domain.kind) {
    case DomainKind::kGpu:
      return domain.device == "gpus" ? 40e3 : 2000;  // "gpus": all of a machine
    case DomainKind::kGpuMemory:
      return 1000;
    case DomainKind::kCpu:
    case DomainKind::kCpuCores:
    case DomainKind::kCpuUncore:
    case DomainKind::kDram:
      return 8000;  // of all sockets
    default:
      return 1e5;
  }
}

Most most_of(const model::Recording& recording, const model::Domain& domain) {
  std::map<model::SensorId, bool> limits;
  for (const auto& sensor : recording.sensors) {
    limits[sensor.id] = sensor.domain == domain.id && sensor.name == model::gauge::kPowerLimit;
  }
  double limit = 0;
  for (const auto& gauge : recording.readings.gauges) {
    if (limits[gauge.sensor]) limit = std::max(limit, gauge.value);
  }
  if (limit > 0) return {kAboveLimit * limit, fmt::format("its limit of {:g} W in the log", limit)};
  if (domain.kind == DomainKind::kGpu) {
    if (const Most most = most_of_gpu(domain.name); !most.is_of_kind) return most;
  }
  const double watts = most_watts(domain);
  return {watts, fmt::format("what any {} draws ({:g} W)", to_string(domain.kind), watts), true};
}

// What the mean power of a window is at most.
Most most_of_windows(Most most, const model::Domain& domain) {
  if (!most.is_of_kind || domain.kind != DomainKind::kGpu || domain.device == "gpus") return most;
  return most_of_gpu({});
}

// The mean powers of a counter over parts of its readings: without those in which it falls.
std::vector<double> watts_of_counter(const std::vector<model::CounterReading>& reads) {
  constexpr std::size_t kParts = 9;
  const std::size_t step = std::max<std::size_t>(1, reads.size() / kParts);
  std::vector<double> watts;
  for (std::size_t i = step; i < reads.size(); i += step) {
    const Duration time = reads[i].before - reads[i - step].before;
    const Energy change = reads[i].total - reads[i - step].total;
    if (time > Duration{} && change >= Energy{}) watts.push_back(change.joules() / seconds(time));
  }
  return watts;
}

// A counter in another unit than its name says rises 1000 times too fast or too slowly. One absurd
// value does not change the median; a load of short bursts does not change the mean. The highest
// mean power of the device's counters; 0 without one.
Result<double> check_counters(const model::Recording& recording, const model::Domain& domain,
                              const Most& most, const std::vector<double>& powers,
                              const std::string& path) {
  constexpr double kApart = 30;
  std::map<model::SensorId, std::vector<model::CounterReading>> reads;
  for (const auto& read : recording.readings.counters) {
    const auto& sensor = recording.sensors[static_cast<std::size_t>(read.sensor)];
    if (sensor.domain == domain.id) reads[read.sensor].push_back(read);
  }
  const double power = mean(powers);
  double highest = 0;
  for (const auto& [id, own] : reads) {
    const auto parts = watts_of_counter(own);
    const double usual = parts.empty() ? 0 : upper_median(parts),
                 most_usual = std::max(usual, mean(parts));
    highest = std::max(highest, most_usual);
    if (most_usual == 0) continue;
    const bool apart = power > 0 && (usual > kApart * power || power > kApart * most_usual);
    if (!apart && usual <= most.watts) continue;
    return fail(Errc::kCorrupt,
                fmt::format("{}: {} of {} rises by {:.4g} W, {}: wrong unit? Leave its column out, "
                            "or write it in the unit that its header says",
                            path, recording.sensors[static_cast<std::size_t>(id)].name,
                            domain.device, most_usual,
                            apart ? fmt::format("where its power is {:.4g} W", power)
                                  : "which is above " + most.of));
  }
  return highest;
}

void add_impossible(model::Recording& recording, model::SensorId sensor, HostTime at,
                    double watts) {
  recording.readings.failures.push_back(
      {sensor,
       at,
       {Errc::kUnavailable, fmt::format("the file holds an impossible power of {} W", watts)}});
}

// The powers of a sensor that its device cannot draw are no readings but failures; a warning counts
// them. Errors: corrupt where they are most: in a wrong unit.
Result<std::vector<double>> leave_out_impossible(model::Recording& recording,
                                                 const model::Domain& domain, const Most& most,
                                                 const std::string& path) {
  std::vector<double> watts, above;
  const auto is_above = [&](const model::PowerReading& r) {
    const auto& sensor = recording.sensors[static_cast<std::size_t>(r.sensor)];
    return sensor.domain == domain.id && r.power.watts() > most.watts;
  };
  for (const auto& power : recording.readings.powers) {
    if (recording.sensors[static_cast<std::size_t>(power.sensor)].domain != domain.id) continue;
    (is_above(power) ? above : watts).push_back(power.power.watts());
  }
  if (above.size() > watts.size()) {
    return fail(Errc::kCorrupt,
                fmt::format("{}: {} draws {:g} W, which is above {}: wrong unit? Milliwatts "
                            "under a name for watts are read with --power-column {}=COLUMN:mW",
                            path, domain.device, upper_median(above), most.of, domain.device));
  }
  if (above.empty()) return watts;
  for (const auto& power : recording.readings.powers) {
    if (is_above(power)) add_impossible(recording, power.sensor, power.at, power.power.watts());
  }
  std::ranges::stable_sort(recording.readings.failures,
                           [](const auto& a, const auto& b) { return a.at < b.at; });
  std::erase_if(recording.readings.powers, is_above);
  recording.warnings.push_back(
      {HostTime{}, fmt::format("{}: {} of up to {:g} W left out, above {}", domain.device,
                               counted(above.size(), "power value"),
                               *std::ranges::max_element(above), most.of)});
  return watts;
}

// Whether the powers of the recording can be those of its devices.
// Compares powers, and mean powers of windows, with the limit that the log itself has, with that of
// the board where its name is known, and with what any such device draws. Windows above it stay,
// with a warning.
Result<void> check_powers(model::Recording& recording, const std::string& path) {
  const auto warn = [&](std::string text) {
    recording.warnings.push_back({HostTime{}, std::move(text)});
  };
  for (const model::Domain& domain : recording.domains) {
    const Most most = most_of(recording, domain);
    const auto watts = leave_out_impossible(recording, domain, most, path);
    if (!watts) return forward_error(watts);
    const auto of_counters = check_counters(recording, domain, most, *watts, path);
    if (!of_counters) return forward_error(of_counters);
    double highest = *of_counters;
    for (const double power : *watts) highest = std::max(highest, power);
    const Most mean_most = most_of_windows(most, domain);
    std::size_t windows = 0, wrong = 0;
    double example = 0;
    for (const auto& window : recording.imported_windows) {
      for (const auto& energy : window.energies) {
        if (energy.domain != domain.id || window.duration <= Duration{}) continue;
        const double mean = energy.energy.joules() / seconds(window.duration);
        ++windows;
        highest = std::max(highest, mean);
        if (mean <= mean_most.watts) continue;
        ++wrong;
        example = mean;
      }
    }
    if (wrong > 0) {
      warn(
          fmt::format("{} of {} windows: the mean power of {} is above {}, such as {:.4g} W: these "
                      "energies or times are wrong, or in another unit",
                      wrong, windows, domain.device, mean_most.of, example));
    }
    if (domain.kind == DomainKind::kGpu && highest > 0 && highest < kLeastWatts) {
      warn(fmt::format("{} draws at most {:g} W: wrong unit?", domain.device, highest));
    }
  }
  return {};
}

// Of neighbours whose times go forward.
std::vector<Duration> distances_of(std::span<const Stamp> stamps, bool across_segments) {
  std::vector<Duration> distances;
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    const Duration distance = stamps[i].at - stamps[i - 1].at;
    if (distance > Duration{} && (across_segments || !stamps[i].starts_segment)) {
      distances.push_back(distance);
    }
  }
  return distances;
}

// The 95th percentile: between looks also where the rows of one look have times of their own.
Duration longest_usual_distance(std::span<const Stamp> stamps) {
  auto distances = distances_of(stamps, true);
  std::ranges::sort(distances);
  return distances.empty() ? Duration{} : distances[(distances.size() - 1) * 95 / 100];
}

constexpr Duration kHour = std::chrono::hours{1};
constexpr Duration kSlack = std::chrono::seconds{2};

// Makes times of this machine's zone instants; what was assumed. The hour that the clock shows
// twice is taken for its first pass where it goes on from the time before, for its second where
// rows go back, or go on from it to the time after. Times that the zone's clocks do not show are of
// another zone: their distances stay.
const char* to_instants(std::vector<Stamp>& stamps, Duration usual) {
  constexpr Duration kDisorder = std::chrono::minutes{1};
  const char* note = nullptr;
  std::vector<Duration> at;
  std::vector<bool> goes_on, is_twice;
  bool is_of_zone = true;
  for (std::size_t i = 0; i < stamps.size() && is_of_zone; ++i) {
    const auto [first, last, any] = instants_of(stamps[i].at);
    const Duration step = i > 0 ? stamps[i].at - stamps[i - 1].at : Duration{};
    goes_on.push_back(i > 0 && !stamps[i].starts_segment && step >= Duration{} &&
                      step <= 2 * usual + kSlack);
    is_twice.push_back(first != last);
    at.push_back(first);
    is_of_zone = any;
    if (i == 0 || !any) continue;
    const Duration before = at[i - 1];
    if (first != last) {
      note =
          "the hour that the clock shows twice at the end of summer time is read in the order of "
          "the rows";
      const bool is_back = before > first + kDisorder && before <= last + kDisorder;
      if (is_back || first + last < 2 * (before + usual)) at[i] = last;
      continue;
    }
    const Duration excess = first - before - step;
    if (!goes_on[i] || !is_twice[i - 1] || excess <= Duration{}) continue;
    std::size_t begin = i;
    do {
      at[--begin] += excess;
    } while (goes_on[begin] && is_twice[begin - 1]);
    is_of_zone = !goes_on[begin];
  }
  const Duration offset = zone_offset(instants_of(stamps.front().at).first);
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    stamps[i].at = is_of_zone ? at[i] : stamps[i].at - offset;
  }
  return is_of_zone ? note
                    : "times do not follow the change of summer time in this machine's zone: they "
                      "are read as those of one clock without it";
}

// At the end of summer time of an unknown zone the clock goes back by an hour, at a full or half
// one.
const char* repeat_hours(std::vector<Stamp>& stamps, Duration usual) {
  const Duration slack = std::clamp<Duration>(usual, kSlack, kHour / 6);
  Duration shift{}, before = stamps.front().at;
  for (Stamp& stamp : stamps) {
    const Duration now = stamp.at;
    const Duration off = std::chrono::abs(before + usual - now - kHour);
    if (!stamp.starts_segment && now < before && off <= slack && now % (kHour / 2) <= slack) {
      shift += kHour;
    }
    before = now;
    stamp.at += shift;
  }
  return shift == Duration{} ? nullptr
                             : "times go back by one hour, as clocks do at the end of summer time: "
                               "the rows after it are read as one hour later";
}

}  // namespace

Most most_of_gpu(std::string_view product) {
  const std::string name = lower_case(product);
  for (const Board& board : kBoards) {
    if (!names(name, board.name)) continue;
    return {kAboveLimit * board.watts,
            fmt::format("the greatest limit of {}, {:g} W", product, board.watts)};
  }
  return {kMostOfWindows, fmt::format("what any gpu draws for long ({:g} W)", kMostOfWindows),
          true};
}

void trim_ends(model::Recording& recording) {
  constexpr Duration kMostTrimmed = std::chrono::seconds{1};
  const auto& readings = recording.readings;
  if (!recording.run.work_begin || !recording.imported_windows.empty()) return;
  struct Extent {
    HostTime begin = HostTime::max(), end = HostTime::min();
    void add(HostTime at) {
      begin = std::min(begin, at);
      end = std::max(end, at);
    }
  };
  Extent all;
  std::map<model::DomainId, Extent> of_domain;
  const auto see = [&](model::SensorId sensor, HostTime at) {
    all.add(at);
    of_domain[recording.sensors[static_cast<std::size_t>(sensor)].domain].add(at);
  };
  for (const auto& r : readings.powers) see(r.sensor, r.at);
  for (const auto& r : readings.counters) see(r.sensor, r.before);
  for (const auto& r : readings.failures) all.add(r.at);
  if (all.end < all.begin + 4 * kMostTrimmed) return;
  Extent common = all;
  for (const auto& [domain, own] : of_domain) {
    if (own.begin - all.begin <= kMostTrimmed) common.begin = std::max(common.begin, own.begin);
    if (all.end - own.end <= kMostTrimmed) common.end = std::min(common.end, own.end);
  }
  recording.run.work_begin = common.begin;
  recording.run.work_end = common.end;
}

Duration usual_distance(std::span<const Stamp> stamps) {
  auto distances = distances_of(stamps, false);
  if (distances.empty()) return Duration::zero();
  return upper_median(std::move(distances));
}

Layout lay_out(std::span<const Stamp> stamps, Duration seam, bool has_pauses) {
  Layout layout;
  layout.times.reserve(stamps.size());
  const Duration usual = std::min(usual_distance(stamps), kLongestStep / kPauseFactor);
  const Duration pause =
      has_pauses ? std::max(kShortestPause, kPauseFactor * usual) : Duration::max();
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const Duration at = stamps[i].at;
    if (i == 0) {
      layout.times.emplace_back();
      layout.segments.push_back({HostTime{}, HostTime{}, at, at});
      continue;
    }
    const Duration distance = at - stamps[i - 1].at;
    const HostTime before = layout.times.back();
    if (distance < Duration::zero()) ++layout.backward_steps;
    if (stamps[i].starts_segment || distance < Duration::zero() || distance > pause ||
        before + distance > kLatest) {
      *layout.cut += std::clamp(distance - seam, Duration::zero(), Duration::max() - *layout.cut);
      const HostTime begin = before + seam;
      layout.times.push_back(begin);
      layout.segments.push_back({begin, begin, at, at});
    } else {
      layout.times.push_back(before + std::max(distance, Duration{1}));
      layout.segments.back().end = layout.times.back();
      layout.segments.back().stamp_end = at;
    }
  }
  return layout;
}

RecordingBuilder::RecordingBuilder(const std::string& format) {
  recording_.run.source = "import:" + format;
  recording_.run.complete = true;
}

model::DomainId RecordingBuilder::add_domain(model::DomainKind kind, std::string device,
                                             std::string name) {
  model::Domain domain;
  domain.id = static_cast<model::DomainId>(recording_.domains.size());
  domain.kind = kind;
  domain.device = std::move(device);
  domain.name = std::move(name);
  recording_.domains.push_back(std::move(domain));
  return recording_.domains.back().id;
}

model::SensorId RecordingBuilder::add_sensor(model::DomainId domain, model::SensorKind kind,
                                             std::string name) {
  model::Sensor sensor;
  sensor.id = static_cast<model::SensorId>(recording_.sensors.size());
  sensor.domain = domain;
  sensor.kind = kind;
  sensor.name = std::move(name);
  recording_.sensors.push_back(std::move(sensor));
  return recording_.sensors.back().id;
}

model::Domain& RecordingBuilder::domain(model::DomainId id) {
  return recording_.domains[static_cast<std::size_t>(id)];
}

model::Process& RecordingBuilder::process(pid_t pid, HostTime at) {
  const auto [place, is_new] = processes_.try_emplace(pid, recording_.processes.size());
  if (is_new) {
    model::Process process;
    process.id = static_cast<model::ProcessId>(place->second);
    process.pid = pid;
    process.name = "(unknown)";
    process.start = at;
    recording_.processes.push_back(std::move(process));
  }
  return recording_.processes[place->second];
}

void RecordingBuilder::add_power(model::SensorId sensor, HostTime at, std::optional<double> watts) {
  if (!watts) {
    recording_.readings.failures.push_back(
        {sensor, at, {Errc::kUnavailable, "the file has no value here"}});
  } else if (*watts < 0) {
    ++negative_;
    add_impossible(recording_, sensor, at, *watts);
  } else {
    recording_.readings.powers.push_back({sensor, at, Power::watts(*watts)});
  }
}

void RecordingBuilder::read_local_times(std::span<std::vector<Stamp>> series, bool without_date) {
  std::set<std::string> notes;
  if (!without_date) {
    warn(
        "time stamps are local time, read in this machine's time zone; where the log is of "
        "another, "
        "set TZ to it, such as TZ=Europe/Berlin");
  }
  for (std::vector<Stamp>& stamps : series) {
    if (stamps.empty()) continue;
    std::size_t back = 0;
    for (std::size_t i = 1; i < stamps.size(); ++i) back += stamps[i].at < stamps[i - 1].at ? 1 : 0;
    const bool newest_first = 2 * back > stamps.size();
    if (newest_first) std::ranges::reverse(stamps);
    const Duration usual = longest_usual_distance(stamps);
    if (const auto note = without_date ? nullptr : to_instants(stamps, usual)) notes.insert(note);
    if (const auto note = repeat_hours(stamps, usual)) notes.insert(note);
    if (newest_first) std::ranges::reverse(stamps);
  }
  for (const std::string& note : notes) warn(note);
}

void RecordingBuilder::add_gauge(model::SensorId sensor, HostTime at, double value) {
  recording_.readings.gauges.push_back({sensor, at, value});
}

void RecordingBuilder::warn(std::string text) {
  recording_.warnings.push_back({HostTime{}, std::move(text)});
}

void RecordingBuilder::set_clock(const Layout& layout, RealTime (*to_real)(Duration)) {
  if (to_real) {
    for (const Segment& segment : layout.segments) {
      recording_.clock_points.push_back({segment.begin, to_real(segment.stamp_begin), {}});
      if (segment.end != segment.begin) {
        recording_.clock_points.push_back({segment.end, to_real(segment.stamp_end), {}});
      }
    }
  }
  if (layout.segments.size() > 1 && layout.cut != Duration::zero()) {
    warn(
        fmt::format("the recording was paused {}: {} not part of its time, and the energy "
                    "then is unknown",
                    counted(layout.segments.size() - 1, "time"),
                    layout.cut ? fmt::format("{:.0f} s without data are", seconds(*layout.cut))
                               : std::string("the pauses are")));
  }
  if (layout.backward_steps > 0) {
    warn(fmt::format("time stamps go back {}: the clock was set, or logs were joined",
                     counted(layout.backward_steps, "time")));
  }
}

void RecordingBuilder::set_parents() {
  const auto number = [](const std::string& device) {
    return device.substr(device.find_last_not_of("0123456789") + 1);
  };
  const auto contains = [&](const model::Domain& outer, const model::Domain& inner) {
    switch (inner.kind) {
      case DomainKind::kGpu:
        return outer.device == "gpus" && inner.device != "gpus";
      case DomainKind::kGpuMemory:
        return outer.kind == DomainKind::kGpu && outer.device == inner.device;
      case DomainKind::kCpuCores:
      case DomainKind::kCpuUncore:
        return outer.kind == DomainKind::kCpu &&
               (number(inner.device).empty() || number(inner.device) == number(outer.device));
      case DomainKind::kCpu:
      case DomainKind::kDram:
        return outer.kind == DomainKind::kPlatform && outer.device == "psys";
      default:
        return false;
    }
  };
  for (model::Domain& inner : recording_.domains) {
    std::vector<model::DomainId> found;
    for (const model::Domain& outer : recording_.domains) {
      if (outer.unavailable_reason.empty() && contains(outer, inner)) found.push_back(outer.id);
    }
    if (found.size() == 1) inner.parent = found.front();
  }
}

// One reading is the power of a moment: it has no energy, as in a run.
void RecordingBuilder::leave_out_single(const std::vector<std::size_t>& counts) {
  const auto count = [&](model::SensorId sensor) {
    return counts[static_cast<std::size_t>(sensor)];
  };
  const auto is_single = [&](const auto& reading) { return count(reading.sensor) == 1; };
  std::erase_if(recording_.readings.powers, is_single);
  std::erase_if(recording_.readings.counters, is_single);
  for (model::Domain& domain : recording_.domains) {
    std::string single;
    bool has_energy = false;
    for (const model::Sensor& sensor : recording_.sensors) {
      if (sensor.domain != domain.id || sensor.kind == model::SensorKind::kGauge) continue;
      if (count(sensor.id) == 1) single = sensor.name;
      has_energy = has_energy || count(sensor.id) > 1;
    }
    if (single.empty() || has_energy) continue;
    domain.unavailable_reason = fmt::format("{} was read once; an energy needs two reads", single);
  }
}

Result<model::Recording> RecordingBuilder::finish(const std::string& path, HostTime begin,
                                                  HostTime end) && {
  if (auto right = check_powers(recording_, path); !right) return forward_error(right);
  std::vector<std::size_t> counts(recording_.sensors.size());
  for (const auto& power : recording_.readings.powers) {
    ++counts[static_cast<std::size_t>(power.sensor)];
  }
  for (const auto& counter : recording_.readings.counters) {
    ++counts[static_cast<std::size_t>(counter.sensor)];
  }
  const auto& failures = recording_.readings.failures;
  if (std::ranges::none_of(counts, [](std::size_t n) { return n >= 2; })) {
    return fail(
        Errc::kUnavailable,
        fmt::format(
            "{}: it holds fewer than two power readings, too few to compute an energy{}", path,
            failures.empty() ? ""
                             : fmt::format("; {} left out: {}", counted(failures.size(), "value"),
                                           failures.front().error.message)));
  }
  leave_out_single(counts);
  set_parents();
  if (negative_ > 0) {
    warn(fmt::format("{} that no device can draw {} left out", counted(negative_, "power value"),
                     negative_ == 1 ? "was" : "were"));
  }
  if (!recording_.run.work_begin) {
    recording_.run.work_begin = begin;
    recording_.run.work_end = end;
  }
  return std::move(recording_);
}

Result<model::Recording> RecordingBuilder::finish_windows(const std::string& path) && {
  if (auto right = check_powers(recording_, path); !right) return forward_error(right);
  return std::move(recording_);
}

}  // namespace jouleprof::importers
