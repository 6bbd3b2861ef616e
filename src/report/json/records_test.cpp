// What is made from the lists of columns: tables of docs/json.md, and the columns of the Python
// package. `make columns` writes them again.
#include "report/json/records.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::report {
namespace {

using Type = ColumnDescription::Type;

const std::string kRoot = JOULEPROF_SOURCE_DIR;

// The file has this text; or gets it, where the environment says so.
void expect_file(const std::string& path, const std::string& text) {
  if (std::getenv("JOULEPROF_WRITE_COLUMNS") != nullptr) std::ofstream(kRoot + path) << text;
  const auto found = read_file(kRoot + path);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(*found == text) << path
                              << " is not what src/report/json/records.cpp says: make columns";
}

std::string python_type(Type type) {
  switch (type) {
    case Type::kFlag:
      return "flag";
    case Type::kInteger:
      return "integer";
    case Type::kNumber:
      return "float";
    case Type::kInterval:
      return "interval";
    case Type::kQuartiles:
      return "quartiles";
    case Type::kTime:
      return "time";
    default:
      return "text";
  }
}

TEST(Records, ThePythonPackageHasTheirColumns) {
  std::string text =
      "\"\"\"The columns of each kind of record and their types. Written by `make "
      "columns`.\"\"\"\n\n"
      "RECORDS = {\n";
  for (const auto& kind : record_kinds()) {
    text += "    \"" + std::string(kind.name) + "\": {";
    std::size_t width = 120;
    for (const auto& column : kind.columns) {
      if (column.type == Type::kNested) continue;
      const std::string item = "\"" + column.name + "\": \"" + python_type(column.type) + "\",";
      const bool fits = width + 1 + item.size() < 120;
      text += (fits ? " " : "\n        ") + item;
      width = item.size() + (fits ? width + 1 : 8);
    }
    text += "},\n";
  }
  expect_file("/python/jouleprof/_recorded/columns.py", text + "}\n");
}

std::string key_of(std::string_view line) {
  if (!line.starts_with("| `")) return {};
  return std::string(line.substr(3, line.find('`', 3) - 3));
}

class WrittenTable {
 public:
  // `apart`: kinds that have a table of their own.
  WrittenTable(const std::vector<RecordKind>& kinds, std::set<std::string_view> apart,
               std::vector<std::string_view> before)
      : kinds_(kinds), apart_(std::move(apart)), before_(std::move(before)) {}

  // The rows of a kind of record, each followed by those of the records within it. What is within
  // has rows by hand where it has no list of columns, and a row of its own may stand above all.
  void add(const RecordKind& kind) {
    for (const auto row : before_) {
      if (text.empty() && key_of(row) + "[]." == kind.path) text += std::string(row) + '\n';
    }
    names.insert(std::string(kind.name));
    for (const auto& column : kind.columns) {
      const std::string key = std::string(kind.path) + column.name;
      if (!keys.insert(key).second) continue;
      text += "| `" + key + "` | " + column.meaning + " | " +
              (column.null.empty() ? "never" : column.null) + " |\n";
      if (column.type == Type::kNested) add_below(key);
    }
  }

  std::string text;
  std::set<std::string> names;  // of the kinds
  std::set<std::string> keys;

 private:
  void add_below(const std::string& key) {
    for (const auto& kind : kinds_) {
      if (kind.path != key + "." && kind.path != key + "[].") continue;
      return apart_.contains(kind.name) ? void() : add(kind);
    }
    for (const auto row : before_) {
      const std::string below = key_of(row);
      if (below.starts_with(key + ".") || below.starts_with(key + "[].")) {
        text += std::string(row) + '\n';
      }
    }
  }

  const std::vector<RecordKind>& kinds_;
  std::set<std::string_view> apart_;
  std::vector<std::string_view> before_;
};

std::vector<RecordKind> all_kinds() {
  auto all = record_kinds();
  for (const auto& more : {job_kinds(), result_kinds(), snapshot_kinds(), part_kinds()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

TEST(Records, TheTablesOfTheDocumentationHaveTheirColumns) {
  const auto page = read_file(kRoot + "/docs/json.md");
  ASSERT_TRUE(page.has_value());
  const auto kinds = all_kinds();
  const auto lines = split(*page, '\n');
  std::set<std::string> names;
  std::set<std::string> keys;
  std::string text;
  constexpr std::string_view kMark = "<!-- columns: ";
  const auto marked = [&](std::string_view line) {
    return line.starts_with(kMark)
               ? line.substr(kMark.size()).substr(0, line.find(' ', kMark.size()) - kMark.size())
               : std::string_view{};
  };
  std::set<std::string_view> apart;
  for (const auto line : lines) apart.insert(marked(line));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += std::string(lines[i]) + (i + 1 < lines.size() ? "\n" : "");
    if (lines[i].starts_with("## ")) keys.clear();  // another document, or part of one
    const auto name = marked(lines[i]);
    if (name.empty()) continue;
    std::vector<std::string_view> before;
    while (i + 1 < lines.size() && lines[i + 1].starts_with("|")) before.push_back(lines[++i]);
    WrittenTable table(kinds, apart, std::move(before));
    table.keys = keys;  // what another table has is left out
    for (const auto& kind : kinds) {
      if (kind.name == name) table.add(kind);
    }
    text += "| key | meaning | null when |\n|---|---|---|\n" + table.text;
    names.merge(table.names);
    keys.merge(table.keys);
  }
  for (const auto& kind : kinds) EXPECT_TRUE(names.contains(std::string(kind.name))) << kind.name;
  expect_file("/docs/json.md", text);
}

// What a column is in the page's types; of a list or an object inside nothing is known.
std::string typescript_type(const ColumnDescription& column) {
  const std::string null = column.null.empty() ? "" : " | null";
  switch (column.type) {
    case Type::kFlag:
      return "boolean" + null;
    case Type::kInteger:
    case Type::kNumber:
      return "number" + null;
    case Type::kInterval:
      return column.null.empty() ? "[number, number]" : "Interval";
    case Type::kQuartiles:
      return "[number, number, number]" + null;
    default:
      return "string" + null;
  }
}

TEST(Records, ThePageHasTheirTypes) {
  std::string source;
  for (const char* file : {"data.ts", "results.ts"}) {
    source += read_file(kRoot + "/web/src/" + file).value_or("");
  }
  const std::map<std::string_view, std::string_view> kinds{{"Row", "activity"},
                                                           {"Domain", "domain"},
                                                           {"Process", "process"},
                                                           {"ProcessShare", "share"},
                                                           {"Finding", "finding"},
                                                           {"WindowGroup", "window"},
                                                           {"WindowEnergy", "window_energy"},
                                                           {"SweepPoint", "point"},
                                                           {"JobRank", "rank"},
                                                           {"JobHost", "job_host"},
                                                           {"JobDomain", "job_domain"}};
  std::size_t checked = 0;
  std::string_view interface;
  std::map<std::string, const ColumnDescription*> columns;
  const auto all = all_kinds();
  for (const auto line : split(source, '\n')) {
    constexpr std::string_view kBegin = "export interface ";
    if (line.starts_with(kBegin)) {
      interface = line.substr(kBegin.size(), line.find(' ', kBegin.size()) - kBegin.size());
      columns.clear();
      const auto found = kinds.find(interface);
      for (const auto& kind : all) {
        if (found == kinds.end() || kind.name != found->second) continue;
        for (const auto& column : kind.columns) columns[column.name] = &column;
      }
    }
    if (line.starts_with("}")) columns.clear();
    const auto colon = line.find(": ");
    if (columns.empty() || !line.starts_with("  ") || colon == std::string_view::npos) continue;
    const auto name = line.substr(2, colon - 2 - (line[colon - 1] == '?' ? 1 : 0));
    const auto found = columns.find(std::string(name));
    ASSERT_NE(found, columns.end()) << interface << '.' << name << " is no column of its records";
    if (found->second->type == Type::kNested) continue;
    ++checked;
    EXPECT_EQ(line.substr(colon + 2, line.find(';') - colon - 2), typescript_type(*found->second))
        << interface << '.' << name;
  }
  EXPECT_GE(checked, 95U);
}

}  // namespace
}  // namespace jouleprof::report
