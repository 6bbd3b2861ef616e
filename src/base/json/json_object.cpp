#include "base/json/json_object.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"

namespace jouleprof {

Result<nlohmann::json> parse_json(std::string_view text, const std::string& file, Errc code) {
  auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_discarded()) return document;
  return fail(code,
              fmt::format("{0} is not JSON; 'python3 -m json.tool {0}' names the line", file));
}

void JsonErrors::add(const std::string& path, const std::string& what) {
  if (first) return;
  first = Error{code, fmt::format("{}: {}{}{}", file, path, path.empty() ? "" : ": ", what)};
}

JsonObject::JsonObject(const nlohmann::json& value, std::string path, JsonErrors& errors)
    : value_(&value), path_(std::move(path)), errors_(&errors) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  if (value.is_object()) return;
  errors_->add(path_, path_.empty() ? "not a JSON object { }" : "must be an object { }");
  value_ = &kEmpty;
}

std::string JsonObject::path(const std::string& key) const {
  return path_.empty() ? key : path_ + "." + key;
}

void JsonObject::error(const std::string& key, const std::string& what) {
  errors_->add(path(key), what);
}

bool JsonObject::has(const char* key) const { return value_->contains(key); }

bool JsonObject::is_null(const char* key) const { return has(key) && value_->find(key)->is_null(); }

const nlohmann::json* JsonObject::raw(const char* key) {
  known_.insert(key);
  const auto it = value_->find(key);
  return it == value_->end() ? nullptr : &*it;
}

void JsonObject::require(const char* key) {
  if (raw(key) == nullptr) error(key, "is missing");
}

void JsonObject::number(const char* key, double& out, double min, double max) {
  const auto* json = raw(key);
  if (json == nullptr) return;
  if (!json->is_number()) return error(key, "must be a number");
  const auto value = json->get<double>();
  if (!(value >= min && value <= max)) {
    return error(key, fmt::format("{} is out of range, {} to {}", shortest(value), shortest(min),
                                  shortest(max)));
  }
  out = value;
}

void JsonObject::integer(const char* key, std::int64_t& out, std::int64_t min, std::int64_t max) {
  const auto* json = raw(key);
  if (json == nullptr) return;
  if (!json->is_number_integer()) return error(key, "must be a whole number");
  const bool too_big =
      json->is_number_unsigned() && json->get<std::uint64_t>() > static_cast<std::uint64_t>(max);
  if (too_big || json->get<std::int64_t>() < min || json->get<std::int64_t>() > max) {
    return error(key, fmt::format("{} is out of range, {} to {}", json->dump(), min, max));
  }
  out = json->get<std::int64_t>();
}

void JsonObject::unsigned_integer(const char* key, unsigned& out, unsigned max) {
  std::int64_t value = out;
  integer(key, value, 0, max);
  out = static_cast<unsigned>(value);
}

void JsonObject::text(const char* key, std::string& out) {
  const auto* json = raw(key);
  if (json == nullptr) return;
  if (!json->is_string()) return error(key, "must be a text");
  out = json->get<std::string>();
}

void JsonObject::flag(const char* key, bool& out) {
  const auto* json = raw(key);
  if (json == nullptr) return;
  if (!json->is_boolean()) return error(key, "must be true or false");
  out = json->get<bool>();
}

int JsonObject::word(const char* key, const std::vector<std::string>& words) {
  if (raw(key) == nullptr) return -1;
  std::string value;
  text(key, value);
  const auto it = std::find(words.begin(), words.end(), value);
  if (it != words.end()) return static_cast<int>(it - words.begin());
  error(key, fmt::format("'{}' is none of: {}", value, fmt::join(words, ", ")));
  return -1;
}

std::optional<JsonObject> JsonObject::object(const char* key) {
  const auto* json = raw(key);
  if (json == nullptr) return std::nullopt;
  return JsonObject(*json, path(key), *errors_);
}

std::vector<JsonObject> JsonObject::objects(const char* key) {
  std::vector<JsonObject> list;
  const auto* json = raw(key);
  if (json == nullptr) return list;
  if (!json->is_array()) {
    list.emplace_back(*json, path(key), *errors_);
    return list;
  }
  for (std::size_t i = 0; i < json->size(); ++i) {
    list.emplace_back((*json)[i], fmt::format("{}[{}]", path(key), i), *errors_);
  }
  return list;
}

void JsonObject::finish() {
  for (const auto& [key, value] : value_->items()) {
    if (!known_.contains(key)) {
      error(key, fmt::format("is not a key here; those are: {}", fmt::join(known_, ", ")));
    }
  }
}

}  // namespace jouleprof
