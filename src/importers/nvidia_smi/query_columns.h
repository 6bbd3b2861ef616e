// Columns of `nvidia-smi --query-gpu=... --format=csv`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "importers/device_log.h"

namespace jouleprof::importers {

// What a column says; its unit is the one that nvidia-smi uses.
struct QueryField {
  std::string_view name;  // as --query-gpu takes it
  std::string_view unit;
  model::SensorKind kind{};
  std::string_view sensor;
  double scale = 1;
};

struct QueryColumns {
  std::optional<std::size_t> time, index, uuid, bus;
  std::vector<const QueryField*> fields;  // by position; null: one of the above, or left out
  std::vector<std::string> left_out;      // names of columns that are not used
  std::string wrong_unit;                 // a column in another unit than nvidia-smi's

  std::size_t size() const { return fields.size(); }
  bool has_power() const;
};

// The columns that the header, or a list as --query-gpu takes it, names.
QueryColumns parse_query_columns(const std::vector<std::string>& names);

// Those of a log without header, where its first row leaves no doubt: a time, and one field in
// watts. All other fields are left out.
std::optional<QueryColumns> guess_query_columns(const std::vector<std::string>& row);

// "2026/08/17 22:35:54.844", also with '-'.
std::optional<Duration> parse_query_time(std::string_view text);

// A cell without a figure: "[N/A]", "N/A", "[Not Supported]", "ERR!", empty.
bool is_absent(std::string_view cell);

}  // namespace jouleprof::importers
