// Strict reading of small JSON documents into variables: an unknown key, a wrong type or a number
// out of range is an error that names the key's path. Big traces are scanned in place: JsonMembers.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

namespace jouleprof {

// Errors: `code` where the text is not JSON.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& file,
                                  Errc code = Errc::kInvalidArgument);

// The first error of a document, shared by the readers of all its objects.
struct JsonErrors {
  std::string file;
  std::optional<Error> first = std::nullopt;
  Errc code = Errc::kInvalidArgument;

  void add(const std::string& path, const std::string& what);
};

// What a text says, as nlohmann's parse() and dump() do it: a file that calls these itself compiles
// them once more, for a second. Discarded where the text is no JSON, or its exception where it
// `throws`.
nlohmann::json json_value(std::string_view text, bool throws = false);
// On one line without blanks where `indent` is -1. What is not UTF-8 becomes U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
std::string json_text(const nlohmann::ordered_json& value, int indent = -1);

// The values a number may have in the file, and its unit there in units of the variable.
struct JsonRange {
  double min = 0;
  double max = 0;
  double unit = 1;
};

class JsonReader {
 public:
  using Range = JsonRange;

  // `path` is the object's place, empty for the document itself. Value and errors must outlive it.
  JsonReader(const nlohmann::json& value, std::string path, JsonErrors& errors);

  bool has(const char* key) const { return value_->contains(key); }
  // Reads a key into a text, a bool, a number or an optional of these; false when it did not. An
  // absent key leaves `out` unchanged; so does a wrong value, which is an error.
  template <typename T>
  bool read(const char* key, T& out, Range range = {});
  // read() where an absent key is an error.
  template <typename T>
  bool require(const char* key, T& out, Range range = {}) {
    if (raw(key) == nullptr) error(key, "is missing");
    return read(key, out, range);
  }
  // The position of the text among `words`; -1 if the key is absent or none of them.
  int word(const char* key, const std::vector<std::string>& words, bool required = false);
  // Calls `reader` for the object, or for each of a list of objects (one object is a list of one).
  using Reader = std::function<void(JsonReader&)>;
  void object(const char* key, const Reader& reader);
  void each(const char* key, const Reader& reader, bool required = false);
  const nlohmann::json* raw(const char* key);  // any value, or nullptr

  // An error for the keys that were not read. Call it last; object() and each() do.
  void finish();
  void error(const std::string& key, const std::string& what);
  const nlohmann::json& value() const { return *value_; }

 private:
  using Json = nlohmann::json;
  using IsType = bool (Json::*)() const noexcept;
  // The value of a key if it has the type; another type is an error. Null: absent or wrong.
  const Json* typed(const char* key, IsType is_type, const char* otherwise);
  const Json* number(const char* key, Range range, bool whole);

  const Json* value_;
  std::string path_;
  JsonErrors* errors_;
  std::set<std::string> known_;
};

template <typename T>
bool JsonReader::read(const char* key, T& out, Range range) {
  if constexpr (std::is_same_v<T, std::string>) {
    const Json* json = typed(key, &Json::is_string, "must be a text");
    if (json != nullptr) out = json->get<T>();
    return json != nullptr;
  } else if constexpr (std::is_same_v<T, bool>) {
    const Json* json = typed(key, &Json::is_boolean, "must be true or false");
    if (json != nullptr) out = json->get<T>();
    return json != nullptr;
  } else if constexpr (std::is_arithmetic_v<T>) {
    const bool whole = std::is_integral_v<T> && range.unit == 1;
    const Json* json = number(key, range, whole);
    if (json == nullptr) return false;
    const double scaled = json->get<double>() * range.unit;
    if constexpr (std::is_integral_v<T>) {
      out = whole ? json->get<T>() : static_cast<T>(std::llround(scaled));
    } else {
      out = scaled;
    }
    return true;
  } else {  // an optional
    typename T::value_type value{};
    if (!read(key, value, range)) return false;
    out = std::move(value);
    return true;
  }
}

// --- Where values begin and end, without reading them and without judging them ---
// What is not JSON may be taken for it; what is JSON is always right.

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
