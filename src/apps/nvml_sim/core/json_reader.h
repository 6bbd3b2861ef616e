// Strict reading of a JSON object into variables: an unknown key, a wrong type or a number out of
// range is an error that names the key's path.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "base/result.h"

namespace jouleprof::nvml_sim {

// The first error of a document, shared by the readers of all its objects.
struct JsonErrors {
  std::string file;
  std::optional<Error> first;

  void add(const std::string& path, const std::string& what);
};

// The values a number may have in the file, and its unit there in units of the variable.
struct Range {
  double min = 0;
  double max = 0;
  double unit = 1;
};

class JsonReader {
 public:
  // `path` is the object's place, empty for the document itself.
  JsonReader(const nlohmann::json& value, std::string path, JsonErrors& errors);

  bool has(const char* key) const { return value_->contains(key); }
  // Reads a key into a text, a bool, a number or an optional number. An absent key leaves `out`
  // unchanged; so does a wrong value, which is an error.
  template <typename T>
  void read(const char* key, T& out, Range range = {});
  // The same; an absent key is an error.
  template <typename T>
  void require(const char* key, T& out, Range range = {}) {
    if (raw(key) == nullptr) error(key, "is missing");
    read(key, out, range);
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
void JsonReader::read(const char* key, T& out, Range range) {
  if constexpr (std::is_same_v<T, std::string>) {
    if (const Json* json = typed(key, &Json::is_string, "must be a text")) out = json->get<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (const Json* json = typed(key, &Json::is_boolean, "must be true or false")) {
      out = json->get<T>();
    }
  } else if constexpr (std::is_arithmetic_v<T>) {
    const bool whole = std::is_integral_v<T> && range.unit == 1;
    const Json* json = number(key, range, whole);
    if (json == nullptr) return;
    const double scaled = json->get<double>() * range.unit;
    if constexpr (std::is_integral_v<T>) {
      out = whole ? json->get<T>() : static_cast<T>(std::llround(scaled));
    } else {
      out = scaled;
    }
  } else if (raw(key) != nullptr) {  // an optional
    typename T::value_type value{};
    read(key, value, range);
    out = value;
  }
}

}  // namespace jouleprof::nvml_sim
