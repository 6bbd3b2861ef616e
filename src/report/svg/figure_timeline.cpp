#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "report/quantity.h"
#include "report/svg/axis.h"
#include "report/svg/run_figure.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using Step = std::optional<PowerTrack::Step>;

constexpr double kChartHeight = 96;
constexpr double kLeft = 62;  // room of the numbers
// Of a device, and of the domains within it (Okabe and Ito).
constexpr std::array<const char*, 4> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7"};

struct Line {
  const PowerTrack* track = nullptr;
  std::string label;
};

struct TimeUnit {
  double seconds;
  const char* name;
};
TimeUnit unit_of(Duration length) {
  if (length > std::chrono::hours{3}) return {3600, "h"};
  if (length > std::chrono::minutes{10}) return {60, "min"};
  return {1, "s"};
}

// The last step may be shorter.
HostTime begin_of(const PowerTrack& track, std::size_t step) {
  return std::min(track.begin + static_cast<std::int64_t>(step) * track.step, track.end);
}

double watts(const PowerTrack& track, std::size_t step, Energy energy) {
  const Duration length = begin_of(track, step + 1) - begin_of(track, step);
  return length > Duration{} ? energy.joules() / seconds(length) : 0;
}

double most_watts(const std::vector<Line>& lines) {
  double most = 1;
  for (const auto& [track, label] : lines) {
    for (std::size_t i = 0; i < track->steps.size(); ++i) {
      const auto& step = track->steps[i];
      if (step) most = std::max(most, watts(*track, i, step->energy + step->error));
    }
    for (const auto& extremes : track->extremes) {
      if (extremes) most = std::max(most, extremes->second);
    }
  }
  return most;
}

class Chart {
 public:
  Chart(Drawing& drawing, Axis across, Axis up, HostTime origin, double unit)
      : drawing_(drawing), across_(across), up_(up), origin_(origin), unit_(unit) {}

  void draw(const PowerTrack& track, const char* colour) const {
    // Extremes, then the interval, then the mean.
    fill(track, colour, 0.16, [&](std::size_t i) -> std::optional<std::pair<double, double>> {
      return i < track.extremes.size() ? track.extremes[i] : std::nullopt;
    });
    fill(track, colour, 0.32, [&](std::size_t i) -> std::optional<std::pair<double, double>> {
      if (!track.steps[i]) return {};
      const auto& [energy, error, repeatability] = *track.steps[i];
      return std::pair(watts(track, i, std::max(energy - error, Energy{})),
                       watts(track, i, energy + error));
    });
    std::string path;
    bool pen_down = false;
    for (std::size_t i = 0; i < track.steps.size(); ++i) {
      const auto& step = track.steps[i];
      if (step) {
        path += fmt::format("{}{:.1f} {:.2f}H{:.1f}", pen_down ? "L" : "M", x(track, i),
                            up_.at(watts(track, i, step->energy)), x(track, i + 1));
      }
      pen_down = step.has_value();
    }
    drawing_.path(path, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.1\" "
                                    "data-domain=\"{}\"",
                                    colour, static_cast<std::uint32_t>(track.id)));
  }

 private:
  double x(const PowerTrack& track, std::size_t step) const {
    return across_.at(seconds(begin_of(track, step) - origin_) / unit_);
  }

  // One box for each step.
  template <typename Range>
  void fill(const PowerTrack& track, const char* colour, double opacity, Range range) const {
    std::string path;
    for (std::size_t i = 0; i < track.steps.size(); ++i) {
      const auto ends = range(i);
      if (!ends) continue;
      path += fmt::format("M{:.1f} {:.2f}H{:.1f}V{:.2f}H{:.1f}Z", x(track, i), up_.at(ends->second),
                          x(track, i + 1), up_.at(ends->first), x(track, i));
    }
    if (path.empty()) return;
    drawing_.path(path, fmt::format("fill=\"{}\" fill-opacity=\"{}\"", colour, opacity));
  }

  Drawing& drawing_;
  Axis across_, up_;
  HostTime origin_;
  double unit_;
};

// A device's own track first, then those within it.
std::vector<std::vector<Line>> charts_of(const model::Profile& profile,
                                         const std::vector<PowerTrack>& tracks) {
  const auto labels = labels_of(profile);
  std::vector<std::vector<Line>> charts;
  for (const auto& outer : profile.domains) {
    if (outer.domain.parent) continue;
    std::vector<Line> lines;
    for (std::size_t i = 0; i < profile.domains.size(); ++i) {
      const auto& d = profile.domains[i].domain;
      if (d.id != outer.domain.id && d.parent != outer.domain.id) continue;
      const auto track = std::find_if(tracks.begin(), tracks.end(),
                                      [&](const PowerTrack& t) { return t.id == d.id; });
      if (track != tracks.end() && lines.size() < kColours.size()) {
        lines.push_back({&*track, labels[i]});
      }
    }
    if (!lines.empty()) charts.push_back(std::move(lines));
  }
  return charts;
}

void draw_names(Drawing& drawing, double y, const std::vector<Line>& lines) {
  double x = kFigureMargin + kLeft;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    drawing.line(x, y - 4, x + 14, y - 4,
                 fmt::format("stroke=\"{}\" stroke-width=\"2\"", kColours[i]));
    drawing.text(x + 19, y, lines[i].label);
    x += 19 + text_width(lines[i].label, 12) + 20;
  }
}

}  // namespace

double draw_timeline(Drawing& drawing, double y, const model::Profile& profile,
                     const std::vector<PowerTrack>& tracks, HostTime origin) {
  const auto charts = charts_of(profile, tracks);
  if (charts.empty()) return y;
  HostTime begin = HostTime::max(), end = HostTime::min();
  for (const auto& track : tracks) {
    begin = std::min(begin, track.begin);
    end = std::max(end, track.end);
  }
  const TimeUnit unit = unit_of(end - begin);
  const Axis across{seconds(begin - origin) / unit.seconds, seconds(end - origin) / unit.seconds,
                    kFigureMargin + kLeft, kFigureMargin + kFigureInner};
  drawing.text(kFigureMargin, y += 20, "Power over time (W)", "class=\"heading\"");
  for (const auto& lines : charts) {
    draw_names(drawing, y += 24, lines);
    const double top = y + 8;
    const double bottom = top + kChartHeight;
    const Axis up{0, most_watts(lines) * 1.05, bottom, top};
    for (const double tick : ticks(up.low, up.high, 4)) {
      drawing.line(across.from, up.at(tick), across.to, up.at(tick), "class=\"grid\"");
      drawing.text(across.from - 6, up.at(tick) + 4, fmt::format("{:g}", tick),
                   "text-anchor=\"end\"");
    }
    for (const HostTime edge : {profile.begin, profile.end}) {
      const double x = across.at(seconds(edge - origin) / unit.seconds);
      if (x > across.from + 1 && x < across.to - 1) {
        drawing.line(x, top, x, bottom, "class=\"edge\"");
      }
    }
    const Chart chart(drawing, across, up, origin, unit.seconds);
    // The device itself on top of what it contains.
    for (std::size_t i = lines.size(); i-- > 0;) chart.draw(*lines[i].track, kColours[i]);
    y = bottom;
  }
  for (const double tick : ticks(across.low, across.high, 10)) {
    drawing.text(across.at(tick), y + 16, fmt::format("{:g}", tick), "text-anchor=\"middle\"");
  }
  drawing.text(across.to, y + 32, fmt::format("time since the command began ({})", unit.name),
               "text-anchor=\"end\"");
  std::string steps =
      fmt::format("line: mean of a step ({} of {}); band: its 95 % interval",
                  duration_text(charts.front().front().track->step), charts.front().front().label);
  const bool has_extremes =
      std::any_of(tracks.begin(), tracks.end(), [](const auto& t) { return !t.extremes.empty(); });
  if (has_extremes) steps += "; light: least and greatest power within it";
  drawing.text(across.from, y + 32, steps, "class=\"soft\"");
  return y + 32;
}

}  // namespace jouleprof::report
