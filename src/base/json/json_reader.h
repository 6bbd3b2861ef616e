// Strict reading of small JSON documents into variables: an unknown key, a wrong type or a number
// out of range is an error that names the key's path. Big traces are scanned in place: json_view.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
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

// Takes values from a JSON object that nothing has checked yet.

// The values of an object, one by one; good() says whether all were there and fit.
class JsonFields {
 public:
  static constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t kMostId = std::numeric_limits<std::uint32_t>::max();

  explicit JsonFields(const nlohmann::json& object) : object_(object), good_(object.is_object()) {}

  bool good() const { return good_; }
  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }

  std::int64_t integer(const char* key, std::int64_t lowest = 0, std::int64_t highest = kMost) {
    const nlohmann::json& value = at(key);
    if (!value.is_number_integer()) return wrong<std::int64_t>();
    const auto n = value.get<std::int64_t>();
    return n < lowest || n > highest ? wrong<std::int64_t>() : n;
  }
  std::uint64_t count(const char* key) { return static_cast<std::uint64_t>(integer(key)); }
  std::uint32_t id(const char* key) { return static_cast<std::uint32_t>(integer(key, 0, kMostId)); }
  HostTime time(const char* key) { return HostTime{Duration{integer(key, -kMost)}}; }
  Energy energy(const char* key) { return Energy::microjoules(integer(key, -kMost)); }
  double number(const char* key) {
    const nlohmann::json& value = at(key);
    return value.is_number() ? value.get<double>() : wrong<double>();
  }
  // An object of numbers.
  std::vector<std::pair<std::string, double>> numbers(const char* key) {
    std::vector<std::pair<std::string, double>> all;
    const nlohmann::json& object = at(key);
    if (!object.is_object()) good_ = false;
    for (const auto& item : object.items()) {
      if (!item.value().is_number()) good_ = false;
      if (good_) all.emplace_back(item.key(), item.value().get<double>());
    }
    return all;
  }
  std::string text(const char* key) {
    const nlohmann::json& value = at(key);
    return value.is_string() ? value.get<std::string>() : wrong<std::string>();
  }
  bool flag(const char* key) {
    const nlohmann::json& value = at(key);
    return value.is_boolean() ? value.get<bool>() : wrong<bool>();
  }
  const nlohmann::json& list(const char* key) {
    static const nlohmann::json kEmpty = nlohmann::json::array();
    const nlohmann::json& value = at(key);
    if (value.is_array()) return value;
    good_ = false;
    return kEmpty;
  }
  template <typename T>
  T named(const char* key, std::optional<T> (*parse)(std::string_view)) {
    const auto value = parse(text(key));
    return value ? *value : wrong<T>();
  }
  void include(const JsonFields& other) { good_ = good_ && other.good_; }
  void refuse() { good_ = false; }

 private:
  template <typename T>
  T wrong() {
    good_ = false;
    return T{};
  }
  const nlohmann::json& at(const char* key) {
    static const nlohmann::json kNothing;
    if (has(key)) return object_.at(key);
    good_ = false;
    return kNothing;
  }

  const nlohmann::json& object_;
  bool good_;
};

}  // namespace jouleprof
