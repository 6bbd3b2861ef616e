#include "importers/cells.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "importers/source_text.h"

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

WithUnit split_unit(std::string_view cell) {
  const auto blank = cell.find_first_of(" \t");
  if (blank == std::string_view::npos) return {cell, {}};
  std::string_view unit = trim(cell.substr(blank));
  if (unit.size() > 2 && ((unit.starts_with('[') && unit.ends_with(']')) ||
                          (unit.starts_with('(') && unit.ends_with(')')))) {
    unit = unit.substr(1, unit.size() - 2);
  }
  return {cell.substr(0, blank), unit};
}

std::optional<model::DomainKind> kind_of_device(std::string_view device) {
  using model::DomainKind;
  constexpr std::array<std::pair<std::string_view, DomainKind>, 12> kPrefixes{
      {{"gpu", DomainKind::kGpu},
       {"cpu", DomainKind::kCpu},
       {"package", DomainKind::kCpu},
       {"dram", DomainKind::kDram},
       {"ram", DomainKind::kDram},
       {"cores", DomainKind::kCpuCores},
       {"uncore", DomainKind::kCpuUncore},
       {"psys", DomainKind::kPlatform},
       {"platform", DomainKind::kPlatform},
       {"socket", DomainKind::kPlatform},
       {"node", DomainKind::kPlatform},
       {"module", DomainKind::kModule}}};
  for (const auto& [prefix, kind] : kPrefixes) {
    if (device.starts_with(prefix)) return kind;
  }
  return std::nullopt;
}

}  // namespace jouleprof::importers
