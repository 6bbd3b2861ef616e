// The keys of a JSON document, and those that docs/json.md names.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::report {

// "domains[].energy_joules" for every key there is, added to `keys`.
inline void add_keys(const nlohmann::json& value, const std::string& path,
                     std::set<std::string>& keys) {
  if (value.is_array()) {
    for (const auto& item : value) add_keys(item, path + "[]", keys);
  } else if (value.is_object()) {
    for (const auto& [key, item] : value.items()) {
      const std::string name = path.empty() ? key : path + "." + key;
      keys.insert(name);
      add_keys(item, name, keys);
    }
  }
}

// The keys that the tables of one chapter of docs/json.md name.
inline std::set<std::string> documented_keys(const std::string& chapter) {
  const auto page = read_file(JOULEPROF_SOURCE_DIR "/docs/json.md");
  EXPECT_TRUE(page.has_value());
  std::set<std::string> keys;
  bool inside = false;
  for (const auto line : split(*page, '\n')) {
    if (line.starts_with("## ")) inside = line.find(chapter) != std::string_view::npos;
    if (inside && line.starts_with("| `")) keys.emplace(line.substr(3, line.find('`', 3) - 3));
  }
  return keys;
}

}  // namespace jouleprof::report
