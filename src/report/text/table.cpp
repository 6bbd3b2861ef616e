#include "report/text/table.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "report/cells.h"

namespace jouleprof::report {
namespace {

constexpr std::size_t kNarrowestLabel = 9;  // so that tables one below the other line up

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string paint(std::string text, Style style, bool colour) {
  if (!colour || style == Style::kPlain || text.empty()) return text;
  std::string_view code = "1";
  if (style == Style::kDim) code = "2";
  if (style == Style::kAttention) code = "1;33";
  if (style == Style::kAlarm) code = "1;31";
  return "\x1b[" + std::string(code) + "m" + std::move(text) + "\x1b[0m";
}

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::size_t i = 0; i < headings_.size(); ++i) {
    const bool marked = headings_[i].starts_with('<');
    if (marked) headings_[i].erase(0, 1);
    left_.push_back(i == 0 || marked);
  }
}

void Table::add(std::vector<Cell> cells) { rows_.push_back({std::move(cells), 0}); }

void Table::add_text(Cell label, Cell text, std::size_t max_lines) {
  rows_.push_back({{std::move(label), std::move(text)}, max_lines});
}

std::vector<std::string> Table::lines(std::size_t width, bool colour) const {
  std::vector<std::size_t> widths;
  for (const std::string& heading : headings_) widths.push_back(display_width(heading));
  widths[0] = std::max(widths[0], kNarrowestLabel);
  for (const Row& row : rows_) {
    const std::size_t measured = row.max_lines > 0 ? 1 : row.cells.size();
    for (std::size_t i = 0; i < measured; ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i].text));
    }
  }
  const std::size_t gaps = widths.size() - 1;
  const std::size_t figures = std::accumulate(widths.begin() + 1, widths.end(), std::size_t{0});
  const std::size_t gap = widths[0] + figures + 2 * gaps <= width ? 2 : 1;
  const std::size_t taken = figures + gap * gaps;
  const std::size_t room = taken + kNarrowestLabel < width ? width - taken : kNarrowestLabel;
  widths[0] = std::min(widths[0], room);

  std::vector<std::string> lines;
  const auto emit = [&](const std::vector<Cell>& cells) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      std::string text = i == 0 ? fit(cells[i].text, widths[0]) : cells[i].text;
      text =
          left_[i] ? pad_right(std::move(text), widths[i]) : pad_left(std::move(text), widths[i]);
      if (i + 1 == cells.size()) text = without_trailing_blanks(std::move(text));
      line += (i > 0 ? std::string(gap, ' ') : "") + paint(std::move(text), cells[i].style, colour);
    }
    lines.push_back(colour ? line : without_trailing_blanks(std::move(line)));
  };

  std::vector<Cell> heading;
  for (const std::string& text : headings_) heading.push_back({text, Style::kDim});
  emit(heading);
  for (const Row& row : rows_) {
    if (row.max_lines == 0) {
      emit(row.cells);
      continue;
    }
    const std::size_t indent = widths[0] + 2;
    const std::size_t text_width = std::max<std::size_t>(width, indent + 20) - indent;
    std::vector<std::string> text = wrap(row.cells[1].text, text_width);
    if (text.size() > row.max_lines) {
      text.resize(row.max_lines);
      const bool has_room = display_width(text.back()) + 4 <= text_width;
      text.back() = has_room ? text.back() + " ..." : fit(text.back() + " ...", text_width);
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
      const std::string label = i == 0
                                    ? paint(pad_right(fit(row.cells[0].text, widths[0]), widths[0]),
                                            row.cells[0].style, colour)
                                    : std::string(widths[0], ' ');
      lines.push_back(label + "  " + paint(text[i], row.cells[1].style, colour));
    }
  }
  return lines;
}

}  // namespace jouleprof::report
