// JSON with numbers that keep the digits they were given.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::report {

// An object begins as Json::object(): where memory is short, a null that becomes one by its first
// member is left half made, and crashes.
using Json = nlohmann::ordered_json;

// A number written exactly as `text`, which must be a JSON number; null when it is empty.
Json decimal(std::string_view text);

Json joules_json(Energy e);             // six decimals
Json seconds_json(Duration d);          // nine decimals
Json number_json(double value);         // six decimals; null unless finite
Json text_json(std::string_view text);  // null when empty

// `to_json(*value)`, or null when it is absent.
template <typename T, typename Convert>
Json optional_json(const std::optional<T>& value, Convert convert) {
  return value ? Json(convert(*value)) : Json(nullptr);
}
template <typename T>
Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// The document; `indent` 0 puts it on one line, -1 also leaves out blanks. What is not UTF-8
// becomes U+FFFD.
std::string write_json(const Json& document, int indent = 2);

}  // namespace jouleprof::report
