// Which GPU each row of a log is of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "importers/device_log.h"

namespace jouleprof::importers {

struct GpuRow {
  Duration stamp{};
  std::optional<std::int64_t> index;
  std::string uuid;  // empty: the log has none
  std::string bus;
  std::vector<std::optional<double>> values;
  bool starts_section = false;
};

struct GpusOfRows {
  std::vector<LogDevice> devices;
  std::vector<std::size_t> device_of_row;
  std::string warning;  // where GPUs are numbered by their order; empty: by the log
};

// By index, else by uuid, else by bus id. Where the rows have none of them, by their place among
// the rows of one look, which follow each other much faster than looks do (`has_times`); without
// times all rows are of one GPU.
// Errors: corrupt when looks have different numbers of rows, so that they cannot be separated.
Result<GpusOfRows> gpus_of_rows(const std::vector<GpuRow>& rows, bool has_times);

}  // namespace jouleprof::importers
