#include "report/svg/sweep_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "model/knob_words.h"
#include "report/svg/monotone.h"

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

// At most five round numbers from about `low` to about `high`.
std::vector<double> ticks(double low, double high) {
  const double rough = (high - low) / 4;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> all;
  for (double at = std::ceil(low / step) * step; at <= high + step * 1e-9; at += step) {
    all.push_back(std::abs(at) < step * 1e-9 ? 0 : at);
  }
  return all;
}

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
    const auto [left, right] = std::minmax_element(raw.begin(), raw.end(), by_x);
    const auto [low, high] = std::minmax_element(raw.begin(), raw.end(), by_y);
    std::tie(left_, right_) = padded(left->x, right->x);
    std::tie(low_, high_) = padded(low->y, high->y);
  }

  std::string text() const {
    std::string svg = fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"title\">{}</text>\n",
                                  x_ + kLeft, y_ + 18, panel_.title);
    axes(svg);
    if (best_) {
      svg += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" stroke=\"{3}\" "
          "stroke-dasharray=\"4 3\"/>\n",
          at_x(*best_), y_ + kTop, y_ + kHeight - kBottom, kMark);
    }
    for (const auto& point : panel_.raw) {
      svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.2\" class=\"raw\"/>\n",
                         at_x(point.x), at_y(point.y));
    }
    const auto means = means_of(panel_.raw);
    curve(svg, means);
    for (const auto& mean : means) {
      if (best_ && mean.x == *best_) {
        svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" class=\"best\"/>\n",
                           at_x(mean.x), at_y(mean.y));
      }
    }
    return svg;
  }

 private:
  static std::pair<double, double> padded(double low, double high) {
    const double pad = high > low ? 0.06 * (high - low) : std::max(1e-9, 0.05 * std::abs(high));
    return {low - pad, high + pad};
  }
  double at_x(double value) const {
    return x_ + kLeft + (value - left_) / (right_ - left_) * (kWidth - kLeft - kRight);
  }
  double at_y(double value) const {
    return y_ + kHeight - kBottom - (value - low_) / (high_ - low_) * (kHeight - kTop - kBottom);
  }

  void axes(std::string& svg) const {
    const double bottom = y_ + kHeight - kBottom;
    for (const double tick : ticks(low_, high_)) {
      svg += fmt::format(
          "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"grid\"/>\n"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n",
          x_ + kLeft, x_ + kWidth - kRight, at_y(tick), at_y(tick), x_ + kLeft - 6, at_y(tick) + 4,
          tick);
    }
    for (const double tick : ticks(left_, right_)) {
      svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:g}</text>\n",
                         at_x(tick), bottom + 16, tick);
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                       x_ + (kLeft + kWidth - kRight) / 2, bottom + 32, unit_);
  }

  void curve(std::string& svg, const std::vector<CurvePoint>& means) const {
    if (means.size() < 2) return;
    const auto slopes = monotone_slopes(means);
    std::string path = fmt::format("M{:.1f} {:.1f}", at_x(means[0].x), at_y(means[0].y));
    for (std::size_t i = 0; i + 1 < means.size(); ++i) {
      const double third = (means[i + 1].x - means[i].x) / 3;
      path += fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", at_x(means[i].x + third),
                          at_y(means[i].y + slopes[i] * third), at_x(means[i + 1].x - third),
                          at_y(means[i + 1].y - slopes[i + 1] * third), at_x(means[i + 1].x),
                          at_y(means[i + 1].y));
    }
    svg += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", path,
                       kCurve);
  }

  const Panel& panel_;
  const double x_, y_;
  const std::optional<double> best_;
  const std::string unit_;
  double left_ = 0, right_ = 1, low_ = 0, high_ = 1;
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
  const auto add = [&](const char* title, std::optional<double> model::SweepRun::*value,
                       double scale) {
    Panel panel{title, {}};
    for (const auto& run : runs) {
      if (run.is_ranked() && run.*value) panel.raw.push_back({run.setting, scale * *(run.*value)});
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
  const std::string knob(words != nullptr ? words->name : advised.sweep.knob);
  const std::string_view units = words != nullptr ? words->unit : "";
  const std::string unit = fmt::format("{} ({})", knob, units);
  std::optional<double> best;
  if (advised.advice) best = advised.advice->points[advised.advice->best].point->setting;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
      "<style>.title{{font-weight:bold}}.grid{{stroke:#ddd}}.raw{{fill:{2};fill-opacity:0.45}}"
      ".best{{fill:none;stroke:{3};stroke-width:2}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kColumns * kWidth, kHeading + static_cast<double>(rows) * kHeight, kCurve, kMark);
  svg += fmt::format("<text x=\"16\" y=\"28\" font-size=\"16\">Sweep of the {}{}</text>\n", knob,
                     best ? fmt::format(": {:g} {} recommended", *best, units) : std::string{});
  for (std::size_t i = 0; i < panels.size(); ++i) {
    svg += Plot(panels[i], kWidth * static_cast<double>(i % kColumns),
                kHeading + kHeight * static_cast<double>(i / kColumns), best, unit)
               .text();
  }
  return svg + "</svg>\n";
}

}  // namespace jouleprof::report
