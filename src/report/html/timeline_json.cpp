#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "model/activity/activity_codec.h"
#include "model/device/sensor.h"
#include "report/html/page.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

Json watts_json(double watts) { return decimal(fixed_decimal(watts, 1)); }

Json step_json(const PowerTrack& track, Energy PowerTrack::Step::*energy) {
  return list_json(track.steps, [energy](const auto& step) {
    return step ? Json(((*step).*energy).microjoules()) : Json(nullptr);
  });
}

Json track_json(const PowerTrack& track, HostTime origin) {
  Json j = Json::object();
  j["id"] = static_cast<std::uint32_t>(track.id);
  j["begin_seconds"] = decimal(fixed_decimal(seconds(track.begin - origin), 6));
  j["end_seconds"] = decimal(fixed_decimal(seconds(track.end - origin), 6));
  j["step_seconds"] = decimal(fixed_decimal(seconds(track.step), 3));
  j["resolution_seconds"] = decimal(fixed_decimal(seconds(track.resolution), 3));
  j["energy_microjoules"] = step_json(track, &PowerTrack::Step::energy);
  j["error_microjoules"] = step_json(track, &PowerTrack::Step::error);
  j["repeatability_microjoules"] = step_json(track, &PowerTrack::Step::repeatability);
  j["calibration_ratio"] = number_json(track.calibration_ratio);
  if (track.left_out) {
    j["left_out_until_seconds"] = decimal(fixed_decimal(seconds(*track.left_out - origin), 3));
  }
  if (track.extremes.empty()) return j;
  j["low_watts"] = Json::array();
  j["high_watts"] = Json::array();
  for (const auto& e : track.extremes) {
    j["low_watts"].push_back(e ? watts_json(e->first) : Json(nullptr));
    j["high_watts"].push_back(e ? watts_json(e->second) : Json(nullptr));
  }
  return j;
}

}  // namespace

Json power_json(const std::vector<PowerTrack>& tracks, HostTime origin) {
  return list_json(tracks, [origin](const auto& track) { return track_json(track, origin); });
}

namespace {

using model::GaugeReading;

// A reading holds until the next one, but not for longer than this.
constexpr Duration kLongestHold = std::chrono::seconds{15};
constexpr std::size_t kMostIntervals = 5000;

std::vector<GaugeReading> readings_of(const analysis::Run& run, model::SensorId sensor,
                                      const analysis::PartSpan& span) {
  std::vector<GaugeReading> own;
  for (const auto& r : run.recording().readings.gauges) {
    if (r.sensor == sensor && span.contains(r.at) && std::isfinite(r.value)) own.push_back(r);
  }
  std::ranges::stable_sort(own, [](const auto& a, const auto& b) { return a.at < b.at; });
  return own;
}

// Those that the page has a chart of.
constexpr std::array kShown{model::gauge::kSmClock,        model::gauge::kMemoryClock,
                            model::gauge::kTemperature,    model::gauge::kMemoryTemperature,
                            model::gauge::kGpuUtilisation, model::gauge::kMemoryUtilisation,
                            model::gauge::kMemoryUsed,     model::gauge::kPowerLimit,
                            model::gauge::kCpuUtilisation};

// Without those between two of their own value, which no line shows.
std::vector<GaugeReading> changes(std::vector<GaugeReading> all) {
  std::vector<GaugeReading> kept;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_between = i > 0 && i + 1 < all.size() && all[i - 1].value == all[i].value &&
                            all[i].value == all[i + 1].value;
    if (!is_between) kept.push_back(all[i]);
  }
  return kept;
}

// Without zeros at the end: 30 for 30.000.
std::string short_decimal(double value) {
  std::string text = fixed_decimal(value, std::abs(value) < 1000 ? 3 : 0);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// The least and the greatest of each of `count` equal parts, in order of time.
std::vector<GaugeReading> extremes(const std::vector<GaugeReading>& all, std::size_t count) {
  if (all.size() <= 2 * count) return all;
  std::vector<GaugeReading> kept;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(all.size() * i / count);
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(all.size() * (i + 1) / count);
    auto [low, high] = std::minmax_element(
        begin, end, [](const auto& a, const auto& b) { return a.value < b.value; });
    if (high < low) std::swap(low, high);
    kept.push_back(*low);
    if (high != low) kept.push_back(*high);
  }
  return kept;
}

Json time_json(HostTime t, HostTime origin) {
  return decimal(fixed_decimal(seconds(t - origin), 3));
}

}  // namespace

Json gauge_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t points) {
  Json tracks = Json::array();
  for (const auto& sensor : run.recording().sensors) {
    if (sensor.kind != model::SensorKind::kGauge) continue;
    if (std::ranges::find(kShown, sensor.name) == kShown.end()) continue;
    const auto readings = changes(extremes(readings_of(run, sensor.id, span), points / 2));
    if (readings.empty()) continue;
    Json track = Json::object();
    track["id"] = static_cast<std::uint32_t>(sensor.domain);
    track["quantity"] = sensor.name;
    track["times"] = Json::array();
    track["values"] = Json::array();
    for (const auto& r : readings) {
      track["times"].push_back(time_json(r.at, origin));
      track["values"].push_back(decimal(short_decimal(r.value)));
    }
    tracks.push_back(std::move(track));
  }
  return tracks;
}

Json clock_limit_tracks(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin) {
  Json tracks = Json::array();
  const auto put = [&](model::DomainId id, HostTime begin, HostTime end,
                       model::ClockReasons reasons) {
    Json names = Json::array();
    for (const auto name : reasons.names()) {
      if (name != "idle") names.push_back(name);
    }
    if (names.empty() || end <= begin || tracks.size() >= kMostIntervals) return;
    Json track = Json::object();
    track["id"] = static_cast<std::uint32_t>(id);
    track["begin_seconds"] = time_json(begin, origin);
    track["end_seconds"] = time_json(end, origin);
    track["reasons"] = std::move(names);
    tracks.push_back(std::move(track));
  };
  for (const auto& sensor : run.recording().sensors) {
    if (sensor.name != model::gauge::kClockEventReasons) continue;
    const auto readings = readings_of(run, sensor.id, span);
    for (std::size_t i = 0; i < readings.size();) {
      std::size_t next = i + 1;
      while (next < readings.size() && readings[next].value == readings[i].value &&
             readings[next].at - readings[next - 1].at <= kLongestHold) {
        ++next;
      }
      const HostTime hold = std::min(readings[next - 1].at + kLongestHold, span.end);
      const HostTime end =
          next < readings.size() ? std::min(readings[next].at, hold) : readings[next - 1].at;
      put(sensor.domain, readings[i].at, end, model::ClockReasons::of_gauge(readings[i].value));
      i = next;
    }
  }
  return tracks;
}

namespace {

using model::Window;

constexpr std::size_t kMostLanes = 8;

struct Block {
  std::size_t lane = 0;
  int name = 0;
  HostTime begin{};
  HostTime end{};
  std::vector<const Window*> windows;  // that it stands for
};

// Windows in order of time; at the same time the longest first, so that it is above those within.
std::vector<const Window*> ordered(const model::Recording& recording,
                                   const analysis::PartSpan& span) {
  std::vector<const Window*> windows;
  for (const Window& w : recording.windows) {
    if (span.contains(w.begin) && w.end >= w.begin) windows.push_back(&w);
  }
  std::ranges::stable_sort(windows, [](const Window* a, const Window* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->end > b->end;
  });
  return windows;
}

class Lanes {
 public:
  explicit Lanes(Duration shortest) : shortest_(shortest) {}

  // The first lane that is free; the last lane takes what has no other.
  void add(const Window& window, int name) {
    std::size_t lane = 0;
    while (lane < ends_.size() && ends_[lane] > window.begin) ++lane;
    lane = std::min(lane, kMostLanes - 1);
    if (lane >= ends_.size()) {
      ends_.emplace_back();
      last_.push_back(blocks_.size());
    } else if (joins(blocks_[last_[lane]], window)) {
      Block& block = blocks_[last_[lane]];
      block.end = std::max(block.end, window.end);
      block.windows.push_back(&window);
      if (block.name != name) block.name = -1;
      ends_[lane] = std::max(ends_[lane], window.end);
      return;
    }
    ends_[lane] = std::max(ends_[lane], window.end);
    last_[lane] = blocks_.size();
    blocks_.push_back({lane, name, window.begin, window.end, {&window}});
  }

  const std::vector<Block>& blocks() const { return blocks_; }
  std::size_t lanes() const { return ends_.size(); }

 private:
  // Both too short to be drawn, and close.
  bool joins(const Block& block, const Window& window) const {
    const bool brief = block.windows.size() > 1 || block.end - block.begin < shortest_;
    return brief && window.end - window.begin < shortest_ && window.begin - block.end < shortest_ &&
           window.end - block.begin < 4 * shortest_;
  }

  Duration shortest_;
  std::vector<HostTime> ends_;
  std::vector<std::size_t> last_;  // block of each lane
  std::vector<Block> blocks_;
};

// Of several windows the sum of the errors: an upper bound.
Json energies_of(const analysis::Run& run, const Block& block) {
  if (block.name < 0) return nullptr;
  Json energies = Json::array();
  for (std::size_t d = 0; d < run.recording().domains.size(); ++d) {
    const auto id = run.recording().domains[d].id;
    Energy sum;
    Energy error;
    const bool known = std::ranges::all_of(block.windows, [&](const Window* window) {
      const auto energy = run.energy(d, *window);
      if (!energy || !window->devices.contains(id)) return false;
      sum += energy->energy;
      error += energy->farthest();
      return true;
    });
    if (!known) continue;
    energies.push_back({static_cast<std::uint32_t>(id), sum.microjoules(), error.microjoules()});
  }
  return energies;
}

Json time_json(Duration t) { return decimal(fixed_decimal(seconds(t), 6)); }

// The name has the word "request".
bool is_request(const Window& window) {
  const std::string name = lower_case(window.name);
  const auto is_letter = [&](std::size_t i) {
    return i < name.size() && std::isalpha(static_cast<unsigned char>(name[i]));
  };
  for (std::size_t at = 0; (at = name.find("request", at)) != std::string::npos; ++at) {
    const std::size_t end = at + (name.compare(at, 8, "requests") == 0 ? 8 : 7);
    if ((at == 0 || !is_letter(at - 1)) && !is_letter(end)) return true;
  }
  return false;
}

// How many windows ran at a time, as means of equal steps. Null where there was never more than
// one.
Json in_flight(const std::vector<const Window*>& windows, const analysis::PartSpan& span,
               HostTime origin) {
  constexpr std::int64_t kSteps = 600;
  const Duration step = std::max<Duration>((span.end - span.begin) / kSteps, Duration{1});
  std::vector<Duration> sums(kSteps);
  HostTime latest = HostTime::min();
  bool any_at_once = false;
  for (const Window* window : windows) {
    any_at_once = any_at_once || window->begin < latest;
    latest = std::max(latest, window->end);
    const HostTime end = std::min(window->end, span.begin + kSteps * step);
    for (HostTime at = window->begin; at < end;) {
      const std::int64_t i = (at - span.begin) / step;
      const HostTime next = std::min(end, span.begin + (i + 1) * step);
      sums[static_cast<std::size_t>(i)] += next - at;
      at = next;
    }
  }
  if (!any_at_once) return nullptr;
  Json means = Json::array();
  for (const Duration sum : sums)
    means.push_back(decimal(fixed_decimal(seconds(sum) / seconds(step), 3)));
  return {{"begin_seconds", time_json(span.begin - origin)},
          {"step_seconds", time_json(step)},
          {"means", std::move(means)}};
}

}  // namespace

Json window_track(const analysis::Run& run, const analysis::PartSpan& span, HostTime origin,
                  std::size_t blocks) {
  const auto windows = ordered(run.recording(), span);
  std::map<std::string_view, int> numbers;
  Json names = Json::array();
  const bool all = windows.size() <= blocks;
  const Duration shortest =
      all ? Duration{} : (span.end - span.begin) / static_cast<std::int64_t>(blocks);
  std::array lanes{Lanes(shortest), Lanes(shortest)};  // of requests, of others
  std::vector<const Window*> requests;
  for (const Window* window : windows) {
    const auto [at, is_new] = numbers.try_emplace(window->name, static_cast<int>(numbers.size()));
    if (is_new) names.push_back(window->name);
    const bool is = is_request(*window);
    if (is) requests.push_back(window);
    lanes[is ? 0 : 1].add(*window, at->second);
  }
  Json list = Json::array();
  const auto put = [&](const Block& block, std::size_t lane) {
    Json& one = list.emplace_back();
    one = {lane, block.name, time_json(block.begin - origin), time_json(block.end - block.begin),
           block.windows.size()};
    one.push_back(energies_of(run, block));
    if (block.windows.size() < 2) return;
    Duration total{};
    for (const Window* window : block.windows) total += window->end - window->begin;
    one.push_back(time_json(total));
  };
  for (const Block& block : lanes[0].blocks()) put(block, block.lane);
  for (const Block& block : lanes[1].blocks()) put(block, lanes[0].lanes() + block.lane);
  Json track = Json::object();
  track["lanes"] = lanes[0].lanes() + lanes[1].lanes();
  track["request_lanes"] = lanes[0].lanes();
  track["in_flight"] = in_flight(requests, span, origin);
  track["names"] = std::move(names);
  track["blocks"] = std::move(list);
  return track;
}

Result<Json> replay_track(const analysis::Run& run, const analysis::PartSpan& span,
                          HostTime origin) {
  Json track = Json::array();
  for (const auto& trace : run.recording().traces) {
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != model::ChunkKind::kReplay || !span.contains(chunk.begin)) continue;
      model::ActivityDecoder decoder(chunk.bytes);
      model::KernelRerun entry;
      const bool any = decoder.next(entry);
      if (!decoder.ok()) {
        return fail(Errc::kCorrupt, "the recording's activity chunks are damaged");
      }
      track.push_back({time_json(chunk.begin - origin), time_json(chunk.end - chunk.begin),
                       any ? Json("a kernel") : Json(nullptr)});
    }
  }
  return track;
}

}  // namespace jouleprof::report
