// Text: numbers and fields without regard to the locale, and UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof {

// The whole text as a number; nothing if any of it is left over. Neither looks at the locale.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // finite numbers only

// The parts of `text` between separators; empty parts are kept. An empty text has one empty part.
std::vector<std::string_view> split(std::string_view text, char separator);

// The parts of `text` between runs of blanks.
std::vector<std::string_view> split_blanks(std::string_view text);

// The fields of one CSV record (RFC 4180: quotes, doubled quotes, commas within quotes).
// Errors: corrupt when a quote is left open.
Result<std::vector<std::string>> split_csv(std::string_view line);

std::string lower_case(std::string_view text);  // of ASCII letters; others stay

// Control characters become blanks: a library's message may quote what a damaged file holds.
std::string one_line(std::string text);

// A field quoted for CSV where it has to be.
std::string csv_field(std::string_view text);

// "1 row", "2 rows".
std::string counted(std::size_t count, std::string_view noun);

// A duration that a user wrote with its unit: 100us, 10ms, 0.5s, 2min, 1h.
// Errors: invalid_argument, also when the unit is missing.
Result<Duration> parse_duration(std::string_view text);

// The shortest decimal that reads back as the same number ("0.1", "1e+30").
std::string shortest(double value);

// Decimal numbers as exact integers.
// A decimal number ("-12.5") times 10^decimals, rounded to a whole one; nothing for any other text
// and for what does not fit. Exact: no floating point.
std::optional<std::int64_t> scaled_integer(std::string_view text, int decimals);

// Compilers' names of functions as people write them.
// "void copy<float>(float*)" for "_Z4copyIfEvPT_"; what is no such name comes back as it is.
std::string demangle(const std::string& name);

// --- Names that are no UTF-8: each piece that is none becomes U+FFFD, and is counted ---

void append_utf8(std::string& out, std::uint32_t code);

// Mends a text that comes in pieces. Within strings of JSON, control characters become escapes,
// which all readers take; some programs write them raw.
class Utf8Mender {
 public:
  explicit Utf8Mender(bool is_json) : is_json_(is_json) {}

  void append(std::string& out, std::string_view piece);
  // What a character that is cut off at the end leaves.
  void finish(std::string& out);

  std::size_t broken() const { return broken_; }      // pieces that were no UTF-8
  std::size_t controls() const { return controls_; }  // control characters

 private:
  void replace(std::string& out);
  bool begin_character(unsigned char byte);

  const bool is_json_;
  bool in_string_ = false;
  bool is_escaped_ = false;
  std::string character_;                   // that has begun
  int missing_ = 0;                         // bytes of it
  unsigned char low_ = 0x80, high_ = 0xBF;  // of the next one
  std::size_t broken_ = 0;
  std::size_t controls_ = 0;
};

// The text, mended; how many pieces were none.
std::size_t mend_utf8(std::string& text);

}  // namespace jouleprof
