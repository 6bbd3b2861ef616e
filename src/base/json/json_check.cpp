#include "base/json/json_check.h"

#include <array>
#include <cstddef>
#include <string>

#include "base/json/json_view.h"

namespace jouleprof {
namespace {

constexpr std::size_t kDeepest = 10'000;
constexpr std::array<std::string_view, 6> kWords{"true", "false",    "null",
                                                 "NaN",  "Infinity", "-Infinity"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class Check {
 public:
  explicit Check(std::string_view text) : rest_(text) {}

  bool run() {
    for (;;) {
      if (!value_or_open()) return false;
      // A value has ended: so may what holds it.
      for (;;) {
        space();
        if (holders_.empty()) return rest_.empty();
        if (take(',')) {
          if (holders_.back() == '{' && !key()) return false;
          break;
        }
        if (!take(holders_.back() == '{' ? '}' : ']')) return false;
        holders_.pop_back();
      }
    }
  }

 private:
  void space() { rest_.remove_prefix(json_space(rest_)); }

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // A value without parts, or the first one within what opens here.
  bool value_or_open() {
    for (;;) {
      space();
      if (rest_.empty()) return false;
      const char first = rest_.front();
      if (first == '"') return string();
      if (first != '{' && first != '[') return word_or_number();
      rest_.remove_prefix(1);
      space();
      if (take(first == '{' ? '}' : ']')) return true;
      holders_ += first;
      if (holders_.size() > kDeepest) return false;
      if (first == '{' && !key()) return false;
    }
  }

  bool key() {
    space();
    if (!rest_.starts_with('"') || !string()) return false;
    space();
    return take(':');
  }

  bool string() {
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      const char c = rest_[i];
      if (c == '"') {
        rest_.remove_prefix(i + 1);
        return true;
      }
      if (static_cast<unsigned char>(c) < 0x20) return false;
      if (c != '\\') continue;
      if (++i == rest_.size()) return false;
      if (rest_[i] == 'u') {
        for (int digit = 0; digit < 4; ++digit) {
          if (++i == rest_.size() || !is_hex(rest_[i])) return false;
        }
      } else if (std::string_view("\"\\/bfnrt").find(rest_[i]) == std::string_view::npos) {
        return false;
      }
    }
    return false;
  }

  bool digits() {
    std::size_t n = 0;
    while (n < rest_.size() && is_digit(rest_[n])) ++n;
    rest_.remove_prefix(n);
    return n > 0;
  }

  bool word_or_number() {
    for (const auto word : kWords) {
      if (!rest_.starts_with(word)) continue;
      rest_.remove_prefix(word.size());
      return true;
    }
    take('-');
    if (!take('0') && !digits()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  std::string_view rest_;
  std::string holders_;  // the opening brackets of what the present value is in
};

}  // namespace

bool is_json(std::string_view text) { return Check(text).run(); }

}  // namespace jouleprof
