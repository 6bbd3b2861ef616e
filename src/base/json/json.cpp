#include "base/json/json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/text.h"

namespace jouleprof {

Result<nlohmann::json> parse_json(std::string_view text, const std::string& file, Errc code) {
  auto document = json_value(text);
  if (!document.is_discarded()) return document;
  return fail(
      code,
      fmt::format("{0} is not JSON; 'python3 -m json.tool {0}' shows where it breaks off", file));
}

void JsonErrors::add(const std::string& path, const std::string& what) {
  if (first) return;
  const std::string text = fmt::format("{}{}{}", path, path.empty() ? "" : ": ", what);
  first = Error{code, fmt::format("{}: {}", file, one_line(text))};
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
  const auto it = std::ranges::find(words, value);
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

namespace {

template <class Json>
std::string written(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

enum Kind : std::uint8_t { kPlain, kQuote, kOpen, kClose };

constexpr auto kKinds = [] {
  std::array<Kind, 256> kinds{};
  kinds['"'] = kQuote;
  kinds['{'] = kinds['['] = kOpen;
  kinds['}'] = kinds[']'] = kClose;
  return kinds;
}();

Kind kind_of(char c) { return kKinds[static_cast<unsigned char>(c)]; }

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Past the closing quote of the string that begins at `at`; nullptr when there is none.
const char* past_string(const char* at, const char* end) {
  const char* const first = at + 1;
  at = first;
  for (;;) {
    const void* quote = std::memchr(at, '"', static_cast<std::size_t>(end - at));
    if (!quote) return nullptr;
    at = static_cast<const char*>(quote);
    const char* before = at;
    while (before != first && before[-1] == '\\') --before;
    ++at;
    if ((at - 1 - before) % 2 == 0) return at;
  }
}

std::uint32_t hex(std::string_view text) {
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    const int lower = c | 0x20;
    const int digit = c >= '0' && c <= '9'           ? c - '0'
                      : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                                     : 0;
    value = value << 4 | static_cast<std::uint32_t>(digit);
  }
  return value;
}

}  // namespace

JsonExtent json_extent(std::string_view text) {
  if (text.empty()) return {JsonExtent::kMore, 0};
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const char* at = begin;
  const auto whole = [&] { return JsonExtent{JsonExtent::kWhole, std::size_t(at - begin)}; };
  const JsonExtent more{JsonExtent::kMore, 0};
  switch (kind_of(*at)) {
    case kQuote:
      at = past_string(at, end);
      return at ? whole() : more;
    case kClose:
      return {};
    case kPlain:
      if (*at == ',' || *at == ':' || is_space(*at)) return {};
      while (at != end && kind_of(*at) != kClose && *at != ',' && !is_space(*at)) ++at;
      return at == end ? more : whole();
    case kOpen:
      break;
  }
  std::size_t depth = 0;
  while (at != end) {
    switch (kind_of(*at)) {
      case kPlain:
        ++at;
        break;
      case kQuote:
        at = past_string(at, end);
        if (!at) return more;
        break;
      case kOpen:
        ++depth;
        ++at;
        break;
      case kClose:
        ++at;
        if (--depth == 0) return whole();
        break;
    }
  }
  return more;
}

std::size_t json_space(std::string_view text) {
  std::size_t n = 0;
  while (n < text.size() && is_space(text[n])) ++n;
  return n;
}

JsonMembers::JsonMembers(std::string_view object) {
  if (object.size() >= 2 && object.front() == '{') rest_ = object.substr(1, object.size() - 1);
}

bool JsonMembers::next() {
  const auto skip = [this](char c) {
    rest_.remove_prefix(json_space(rest_));
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    rest_.remove_prefix(json_space(rest_));
    return true;
  };
  skip(',');
  if (rest_.empty() || rest_.front() != '"') return false;
  JsonExtent extent = json_extent(rest_);
  if (extent.state != JsonExtent::kWhole) return false;
  key_ = rest_.substr(1, extent.size - 2);
  rest_.remove_prefix(extent.size);
  if (!skip(':')) return false;
  extent = json_extent(rest_);
  if (extent.state != JsonExtent::kWhole) return false;
  value_ = rest_.substr(0, extent.size);
  rest_.remove_prefix(extent.size);
  return true;
}

std::string_view plain_json_string(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return {};
  value = value.substr(1, value.size() - 2);
  return value.find('\\') == std::string_view::npos ? value : std::string_view{};
}

std::string json_string(std::string_view value) {
  if (value.size() < 2 || value.front() != '"') return {};
  value = value.substr(1, value.size() - 2);
  std::string out;
  out.reserve(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '\\' || ++i == value.size()) {
      if (i < value.size()) out += value[i];
      continue;
    }
    switch (value[i]) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'u': {
        std::uint32_t c = hex(value.substr(i + 1));
        i += 4;
        const bool high = c >= 0xD800 && c < 0xDC00;
        if (high && i + 6 < value.size() && value[i + 1] == '\\' && value[i + 2] == 'u') {
          const std::uint32_t low = hex(value.substr(i + 3));
          if (low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
            i += 6;
          }
        }
        append_utf8(out, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
        break;
      }
      default:
        out += value[i];
    }
  }
  return out;
}

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

nlohmann::json json_value(std::string_view text, bool throws) {
  return nlohmann::json::parse(text, nullptr, throws);
}

std::string json_text(const nlohmann::json& value, int indent) { return written(value, indent); }
std::string json_text(const nlohmann::ordered_json& value, int indent) {
  return written(value, indent);
}

}  // namespace jouleprof
