// Records as JSON objects, made from their field lists (record_fields.h): the messages between
// programs and services.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json/json.h"
#include "model/record_fields.h"

namespace jouleprof::model {

// The version of a protocol, the first field. Where it is not `known`, a reader leaves the others:
// another version may have other ones.
template <class T>
struct Version {
  T& value;
  int known;
};
template <class T>
Version(T&, int) -> Version<T>;

// Writes fields. An absent value and a number that is not finite are left out.
class JsonFieldWriter {
 public:
  using Json = nlohmann::json;

  explicit JsonFieldWriter(Json& object) : object_(object) {}

  template <class T>
  void operator()(const char* name, const T& value, FieldTraits = {}) {
    if (Json json = json_of(value); !json.is_null()) object_[name] = std::move(json);
  }

 private:
  template <class T>
  static Json json_of(const T& value) {
    if constexpr (requires(JsonFieldWriter& writer) { fields(value, writer); }) {
      Json of_value = Json::object();
      fields(value, JsonFieldWriter(of_value));
      return of_value;
    } else if constexpr (requires { value.value; }) {
      return json_of(value.value);
    } else if constexpr (std::is_enum_v<T>) {
      return static_cast<std::uint32_t>(value);
    } else if constexpr (std::is_floating_point_v<T>) {
      return std::isfinite(value) ? Json(value) : Json(nullptr);
    } else {
      return value;
    }
  }
  static Json json_of(DomainKind kind) { return to_string(kind); }
  static Json json_of(SensorKind kind) { return to_string(kind); }
  static Json json_of(Provenance provenance) { return to_string(provenance); }
  static Json json_of(Duration d) { return d.count(); }
  static Json json_of(HostTime t) { return t.time_since_epoch().count(); }
  static Json json_of(RealTime t) { return t.time_since_epoch().count(); }
  static Json json_of(Energy energy) { return energy.microjoules(); }
  static Json json_of(Power power) { return json_of(power.watts()); }
  template <class T>
  static Json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : Json(nullptr);
  }
  template <class T>
  static Json json_of(const std::vector<T>& list) {
    Json array = Json::array();
    for (const T& item : list) array.push_back(json_of(item));
    return array;
  }
  template <class T>
  static Json json_of(const Nullable<T>& value) {
    return value.value == value.absent ? Json(nullptr) : json_of(value.value);
  }

  Json& object_;
};

// Takes fields from an object that nothing has checked. After a value that is missing or impossible
// good() is false, and the record is meaningless.
class JsonFieldReader {
 public:
  using Json = nlohmann::json;

  explicit JsonFieldReader(const Json& object) : object_(object), good_(object.is_object()) {}

  bool good() const { return good_; }

  template <class T>
  void operator()(const char* name, T&& value, FieldTraits = {}) {
    if (!good_ || another_version_) return;
    const auto found = object_.find(name);
    take(found == object_.end() ? nullptr : &*found, value);
  }

 private:
  static constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

  template <class T>
  void take(const Json* json, T& value) {
    if constexpr (requires { fields(value, *this); }) {
      static const Json kNothing;
      JsonFieldReader reader(json == nullptr ? kNothing : *json);
      fields(value, reader);
      good_ = good_ && reader.good();
    } else if constexpr (requires { value.value; }) {
      take(json, value.value);
    } else if constexpr (std::is_enum_v<T>) {
      value = static_cast<T>(integer(json, 0, std::numeric_limits<std::uint32_t>::max()));
    } else if constexpr (std::is_integral_v<T>) {
      constexpr auto kHighest = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
      value = static_cast<T>(integer(json, 0, std::min<std::uint64_t>(kHighest, kMost)));
    } else {
      static_assert(std::is_same_v<T, double> || std::is_same_v<T, std::string>);
      const bool fits = std::is_same_v<T, double> ? json != nullptr && json->is_number()
                                                  : json != nullptr && json->is_string();
      fits ? void(json->get_to(value)) : refuse(value);
    }
  }
  void take(const Json* json, bool& value) {
    json != nullptr && json->is_boolean() ? void(json->get_to(value)) : refuse(value);
  }
  void take(const Json* json, DomainKind& kind) { take(json, kind, &parse_domain_kind); }
  void take(const Json* json, SensorKind& kind) { take(json, kind, &parse_sensor_kind); }
  void take(const Json* json, Provenance& p) { take(json, p, &parse_provenance); }
  void take(const Json* json, Duration& d) { d = Duration{integer(json)}; }
  void take(const Json* json, HostTime& t) { t = HostTime{Duration{integer(json)}}; }
  void take(const Json* json, RealTime& t) { t = RealTime{Duration{integer(json)}}; }
  void take(const Json* json, Energy& energy) { energy = Energy::microjoules(integer(json)); }
  void take(const Json* json, Power& power) {
    double watts = 0;
    take(json, watts);
    power = Power::watts(watts);
  }
  template <class T>
  void take(const Json* json, std::optional<T>& value) {
    value.reset();
    if (json != nullptr) take(json, value.emplace());
  }
  template <class T>
  void take(const Json* json, std::vector<T>& list) {
    if (json == nullptr || !json->is_array()) return refuse(list);
    for (const Json& item : *json) take(&item, list.emplace_back());
  }
  template <class T>
  void take(const Json* json, Nullable<T>& value) {
    json == nullptr ? void(value.value = value.absent) : take(json, value.value);
  }
  template <class T>
  void take(const Json* json, Version<T>& version) {
    take(json, version.value);
    another_version_ = version.value != version.known;
  }
  template <class T>
  void take(const Json* json, T& value, std::optional<T> (*parse)(std::string_view)) {
    std::string word;
    take(json, word);
    const auto parsed = parse(word);
    parsed ? void(value = *parsed) : refuse(value);
  }

  std::int64_t integer(const Json* json, std::int64_t lowest = -kMost,
                       std::int64_t highest = kMost) {
    std::int64_t number = 0;
    if (json == nullptr || !json->is_number_integer()) return refuse(number), 0;
    json->get_to(number);
    if (number < lowest || number > highest) refuse(number);
    return number;
  }
  template <class T>
  void refuse(T& value) {
    good_ = false;
    value = {};
  }

  const Json& object_;
  bool good_;
  bool another_version_ = false;
};

// Messages: a variant of records, of which the first ones have the names `types`, each a JSON
// object with its name as "type". The others are not JSON.
// A text that is no UTF-8 arrives with replacement characters.
template <class Message, std::size_t N>
std::string message_text(const Message& message, const std::array<const char*, N>& types) {
  // A null that becomes an object without memory for it crashes when it is destroyed.
  nlohmann::json object = nlohmann::json::object();
  if (message.index() < N) object["type"] = types[message.index()];
  std::visit(
      [&](const auto& record) {
        model::JsonFieldWriter writer(object);
        if constexpr (requires { fields(record, writer); }) fields(record, writer);
      },
      message);
  return json_text(object);
}

// Absent where the text is none.
template <class Message, std::size_t N>
std::optional<Message> message_of(std::string_view text, const std::array<const char*, N>& types) {
  const auto object = json_value(text);
  JsonFieldReader reader(object);
  std::string type;
  reader("type", type);
  std::optional<Message> message;
  const auto read = [&]<std::size_t I>(std::integral_constant<std::size_t, I>) {
    if (type != types[I]) return;
    fields(std::get<I>(message.emplace(Message(std::in_place_index<I>))), reader);
  };
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (read(std::integral_constant<std::size_t, I>{}), ...);
  }(std::make_index_sequence<N>{});
  if (!reader.good()) message.reset();
  return message;
}

}  // namespace jouleprof::model
