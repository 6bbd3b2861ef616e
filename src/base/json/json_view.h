// Looking at JSON where it stands: finding where values begin and end, without reading them and
// without judging them. What is not JSON may be taken for it; what is JSON is always right.
#pragma once

#include <string>
#include <string_view>

namespace jouleprof {

struct JsonExtent {
  enum State {
    kWhole,
    kMore,  // the text ends within the value, or, for a number or word, with it
    kNone,  // no value begins here
  };
  State state = kNone;
  std::size_t size = 0;
};

// The value that begins with the first character of `text`.
JsonExtent json_extent(std::string_view text);

// The length of the white space that `text` begins with.
std::size_t json_space(std::string_view text);

// The members of an object, in order. `object` is its whole text.
class JsonMembers {
 public:
  explicit JsonMembers(std::string_view object);
  bool next();                                   // false at the end, and where it is no object
  std::string_view key() const { return key_; }  // without quotes, escapes as written
  std::string_view value() const { return value_; }

 private:
  std::string_view rest_;
  std::string_view key_;
  std::string_view value_;
};

// The text of a string value: without quotes and escapes. Empty for anything but a string.
std::string json_string(std::string_view value);
// json_string() where the text can be taken as it stands; else nothing ("").
std::string_view plain_json_string(std::string_view value);

// Whether a text is JSON, without reading its values.

// One value, with white space around it. The words NaN, Infinity and -Infinity, which Python
// writes, are taken for numbers; the encoding of strings is not judged.
bool is_json(std::string_view text);

}  // namespace jouleprof
