#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>

#include "model/sweep.h"
#include "report/svg/svg_format.h"

namespace jouleprof::report {
namespace {

constexpr double kWidth = 340;  // of a panel
constexpr double kHeight = 220;
constexpr double kLeft = 58, kRight = 14, kTop = 30, kBottom = 40;
constexpr int kColumns = 3;
constexpr int kHeading = 46;
constexpr const char* kCurve = "#1f77b4";
constexpr const char* kMark = "#d62728";

struct Panel {
  std::string title;
  std::vector<CurvePoint> raw;  // setting, value
};

std::vector<CurvePoint> means_of(const std::vector<CurvePoint>& raw) {
  std::map<double, std::pair<double, int>> sums;
  for (const auto& point : raw) {
    sums[point.x].first += point.y;
    ++sums[point.x].second;
  }
  std::vector<CurvePoint> means;
  for (const auto& [x, sum] : sums) means.push_back({x, sum.first / sum.second});
  return means;
}

class Plot {
 public:
  Plot(const Panel& panel, double x, double y, std::optional<double> best, std::string unit)
      : panel_(panel), x_(x), y_(y), best_(best), unit_(std::move(unit)) {
    const auto by_x = [](const CurvePoint& a, const CurvePoint& b) { return a.x < b.x; };
    const auto by_y = [](const CurvePoint& a, const CurvePoint& b) { return a.y < b.y; };
    const auto& raw = panel.raw;
    const auto [left, right] = std::ranges::minmax_element(raw, by_x);
    const auto [low, high] = std::ranges::minmax_element(raw, by_y);
    across_ = padded_axis(left->x, right->x, x + kLeft, x + kWidth - kRight);
    up_ = padded_axis(low->y, high->y, y + kHeight - kBottom, y + kTop);
  }

  void draw(Drawing& drawing) const {
    drawing.text(x_ + kLeft, y_ + 18, panel_.title, "class=\"title\"");
    draw_axes(drawing);
    if (best_) {
      drawing.line(across_.at(*best_), up_.to, across_.at(*best_), up_.from,
                   fmt::format("stroke=\"{}\" stroke-dasharray=\"4 3\"", kMark));
    }
    for (const auto& point : panel_.raw) {
      drawing.circle(across_.at(point.x), up_.at(point.y), 2.2, "class=\"raw\"");
    }
    const auto means = means_of(panel_.raw);
    draw_curve(drawing, means);
    for (const auto& mean : means) {
      if (best_ && mean.x == *best_) {
        drawing.circle(across_.at(mean.x), up_.at(mean.y), 5, "class=\"best\"");
      }
    }
  }

 private:
  void draw_axes(Drawing& drawing) const {
    for (const double tick : ticks(up_.low, up_.high)) {
      drawing.line(across_.from, up_.at(tick), across_.to, up_.at(tick), "class=\"grid\"");
      drawing.text(across_.from - 6, up_.at(tick) + 4, fmt::format("{:g}", tick),
                   "text-anchor=\"end\"");
    }
    for (const double tick : ticks(across_.low, across_.high)) {
      drawing.text(across_.at(tick), up_.from + 16, fmt::format("{:g}", tick),
                   "text-anchor=\"middle\"");
    }
    drawing.text((across_.from + across_.to) / 2, up_.from + 32, unit_, "text-anchor=\"middle\"");
  }

  void draw_curve(Drawing& drawing, const std::vector<CurvePoint>& means) const {
    if (means.size() < 2) return;
    const auto slopes = monotone_slopes(means);
    std::string path = fmt::format("M{:.1f} {:.1f}", across_.at(means[0].x), up_.at(means[0].y));
    for (std::size_t i = 0; i + 1 < means.size(); ++i) {
      const double third = (means[i + 1].x - means[i].x) / 3;
      path +=
          fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", across_.at(means[i].x + third),
                      up_.at(means[i].y + slopes[i] * third), across_.at(means[i + 1].x - third),
                      up_.at(means[i + 1].y - slopes[i + 1] * third), across_.at(means[i + 1].x),
                      up_.at(means[i + 1].y));
    }
    drawing.path(path, fmt::format("fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"", kCurve));
  }

  const Panel& panel_;
  const double x_, y_;
  const std::optional<double> best_;
  const std::string unit_;
  Axis across_, up_;
};

std::vector<Panel> panels_of(const analysis::Sweep& sweep,
                             const std::vector<model::SweepRun>& runs) {
  std::vector<Panel> panels{
      {"energy (J)", {}}, {"time (s)", {}}, {"throughput (1/s)", {}}, {"mean power (W)", {}}};
  for (const auto& point : sweep.points) {
    for (const auto& sample : point.samples) {
      panels[0].raw.push_back({point.setting, sample.joules});
      panels[1].raw.push_back({point.setting, sample.seconds});
      panels[2].raw.push_back({point.setting, 1 / sample.seconds});
      panels[3].raw.push_back({point.setting, sample.joules / sample.seconds});
    }
  }
  // A setting that the work never reached has ranked runs, but is no point of the sweep.
  const auto is_point = [&](double setting) {
    return std::ranges::any_of(sweep.points,
                               [&](const analysis::SweepPoint& p) { return p.setting == setting; });
  };
  const auto add = [&](const char* title, std::optional<double> model::SweepRun::*value,
                       double scale) {
    Panel panel{title, {}};
    for (const auto& run : runs) {
      if (!run.is_ranked() || !(run.*value) || !is_point(run.setting)) continue;
      panel.raw.push_back({run.setting, scale * *(run.*value)});
    }
    panels.push_back(std::move(panel));
  };
  add("SM clock (MHz)", &model::SweepRun::sm_megahertz, 1);
  add("temperature at the end (C)", &model::SweepRun::end_celsius, 1);
  add("utilisation of compute (%)", &model::SweepRun::sm_utilisation, 100);
  add("utilisation of memory (%)", &model::SweepRun::memory_utilisation, 100);
  std::erase_if(panels, [](const Panel& panel) { return panel.raw.empty(); });
  return panels;
}

}  // namespace

std::string sweep_svg(const AdvisedSweep& advised, const std::vector<model::SweepRun>& runs) {
  const auto panels = panels_of(advised.sweep, runs);
  const auto rows = (panels.size() + kColumns - 1) / kColumns;
  const auto* words = model::knob_words(advised.sweep.knob);
  const std::string knob = knob_text(advised.sweep.knob);
  const std::string unit = fmt::format("{} ({})", knob, words != nullptr ? words->unit : "");
  std::optional<double> best;
  if (advised.advice) best = advised.advice->points[advised.advice->best].point->setting;
  const std::string title =
      fmt::format("{}Sweep of the {}{}", advised.sweep.simulated ? "SIMULATED. " : "", knob,
                  best ? ": " + setting_text(advised.sweep.knob, *best) + " recommended" : "");
  Drawing drawing(
      fmt::format(".title{{font-weight:bold}}.grid{{stroke:#ddd}}.raw{{fill:{};fill-opacity:0.45}}"
                  ".best{{fill:none;stroke:{};stroke-width:2}}",
                  kCurve, kMark));
  drawing.text(16, 28, title, "font-size=\"16\"");
  for (std::size_t i = 0; i < panels.size(); ++i) {
    Plot(panels[i], kWidth * static_cast<double>(i % kColumns),
         kHeading + kHeight * static_cast<double>(i / kColumns), best, unit)
        .draw(drawing);
  }
  return drawing.document(kColumns * kWidth, kHeading + static_cast<double>(rows) * kHeight, title);
}

std::vector<double> monotone_slopes(const std::vector<CurvePoint>& points) {
  const std::size_t n = points.size();
  std::vector<double> secants;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    secants.push_back((points[i + 1].y - points[i].y) / (points[i + 1].x - points[i].x));
  }
  std::vector<double> slopes(n, 0);
  slopes.front() = secants.front();
  slopes.back() = secants.back();
  for (std::size_t i = 1; i + 1 < n; ++i) {
    if (secants[i - 1] * secants[i] > 0) slopes[i] = (secants[i - 1] + secants[i]) / 2;
  }
  for (std::size_t i = 0; i + 1 < n; ++i) {
    if (secants[i] == 0) {
      slopes[i] = slopes[i + 1] = 0;
      continue;
    }
    const double a = slopes[i] / secants[i];
    const double b = slopes[i + 1] / secants[i];
    const double length = std::hypot(a, b);
    if (length <= 3) continue;  // within the circle that keeps the cubic monotone
    slopes[i] = 3 * a / length * secants[i];
    slopes[i + 1] = 3 * b / length * secants[i];
  }
  return slopes;
}

}  // namespace jouleprof::report
