#include "report/html/markup.h"

#include <algorithm>

namespace jouleprof::report {

std::string script_json(const Json& document) {
  const std::string json = write_json(document, 0);
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    const std::string_view next = std::string_view(json).substr(i, 3);
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (next == "\xe2\x80\xa8" || next == "\xe2\x80\xa9") {
      out += next.back() == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

Json packed_rows(const Json& rows, const std::vector<std::string_view>& dropped) {
  Json packed = Json::object();
  packed["keys"] = Json::array();
  packed["rows"] = Json::array();
  if (rows.empty()) return packed;
  for (const auto& [key, value] : rows.front().items()) {
    if (std::find(dropped.begin(), dropped.end(), key) == dropped.end()) {
      packed["keys"].push_back(key);
    }
  }
  for (const Json& row : rows) {
    Json cells = Json::array();
    for (const Json& key : packed["keys"])
      cells.push_back(row.value(key.get<std::string>(), Json()));
    packed["rows"].push_back(std::move(cells));
  }
  return packed;
}

}  // namespace jouleprof::report
