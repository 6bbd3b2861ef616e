// The cells of logs and tables: columns by name, values with units.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/domain.h"

namespace jouleprof::importers {

// The header's names, trimmed; empty when `text` has no line. For recognising a format.
std::vector<std::string> csv_header(std::string_view text);

std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name);

// The "N" of a name such as "gpuN_energy"; nothing for any other name.
std::optional<int> numbered_column(std::string_view name, std::string_view prefix,
                                   std::string_view suffix);

// A cell may carry its unit: "61 W", "pwr [W]", "Power (mW)".
struct WithUnit {
  std::string_view word;
  std::string_view unit;  // empty: none
};
WithUnit split_unit(std::string_view cell);

// What a device of this name is: "gpu0", "cpu", "package-0", "dram", "psys", "socket1".
std::optional<model::DomainKind> kind_of_device(std::string_view device);

}  // namespace jouleprof::importers
