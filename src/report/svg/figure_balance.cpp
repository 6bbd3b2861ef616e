#include <fmt/format.h>

#include <algorithm>

#include "report/balance_parts.h"
#include "report/cells.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/svg/axis.h"
#include "report/svg/run_figure.h"

namespace jouleprof::report {
namespace {

using model::DomainProfile;
using model::Measurement;

constexpr double kBarHeight = 22;
constexpr double kText = 12;

struct Bar {
  const DomainProfile* domain = nullptr;
  std::string label;
  std::vector<BalancePart> parts;
};

Energy drawn(const Bar& bar) {
  Energy sum;
  for (const auto& part : bar.parts) sum += std::max(part.energy, Energy{});
  return sum;
}

std::string part_title(const Bar& bar, const BalancePart& part) {
  std::string text = fmt::format("{}, {}: {}", bar.label, part.label, energy_text(part.energy));
  if (part.level) text += ", 95 % interval " + energy_interval_text(*part.level);
  return text;
}

void draw_parts(Drawing& drawing, double y, const Bar& bar, const Axis& axis) {
  double x = axis.from;
  for (const auto& part : bar.parts) {
    if (part.energy <= Energy{}) continue;  // without a width; the list has it
    const double width = axis.at(part.energy.joules()) - axis.from;
    drawing.rect(x, y, width, kBarHeight,
                 fmt::format("fill=\"{}\" stroke=\"white\" stroke-width=\"0.5\"{}{}{}", part.colour,
                             attribute("data-device", bar.domain->domain.device),
                             attribute("data-part", part.label),
                             attribute("data-joules", joules_decimal(part.energy))),
                 part_title(bar, part));
    x += width;
  }
  if (bar.domain->energy->provenance != model::Provenance::kMeasured) {
    drawing.rect(axis.from, y, x - axis.from, kBarHeight, "fill=\"url(#hatch)\"");
  }
}

void draw_whisker(Drawing& drawing, double y, const Measurement& m, const Axis& axis) {
  const double low = axis.at(m.low().joules());
  const double high = axis.at(m.high().joules());
  drawing.line(
      low, y, high, y,
      fmt::format("class=\"whisker\"{}{}", attribute("data-low-joules", joules_decimal(m.low())),
                  attribute("data-high-joules", joules_decimal(m.high()))));
  for (const double x : {low, high}) drawing.line(x, y - 4, x, y + 4, "class=\"whisker\"");
}

// The parts with their figures, in as many lines as they need.
double draw_list(Drawing& drawing, double y, const Bar& bar) {
  double x = kFigureMargin;
  y += 18;
  for (const auto& part : bar.parts) {
    const double ratio = part.energy.joules() / bar.domain->energy->energy.joules();
    const std::string text = fmt::format("{} {} ({}{})", part.label, energy_text(part.energy),
                                         ratio < 0 ? "-" : "", percent_text(std::abs(ratio)));
    const double width = 16 + text_width(text, kText) + 18;
    if (x > kFigureMargin && x + width > kFigureMargin + kFigureInner) {
      x = kFigureMargin;
      y += 17;
    }
    drawing.rect(x, y - 9, 10, 10, fmt::format("fill=\"{}\"", part.colour));
    drawing.text(x + 15, y, text);
    x += width;
  }
  return y;
}

double draw_bar(Drawing& drawing, double y, const Bar& bar, const Axis& axis) {
  const Measurement& m = *bar.domain->energy;
  y += 28;
  drawing.text(kFigureMargin, y,
               fit_width(fmt::format("{} {}", bar.label, bar.domain->domain.name), 560, kText),
               "font-weight=\"bold\"");
  std::string sum = energy_text(m.energy) + " " + error_text(m.error, m.energy);
  if (m.provenance != model::Provenance::kMeasured) sum += " " + provenance_word(m.provenance);
  drawing.text(kFigureMargin + kFigureInner, y, sum, "text-anchor=\"end\"");
  y += 8;
  draw_parts(drawing, y, bar, axis);
  y += kBarHeight + 7;
  draw_whisker(drawing, y, m, axis);
  return draw_list(drawing, y + 4, bar);
}

}  // namespace

double draw_balance(Drawing& drawing, double y, const model::Profile& profile) {
  const auto labels = labels_of(profile);
  std::vector<Bar> bars;
  std::vector<std::string> absent;
  Energy most;
  for (std::size_t i = 0; i < profile.domains.size(); ++i) {
    const auto& d = profile.domains[i];
    if (d.domain.parent) continue;
    if (!d.energy) {
      absent.push_back(labels[i] + ": " + d.reason);
      continue;
    }
    bars.push_back({&d, labels[i], balance_parts(profile, d)});
    most = std::max({most, d.energy->high(), drawn(bars.back())});
  }
  if (most <= Energy{} && absent.empty()) return y;
  drawing.text(kFigureMargin, y += 20, "Balance", "class=\"heading\"");
  const Axis axis{0, std::max(most.joules(), 1e-6), kFigureMargin, kFigureMargin + kFigureInner};
  for (const auto& bar : bars) y = draw_bar(drawing, y, bar, axis);
  if (!absent.empty()) y += 8;
  for (const auto& text : absent) {
    for (const auto& line : wrap("UNAVAILABLE " + text, 150)) {
      drawing.text(kFigureMargin, y += 16, line, "class=\"soft\"");
    }
  }
  return y;
}

}  // namespace jouleprof::report
