#include "base/text.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>

#include "base/file.h"

namespace jouleprof {
namespace {

template <typename T>
std::optional<T> parse(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, err] = std::from_chars(text.data(), end, value);
  if (text.empty() || err != std::errc{} || stop != end) return std::nullopt;
  return value;
}

bool add_digit(std::int64_t& value, int digit) {
  return !__builtin_mul_overflow(value, 10, &value) &&
         !__builtin_add_overflow(value, digit, &value);
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse<std::int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const auto value = parse<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const auto end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::vector<std::string_view> split_blanks(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  std::vector<std::string_view> parts;
  for (auto begin = text.find_first_not_of(kBlank); begin != std::string_view::npos;) {
    const auto end = text.find_first_of(kBlank, begin);
    parts.push_back(text.substr(begin, end - begin));
    begin = text.find_first_not_of(kBlank, end);
  }
  return parts;
}

Result<std::vector<std::string>> split_csv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c != '\r' || i + 1 != line.size()) {
      fields.back() += c;
    }
  }
  if (quoted) return fail(Errc::kCorrupt, "a quoted field is not closed");
  return fields;
}

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string csv_field(std::string_view text) {
  constexpr std::string_view kFormula = "=+-@\t\r";
  const bool is_formula =
      !text.empty() && kFormula.find(text.front()) != std::string_view::npos && !parse_number(text);
  const std::string mark = is_formula ? "'" : "";
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return mark + std::string(text);
  std::string quoted = '"' + mark;
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string one_line(std::string text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  std::replace_if(text.begin(), text.end(), is_control, ' ');
  return text;
}

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

Result<Duration> parse_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"us", 1e-6}, {"ms", 1e-3}, {"min", 60}, {"ns", 1e-9}, {"s", 1}, {"h", 3600}}};
  const std::string_view word = trim(text);
  if (word == "0") return Duration{};  // in any unit
  for (const auto& [unit, scale] : kUnits) {
    if (!word.ends_with(unit)) continue;
    const auto number = parse_number(trim(word.substr(0, word.size() - unit.size())));
    // Beyond 30 years a count of nanoseconds is near its end.
    if (!number || *number < 0 || *number * scale > 1e9) break;
    return duration_of(*number * scale);
  }
  return fail(
      Errc::kInvalidArgument,
      fmt::format("'{}' is not a duration; write it with a unit, such as 20ms, 0.5s or 2min",
                  text));
}

std::string shortest(double value) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

std::optional<std::int64_t> scaled_integer(std::string_view text, int decimals) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const auto point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string_view fraction;
  if (point != std::string_view::npos) fraction = text.substr(point + 1);
  if (whole.empty() && fraction.empty()) return std::nullopt;
  std::int64_t value = 0;
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (const char c : whole) {
    if (!is_digit(c) || !add_digit(value, c - '0')) return std::nullopt;
  }
  for (int i = 0; i < decimals; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const char c = place < fraction.size() ? fraction[place] : '0';
    if (!is_digit(c) || !add_digit(value, c - '0')) return std::nullopt;
  }
  const auto kept = static_cast<std::size_t>(decimals);
  if (fraction.size() > kept) {
    const std::string_view rest = fraction.substr(kept);
    if (!std::ranges::all_of(rest, is_digit)) return std::nullopt;
    if (rest.front() >= '5' && value == std::numeric_limits<std::int64_t>::max()) {
      return std::nullopt;
    }
    if (rest.front() >= '5') ++value;
  }
  return negative ? -value : value;
}

std::string demangle(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&](std::uint32_t bits) { out += static_cast<char>(bits); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | (code >> 6));
  } else {
    if (code < 0x10000) {
      byte(0xE0 | (code >> 12));
    } else {
      byte(0xF0 | (code >> 18));
      byte(0x80 | ((code >> 12) & 0x3F));
    }
    byte(0x80 | ((code >> 6) & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

void Utf8Mender::replace(std::string& out) {
  out += kReplacement;
  ++broken_;
  character_.clear();
  missing_ = 0;
}

// Table 3-7 of the Unicode standard: well-formed byte sequences.
bool Utf8Mender::begin_character(unsigned char byte) {
  low_ = 0x80;
  high_ = 0xBF;
  if (byte >= 0xC2 && byte <= 0xDF) {
    missing_ = 1;
  } else if (byte >= 0xE0 && byte <= 0xEF) {
    missing_ = 2;
    if (byte == 0xE0) low_ = 0xA0;
    if (byte == 0xED) high_ = 0x9F;
  } else if (byte >= 0xF0 && byte <= 0xF4) {
    missing_ = 3;
    if (byte == 0xF0) low_ = 0x90;
    if (byte == 0xF4) high_ = 0x8F;
  }
  return missing_ > 0;
}

void Utf8Mender::append(std::string& out, std::string_view piece) {
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    if (missing_ > 0) {
      if (byte >= low_ && byte <= high_) {
        character_ += c;
        low_ = 0x80;
        high_ = 0xBF;
        if (--missing_ == 0) {
          out += character_;
          character_.clear();
        }
        continue;
      }
      replace(out);
    }
    if (byte >= 0x80) {
      is_escaped_ = false;
      if (begin_character(byte)) {
        character_ = c;
      } else {
        replace(out);
      }
      continue;
    }
    if (is_json_ && in_string_ && byte < 0x20 && !is_escaped_) {
      out += fmt::format("\\u{:04x}", byte);
      ++controls_;
      continue;
    }
    out += c;
    if (!is_json_) continue;
    if (is_escaped_) {
      is_escaped_ = false;
    } else if (c == '"') {
      in_string_ = !in_string_;
    } else {
      is_escaped_ = in_string_ && c == '\\';
    }
  }
}

void Utf8Mender::finish(std::string& out) {
  if (missing_ > 0) replace(out);
}

std::size_t mend_utf8(std::string& text) {
  Utf8Mender mender(false);
  std::string out;
  out.reserve(text.size());
  mender.append(out, text);
  mender.finish(out);
  if (mender.broken() > 0) text = std::move(out);
  return mender.broken();
}

}  // namespace jouleprof
