#include "report/cells.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/text.h"

namespace jouleprof::report {
namespace {

template <std::size_t N>
bool within(char32_t code, const std::array<std::pair<char32_t, char32_t>, N>& ranges) {
  return std::ranges::any_of(ranges,
                             [&](const auto& r) { return code >= r.first && code <= r.second; });
}

bool is_harmful(char32_t code) {
  static constexpr std::array<std::pair<char32_t, char32_t>, 6> kRanges{{{0x00, 0x1F},
                                                                         {0x7F, 0x9F},
                                                                         {0x200E, 0x200F},
                                                                         {0x2028, 0x202E},
                                                                         {0x2066, 0x2069},
                                                                         {0xFEFF, 0xFEFF}}};
  return within(code, kRanges);
}

// Unicode's East Asian Wide and Fullwidth blocks, and emoji; combining marks take no column.
std::size_t columns(char32_t code) {
  static constexpr std::array<std::pair<char32_t, char32_t>, 9> kWide{{{0x1100, 0x115F},
                                                                       {0x2E80, 0x303E},
                                                                       {0x3041, 0xA4CF},
                                                                       {0xAC00, 0xD7A3},
                                                                       {0xF900, 0xFAFF},
                                                                       {0xFE30, 0xFE6F},
                                                                       {0xFF00, 0xFF60},
                                                                       {0x1F300, 0x1FAFF},
                                                                       {0x20000, 0x3FFFD}}};
  static constexpr std::array<std::pair<char32_t, char32_t>, 3> kNoColumn{
      {{0x0300, 0x036F}, {0x200B, 0x200D}, {0xFE00, 0xFE0F}}};
  if (within(code, kNoColumn)) return 0;
  return within(code, kWide) ? 2 : 1;
}

// With what punctuation follows: "mWh;".
bool is_unit(std::string_view word) {
  constexpr std::string_view kUnits[] = {
      "J", "mJ", "kJ", "MJ", "GJ",  "uJ", "Wh", "mWh", "kWh", "MWh", "GWh", "W", "kW",  "MW",
      "%", "s",  "ms", "us", "min", "h",  "kB", "KiB", "MiB", "GiB", "TiB", "B", "MHz", "Hz"};
  const auto end = word.find_last_not_of(".,;:)");
  if (end == std::string_view::npos) return false;
  return std::ranges::find(kUnits, word.substr(0, end + 1)) != std::end(kUnits);
}

}  // namespace

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0u) != 0x80u) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool no_character = (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF;
  if (too_long || no_character) return {};
  return {code, bytes, true};
}

std::string printable(std::string_view text, bool ascii) {
  std::string safe;
  while (!text.empty()) {
    const Character c = first_character(text);
    if (c.code == '\t' || c.code == '\n' || c.code == '\r') {
      safe += ' ';
    } else if (!c.valid || is_harmful(c.code) || (ascii && c.code >= 0x80)) {
      safe += ascii ? "?" : "\xEF\xBF\xBD";
    } else {
      safe += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return safe;
}

std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  while (!text.empty()) {
    const Character c = first_character(text);
    width += columns(c.code);
    text.remove_prefix(c.bytes);
  }
  return width;
}

std::string fit(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  const std::size_t dots = std::min<std::size_t>(3, width);
  std::string_view rest = text;
  for (std::size_t used = 0; !rest.empty();) {
    const Character c = first_character(rest);
    used += columns(c.code);
    if (used > width - dots) break;
    rest.remove_prefix(c.bytes);
  }
  return std::string(text.substr(0, text.size() - rest.size())) + std::string(dots, '.');
}

std::string pad_right(std::string text, std::size_t width) {
  const std::size_t used = display_width(text);
  return used < width ? text + std::string(width - used, ' ') : text;
}

std::string pad_left(std::string text, std::size_t width) {
  const std::size_t used = display_width(text);
  return used < width ? std::string(width - used, ' ') + text : text;
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  const auto words = split_blanks(text);
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string piece = fit(words[i], width);
    // A number stays with its unit.
    if (words[i].back() >= '0' && words[i].back() <= '9' && i + 1 < words.size() &&
        is_unit(words[i + 1]) && display_width(piece) + 1 + display_width(words[i + 1]) <= width) {
      piece += ' ' + std::string(words[++i]);
    }
    if (!lines.empty() && display_width(lines.back()) + 1 + display_width(piece) <= width) {
      lines.back() += ' ' + piece;
    } else {
      lines.push_back(piece);
    }
  }
  return lines;
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) {
    return std::string(word);
  }
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string markup_text(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace jouleprof::report
