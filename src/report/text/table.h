// Rows of aligned cells, and rows that carry a text across all columns.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace jouleprof::report {

enum class Style { kPlain, kBold, kDim, kAttention, kAlarm };

using Lines = std::vector<std::string>;

// Each with its end.
std::string joined_lines(const Lines& lines);

// `text` in the style's terminal colour, or as it is.
std::string paint(std::string text, Style style, bool colour);

struct Cell {
  std::string text;
  Style style = Style::kPlain;
};

class Table {
 public:
  // The first column stands at the left and may be cut; the others stand at the right, except those
  // whose heading begins with '<', which stand at the left.
  explicit Table(std::vector<std::string> headings);

  void add(std::vector<Cell> cells);
  // A label and a text to the right of it, wrapped to at most `max_lines` lines.
  void add_text(Cell label, Cell text, std::size_t max_lines);

  // Whether no column continues below.
  bool fits(std::size_t width) const;
  // Lines of at most `width` columns. Columns that have no room continue below, with the first
  // column again; no figure is cut. A text without a label belongs to the row above it.
  Lines lines(std::size_t width, bool colour) const;

 private:
  struct Row {
    std::vector<Cell> cells;
    std::size_t max_lines = 0;  // more than none: the second cell is a text across the columns
  };

  std::vector<std::size_t> widths() const;
  std::vector<std::vector<std::size_t>> groups(std::vector<std::size_t>& widths,
                                               std::size_t width) const;

  std::vector<std::string> headings_;
  std::vector<bool> left_;
  std::vector<Row> rows_;
};

// Appends a label and a text to the right of it, wrapped to at most `most` lines.
void add_note(Lines& lines, Cell label, Cell text, std::size_t most, std::size_t width,
              bool colour);

}  // namespace jouleprof::report
