#include "report/svg/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/cells.h"

namespace jouleprof::report {
namespace {

constexpr double kMeanWidth = 0.55;  // of a character, of the font's size

std::string_view gap(std::string_view attributes) { return attributes.empty() ? "" : " "; }

}  // namespace

void Drawing::text(double x, double y, std::string_view text, std::string_view attributes) {
  body_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}{}>{}</text>\n", x, y, gap(attributes),
                       attributes, markup_text(text));
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  body_ += fmt::format("<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"{}{}/>\n", x1,
                       x2, y1, y2, gap(attributes), attributes);
}

void Drawing::rect(double x, double y, double width, double height, std::string_view attributes,
                   std::string_view title) {
  body_ += fmt::format("<rect x=\"{:.3f}\" y=\"{:.1f}\" width=\"{:.3f}\" height=\"{:.1f}\"{}{}", x,
                       y, width, height, gap(attributes), attributes);
  body_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", markup_text(title));
}

void Drawing::circle(double x, double y, double radius, std::string_view attributes) {
  body_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"{}{}/>\n", x, y, radius,
                       gap(attributes), attributes);
}

void Drawing::path(std::string_view places, std::string_view attributes) {
  body_ += fmt::format("<path d=\"{}\"{}{}/>\n", places, gap(attributes), attributes);
}

std::string Drawing::document(double width, double height, std::string_view title,
                              double font_size) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"{2:g}\" "
      "role=\"img\">\n<title>{3}</title>\n<style>{4}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{5}</svg>\n",
      width, height, font_size, markup_text(title), styles_, body_);
}

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, markup_text(value));
}

double text_width(std::string_view text, double font_size) {
  return kMeanWidth * font_size * static_cast<double>(display_width(printable(text)));
}

std::string fit_width(std::string_view text, double width, double font_size) {
  const double columns = std::max(width / (kMeanWidth * font_size), 0.0);
  return fit(printable(text), static_cast<std::size_t>(columns));
}

Axis padded_axis(double low, double high, double from, double to) {
  const double pad = high > low ? 0.06 * (high - low) : std::max(1e-9, 0.05 * std::abs(high));
  return {low - pad, high + pad, from, to};
}

std::vector<double> ticks(double low, double high, int count) {
  const double rough = (high - low) / count;
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

}  // namespace jouleprof::report
