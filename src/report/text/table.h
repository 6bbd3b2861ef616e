// Rows of aligned cells, and rows that carry a text across all columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/profile.h"
#include "report/cells.h"

namespace jouleprof::report {

enum class Style { kPlain, kBold, kDim, kAttention, kAlarm };

using Lines = std::vector<std::string>;

void append(Lines& lines, Lines more);

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

// How words become lines. Refers to the options.
struct TextStyle {
  explicit TextStyle(const TextOptions& options);

  const TextOptions& text;
  std::size_t width;

  std::string safe(std::string_view words) const;
  std::string plus_minus(const model::Measurement& m) const;  // of its error
  // A text over the whole width.
  void headline(Lines& lines, std::string_view words, Style style) const;
  // A label at the left, and a text to the right of it.
  void note(Lines& lines, std::string_view label, Style style, std::string_view words,
            std::size_t most, Style text_style = Style::kPlain) const;
  // Above figures of a simulated device.
  void note_simulated(Lines& lines) const;
};

// Lines one below the other, tables and notes.
class TextPage : public TextStyle {
 public:
  explicit TextPage(const TextOptions& options, std::size_t most_of_a_note = 4)
      : TextStyle(options), most_(most_of_a_note) {}

  void headline(std::string_view words, Style style) {
    TextStyle::headline(lines_, safe(words), style);
  }
  void note(std::string_view label, std::string_view words, Style style = Style::kDim,
            Style text_style = Style::kPlain) {
    TextStyle::note(lines_, label, style, safe(words), most_, text_style);
  }
  void note_simulated() { TextStyle::note_simulated(lines_); }
  void add(const Table& table) { add(table.lines(width, text.colour)); }
  void add(Lines more) { append(lines_, std::move(more)); }
  void blank() { lines_.emplace_back(); }
  // Without a blank line at the end.
  void end_block() {
    if (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
  }

  const Lines& lines() const { return lines_; }
  std::string joined() const { return joined_lines(lines_); }

 private:
  std::size_t most_;
  Lines lines_;
};

}  // namespace jouleprof::report
