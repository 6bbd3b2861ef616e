#include "report/text/activity/activity_context.h"

#include <algorithm>

#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {

ActivityContext::ActivityContext(const model::ActivityProfile& p, const ActivityOptions& o,
                                 const TextOptions& t)
    : profile(p),
      options(o),
      text(t),
      // Wider than a profile's: names of kernels are long.
      width(static_cast<std::size_t>(std::clamp(t.width, 60, 160))),
      view(view_of(p, o)) {}

std::string ActivityContext::safe(std::string_view words) const {
  return printable(words, text.ascii);
}

std::string ActivityContext::plus_minus(Energy error, Energy of) const {
  const std::string sign = text.ascii ? "+-" : "\xC2\xB1";
  if (of <= Energy{}) return sign + energy_text(error);
  return sign + percent_text(error.joules() / of.joules());
}

std::string ActivityContext::with_error(const model::Measurement& m) const {
  return energy_text(m.energy) + " " + plus_minus(m.error, m.energy);
}

void ActivityContext::note(Lines& lines, std::string_view label, Style style,
                           std::string_view words, std::size_t most, Style text_style) const {
  Table table({""});
  table.add_text({std::string(label), style}, {std::string(words), text_style}, most);
  const Lines made = table.lines(width, text.colour);
  lines.insert(lines.end(), made.begin() + 1, made.end());
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ' ');
  return digits;
}

const char* remembered_mark(const model::ActivityRow& row) { return row.remembered ? " *" : ""; }

}  // namespace jouleprof::report
