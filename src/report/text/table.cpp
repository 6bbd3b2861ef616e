#include "report/text/table.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include "report/quantity.h"

namespace jouleprof::report {
namespace {

constexpr std::size_t kNarrowestLabel = 9;  // so that tables one below the other line up
constexpr std::size_t kPartOfLabel = 3;     // of a line, at most, where columns continue below

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

std::vector<std::size_t> Table::widths() const {
  std::vector<std::size_t> widths;
  for (const std::string& heading : headings_) widths.push_back(display_width(heading));
  for (const Row& row : rows_) {
    const std::size_t measured = row.max_lines > 0 ? 1 : row.cells.size();
    for (std::size_t i = 0; i < measured; ++i) {
      widths[i] = std::max(widths[i], display_width(row.cells[i].text));
    }
  }
  return widths;
}

// The columns that fit a line, each group with the first column. A last column without a heading
// has what figures are (ESTIMATED, recommended), so that it stands in the first group.
std::vector<std::vector<std::size_t>> Table::groups(std::vector<std::size_t>& widths,
                                                    std::size_t width) const {
  const std::size_t count = widths.size();
  const std::size_t own = widths[0];
  widths[0] = std::max(own, kNarrowestLabel);
  const auto all = [&](std::size_t label) {
    return std::accumulate(widths.begin() + 1, widths.end(), label + count - 1);
  };
  std::vector<std::size_t> columns(count);
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  if (all(kNarrowestLabel) <= width || count == 1) {
    widths[0] =
        std::min(widths[0], width - all(0) > kNarrowestLabel ? width - all(0) : kNarrowestLabel);
    return {columns};
  }
  widths[0] = std::min(own, width / kPartOfLabel);
  for (std::size_t i = 1; i < count; ++i) {
    // Words can be cut; a figure cannot.
    if (left_[i]) widths[i] = std::min(widths[i], width - widths[0] - 1);
  }
  if (headings_.back().empty()) std::rotate(columns.begin() + 1, columns.end() - 1, columns.end());
  std::vector<std::vector<std::size_t>> groups{{0}};
  std::size_t used = widths[0];
  for (auto i = columns.begin() + 1; i != columns.end(); ++i) {
    if (used + 1 + widths[*i] > width && groups.back().size() > 1) {
      groups.push_back({0});
      used = widths[0];
    }
    groups.back().push_back(*i);
    used += 1 + widths[*i];
  }
  for (auto& group : groups) std::ranges::sort(group);
  return groups;
}

bool Table::fits(std::size_t width) const {
  std::vector<std::size_t> widths = this->widths();
  return groups(widths, width).size() == 1;
}

std::vector<std::string> Table::lines(std::size_t width, bool colour) const {
  std::vector<std::size_t> widths = this->widths();
  const auto groups = this->groups(widths, width);
  std::vector<std::string> lines;
  const auto emit = [&](const std::vector<std::size_t>& group, const std::vector<Cell>& cells) {
    std::size_t taken = 2 * (group.size() - 1);
    for (const std::size_t i : group) taken += widths[i];
    const std::size_t gap = taken <= width ? 2 : 1;
    std::string line;
    for (const std::size_t i : group) {
      std::string text = i == 0 || left_[i] ? fit(cells[i].text, widths[i]) : cells[i].text;
      text =
          left_[i] ? pad_right(std::move(text), widths[i]) : pad_left(std::move(text), widths[i]);
      if (i == group.back()) text = without_trailing_blanks(std::move(text));
      line += (i > 0 ? std::string(gap, ' ') : "") + paint(std::move(text), cells[i].style, colour);
    }
    lines.push_back(colour ? line : without_trailing_blanks(std::move(line)));
  };
  const auto emit_text = [&](const Row& row) {
    const std::size_t indent = widths[0] + 2;
    const std::size_t text_width = std::max<std::size_t>(width, indent + 20) - indent;
    const std::string& words = row.cells[1].text;
    std::vector<std::string> text = display_width(words) <= text_width
                                        ? std::vector<std::string>{words}
                                        : wrap(words, text_width);
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
  };

  std::vector<Cell> heading;
  for (const std::string& text : headings_) heading.push_back({text, Style::kDim});
  // Texts of a label of their own that end the table are below all groups.
  auto end = rows_.end();
  while (end != rows_.begin() && (end - 1)->max_lines > 0 && !(end - 1)->cells[0].text.empty()) {
    --end;
  }
  for (const auto& group : groups) {
    emit(group, heading);
    for (auto row = rows_.begin(); row != end; ++row) {
      if (row->max_lines == 0) {
        emit(group, row->cells);
      } else if (&group == &groups.front()) {
        emit_text(*row);
      }
    }
  }
  for (; end != rows_.end(); ++end) emit_text(*end);
  return lines;
}

void append(Lines& lines, Lines more) { std::ranges::move(more, std::back_inserter(lines)); }

std::string joined_lines(const Lines& lines) {
  std::string text;
  for (const auto& line : lines) text += line + '\n';
  return text;
}

TextStyle::TextStyle(const TextOptions& options)
    : text(options), width(static_cast<std::size_t>(std::max(options.width, 60))) {}

std::string TextStyle::safe(std::string_view words) const { return printable(words, text.ascii); }

std::string TextStyle::plus_minus(const model::Measurement& m) const {
  return interval_text(m.energy, m.below(), m.above(), text.ascii);
}

void TextStyle::headline(Lines& lines, std::string_view words, Style style) const {
  for (const auto& line : wrap(words, width)) lines.push_back(paint(line, style, text.colour));
}

void TextStyle::note(Lines& lines, std::string_view label, Style style, std::string_view words,
                     std::size_t most, Style text_style) const {
  Table table({""});
  table.add_text({std::string(label), style}, {std::string(words), text_style}, most);
  const Lines made = table.lines(width, text.colour);
  lines.insert(lines.end(), made.begin() + 1, made.end());
}

void TextStyle::note_simulated(Lines& lines) const {
  note(lines, "SIMULATED", Style::kAlarm,
       "These figures come from a simulated device. Nothing was measured.", 2, Style::kAlarm);
}

}  // namespace jouleprof::report
