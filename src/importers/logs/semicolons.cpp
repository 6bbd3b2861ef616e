#include "importers/logs/semicolons.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

constexpr std::size_t kMessages = 5;  // lines before the header

bool is_header(std::string_view line) {
  return line.find("power.draw") != std::string_view::npos ||
         line.find("timestamp") != std::string_view::npos;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// "81,25 W": digits, one separator, digits, and maybe a unit. The place of the separator.
std::optional<std::size_t> separator_of(std::string_view cell, std::size_t& decimals) {
  const std::size_t at = cell.find_first_not_of("-0123456789");
  if (at == std::string_view::npos || at == 0 || (cell[at] != ',' && cell[at] != '.')) {
    return std::nullopt;
  }
  std::size_t end = at + 1;
  while (end < cell.size() && is_digit(cell[end])) ++end;
  decimals = end - at - 1;
  if (decimals == 0 || (end < cell.size() && cell[end] != ' ')) return std::nullopt;
  return at;
}

class Rewriting {
 public:
  explicit Rewriting(const SourceText& source) : source_(source), lines_(source.text) {}

  Result<std::string> run() {
    std::string out;
    while (lines_.next()) {
      const auto cells = split(lines_.text(), ';');
      if (is_header(lines_.text())) note_texts(cells);
      for (std::size_t i = 0; i < cells.size(); ++i) {
        auto cell = rewritten(unquoted(trim(cells[i])), i < texts_.size() && texts_[i]);
        if (!cell) return forward_error(cell);
        out += (i > 0 ? ", " : "") + *cell;
      }
      if (lines_.ended()) out += '\n';
    }
    return out;
  }

 private:
  static std::string unquoted(std::string_view cell) {
    if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') {
      cell = trim(cell.substr(1, cell.size() - 2));
    }
    return std::string(cell);
  }

  // "550.54" of a driver is no number.
  void note_texts(const std::vector<std::string_view>& names) {
    texts_.clear();
    for (const auto name : names) {
      texts_.push_back(name.find("version") != std::string_view::npos ||
                       name.find("name") != std::string_view::npos);
    }
  }

  Result<std::string> rewritten(std::string cell, bool is_text) {
    constexpr std::size_t kFraction = 19;  // of "2026/08/17 22:35:54,844"
    if (cell.size() > kFraction && cell[kFraction] == ',' && (cell[4] == '/' || cell[4] == '-')) {
      cell[kFraction] = '.';
      return cell;
    }
    std::size_t decimals = 0;
    const auto at = is_text ? std::nullopt : separator_of(cell, decimals);
    if (at) {
      if (decimals == 3) return unclear(cell, "may be a number of thousands");
      if (decimal_ != 0 && decimal_ != cell[*at]) {
        return unclear(cell, "has another decimal separator than the numbers before");
      }
      decimal_ = cell[*at];
      cell[*at] = '.';
      return cell;
    }
    if (cell.find(',') == std::string::npos) return cell;
    if (!is_text && !cell.empty() && (is_digit(cell[0]) || cell[0] == '-')) {
      return unclear(cell, "is no number with one decimal comma");
    }
    std::replace(cell.begin(), cell.end(), ',', ' ');  // of a name, which is not used
    return cell;
  }

  tl::unexpected<Error> unclear(const std::string& cell, std::string_view why) const {
    return fail_at(source_, lines_.number(),
                   fmt::format("semicolons between the cells, and {} {}; give the file that "
                               "nvidia-smi wrote, or save this one with commas between the cells "
                               "and decimal points",
                               show(cell), why));
  }

  const SourceText& source_;
  Lines lines_;
  char decimal_ = 0;         // the separator, once it was found
  std::vector<bool> texts_;  // columns
};

}  // namespace

bool has_semicolons(std::string_view text) {
  for (Lines lines(text); lines.next() && lines.number() <= kMessages;) {
    const std::string_view line = lines.text();
    if (!is_header(line)) continue;
    return line.find(';') != std::string_view::npos && line.find(',') == std::string_view::npos;
  }
  return false;
}

Result<std::string> with_commas(const SourceText& source) { return Rewriting(source).run(); }

}  // namespace jouleprof::importers
