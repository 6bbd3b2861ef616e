// One rule for names that are no UTF-8: each piece that is none becomes U+FFFD, and is counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace jouleprof {

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
