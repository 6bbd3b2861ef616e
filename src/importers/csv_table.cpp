#include "importers/csv_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::importers {

std::vector<std::string> csv_header(std::string_view text) {
  Lines lines(text);
  if (!lines.next()) return {};
  auto fields = split_csv(lines.text());
  if (!fields) return {};
  for (std::string& field : *fields) field = std::string(trim(field));
  return std::move(*fields);
}

std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

std::optional<int> numbered_column(std::string_view name, std::string_view prefix,
                                   std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() <= prefix.size() + suffix.size()) return std::nullopt;
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  const auto number = parse_integer(name);
  if (!number || *number < 0 || *number > 65535) return std::nullopt;
  return static_cast<int>(*number);
}

WithUnit split_unit(std::string_view field) {
  const auto blank = field.find_first_of(" \t");
  if (blank == std::string_view::npos) return {field, {}};
  std::string_view unit = trim(field.substr(blank));
  if (unit.size() > 2 && ((unit.starts_with('[') && unit.ends_with(']')) ||
                          (unit.starts_with('(') && unit.ends_with(')')))) {
    unit = unit.substr(1, unit.size() - 2);
  }
  return {field.substr(0, blank), unit};
}

CsvRows::CsvRows(const SourceText& source)
    : source_(source), header_(csv_header(source.text)), lines_(source.text) {
  lines_.next();
}

Result<std::size_t> CsvRows::column(std::string_view name) const {
  if (const auto found = find_column(header_, name)) return *found;
  return missing_column(name);
}

tl::unexpected<Error> CsvRows::missing_column(std::string_view name) const {
  return importers::fail_at(source_, 1, fmt::format("the header has no column '{}'", name));
}

bool CsvRows::next() {
  while (lines_.next()) {
    if (trim(lines_.text()).empty()) continue;
    if (lines_.ended()) return true;
    cut_off_ = cut_off_warning(source_.path, lines_.number());
    return false;
  }
  return false;
}

tl::unexpected<Error> CsvRows::fail_at(std::string_view message) const {
  return importers::fail_at(source_, lines_.number(), message);
}

Result<void> CsvRows::check_fields(std::size_t fields) const {
  if (fields == header_.size()) return {};
  return fail_at(fmt::format("{} fields under a header of {}", fields, header_.size()));
}

}  // namespace jouleprof::importers
