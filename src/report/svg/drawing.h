// An SVG document in the making, without scripts or references.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace jouleprof::report {

// Places are in pixels, from the top left. `attributes` is markup that the caller wrote, such as
// "class=\"grid\""; every other text may be anything, and becomes text.
class Drawing {
 public:
  // `styles`: CSS rules for the classes that the figure uses.
  explicit Drawing(std::string styles) : styles_(std::move(styles)) {}

  void text(double x, double y, std::string_view text, std::string_view attributes = {});
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  // `title`: what a viewer shows when it is pointed at; empty: nothing.
  void rect(double x, double y, double width, double height, std::string_view attributes,
            std::string_view title = {});
  void circle(double x, double y, double radius, std::string_view attributes);
  void path(std::string_view places, std::string_view attributes);
  // Markup as it is.
  void markup(std::string_view text) { body_ += text; }

  // `title`: of the whole, for people who hear it.
  std::string document(double width, double height, std::string_view title,
                       double font_size = 11) const;

 private:
  std::string styles_;
  std::string body_;
};

// `name="value"` with a blank before it.
std::string attribute(std::string_view name, std::string_view value);

// About the width of text in a usual sans-serif font.
double text_width(std::string_view text, double font_size);
// At most about `width` wide; a cut is shown by "...".
std::string fit_width(std::string_view text, double width, double font_size);

// A scale of a figure, and its round numbers.

// Maps values onto places of a drawing; `to` may be less than `from`, as upwards in an SVG.
struct Axis {
  double low = 0;
  double high = 1;
  double from = 0;
  double to = 1;

  double at(double value) const { return from + (value - low) / (high - low) * (to - from); }
};

// From about the least to about the greatest, with a margin; of one value, a range around it.
Axis padded_axis(double low, double high, double from, double to);

// At most `count` + 1 multiples of 1, 2 or 5 times a power of ten from `low` to `high`.
std::vector<double> ticks(double low, double high, int count = 4);

}  // namespace jouleprof::report
