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

tl::unexpected<Error> missing_column(const SourceText& source, std::string_view name) {
  return fail_at(source, 1, fmt::format("the header has no column '{}'", name));
}

}  // namespace jouleprof::importers
