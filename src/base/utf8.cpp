#include "base/utf8.h"

#include <fmt/format.h>

namespace jouleprof {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

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
