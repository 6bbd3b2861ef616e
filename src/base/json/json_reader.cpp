#include "base/json/json_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"

namespace jouleprof {

Result<nlohmann::json> parse_json(std::string_view text, const std::string& file, Errc code) {
  auto document = nlohmann::json::parse(text, nullptr, false);
  if (!document.is_discarded()) return document;
  return fail(
      code,
      fmt::format("{0} is not JSON; 'python3 -m json.tool {0}' shows where it breaks off", file));
}

void JsonErrors::add(const std::string& path, const std::string& what) {
  if (first) return;
  first = Error{code, fmt::format("{}: {}{}{}", file, path, path.empty() ? "" : ": ", what)};
}

JsonReader::JsonReader(const nlohmann::json& value, std::string path, JsonErrors& errors)
    : value_(&value), path_(std::move(path)), errors_(&errors) {
  static const nlohmann::json kEmpty = nlohmann::json::object();
  if (value.is_object()) return;
  errors_->add(path_, path_.empty() ? "not a JSON object; it must be an object { }"
                                    : "must be an object { }");
  value_ = &kEmpty;
}

void JsonReader::error(const std::string& key, const std::string& what) {
  errors_->add(path_.empty() ? key : path_ + "." + key, what);
}

const nlohmann::json* JsonReader::raw(const char* key) {
  known_.insert(key);
  const auto it = value_->find(key);
  return it == value_->end() ? nullptr : &*it;
}

const nlohmann::json* JsonReader::typed(const char* key, IsType is_type, const char* otherwise) {
  const auto* json = raw(key);
  if (json == nullptr || (json->*is_type)()) return json;
  error(key, otherwise);
  return nullptr;
}

const nlohmann::json* JsonReader::number(const char* key, Range range, bool whole) {
  const auto* json = whole ? typed(key, &Json::is_number_integer, "must be a whole number")
                           : typed(key, &Json::is_number, "must be a number");
  if (json == nullptr) return nullptr;
  const auto value = json->get<double>();
  if (value >= range.min && value <= range.max) return json;
  const std::string text = whole ? json->dump() : shortest(value);
  const auto bound = [whole](double limit) {
    return whole ? fmt::format("{:.0f}", limit) : shortest(limit);
  };
  error(key, fmt::format("{} is out of range, {} to {}", text, bound(range.min), bound(range.max)));
  return nullptr;
}

int JsonReader::word(const char* key, const std::vector<std::string>& words, bool required) {
  if (raw(key) == nullptr) {
    if (required) error(key, "is missing");
    return -1;
  }
  std::string value;
  read(key, value);
  const auto it = std::find(words.begin(), words.end(), value);
  if (it != words.end()) return static_cast<int>(it - words.begin());
  error(key, fmt::format("'{}' is none of: {}", value, fmt::join(words, ", ")));
  return -1;
}

void JsonReader::object(const char* key, const Reader& reader) {
  const auto* json = raw(key);
  if (json == nullptr) return;
  JsonReader child(*json, path_.empty() ? key : path_ + "." + key, *errors_);
  reader(child);
  child.finish();
}

void JsonReader::each(const char* key, const Reader& reader, bool required) {
  const auto* json = raw(key);
  if (json == nullptr && required) error(key, "is missing");
  if (json == nullptr || !json->is_array()) return object(key, reader);
  const std::string path = path_.empty() ? key : path_ + "." + key;
  for (std::size_t i = 0; i < json->size(); ++i) {
    JsonReader child((*json)[i], fmt::format("{}[{}]", path, i), *errors_);
    reader(child);
    child.finish();
  }
}

void JsonReader::finish() {
  for (const auto& [key, value] : value_->items()) {
    if (!known_.contains(key)) {
      error(key, fmt::format("is not a key here; those are: {}", fmt::join(known_, ", ")));
    }
  }
}

}  // namespace jouleprof
