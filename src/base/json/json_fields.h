// Takes values from a JSON object that nothing has checked yet.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace jouleprof {

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
