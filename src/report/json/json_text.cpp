#include "report/json/json_text.h"

#include <vector>

#include "report/quantity.h"

namespace jouleprof::report {
namespace {

std::string scalar(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write(const Json& value, int indent, int depth, std::string& out) {
  if (value.is_binary()) {
    out.append(value.get_binary().begin(), value.get_binary().end());
    return;
  }
  if (!value.is_structured() || value.empty()) {
    out += scalar(value);
    return;
  }
  const auto new_line = [&](int level) {
    if (indent > 0) out += '\n' + std::string(static_cast<std::size_t>(indent * level), ' ');
  };
  out += value.is_object() ? '{' : '[';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (!first) out += indent == 0 ? ", " : ",";
    first = false;
    new_line(depth + 1);
    if (value.is_object()) out += scalar(Json(key)) + (indent < 0 ? ":" : ": ");
    write(item, indent, depth + 1, out);
  }
  new_line(depth);
  out += value.is_object() ? '}' : ']';
}

}  // namespace

// The library writes doubles in its own way and has no other kind of number that is not an integer;
// its binary values, which JSON has no form for, carry the digits instead.
Json decimal(std::string_view text) {
  if (text.empty()) return nullptr;
  // Json::binary() crashes where memory runs out in it (nlohmann 3.11).
  Json out(Json::value_t::binary);
  out.get_binary() = Json::binary_t({text.begin(), text.end()});
  return out;
}

Json joules_json(Energy e) { return decimal(joules_decimal(e)); }
Json seconds_json(Duration d) { return decimal(seconds_decimal(d)); }
Json number_json(double value) { return decimal(fixed_decimal(value)); }
Json text_json(std::string_view text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string write_json(const Json& document, int indent) {
  std::string out;
  write(document, indent, 0, out);
  return out;
}

}  // namespace jouleprof::report
