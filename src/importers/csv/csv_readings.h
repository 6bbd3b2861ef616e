// Power samples and reads of an energy counter as CSV.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"

namespace jouleprof::importers {

struct CsvSample {
  RealTime at{};
  double watts = 0;
};

struct CsvCounterRead {
  RealTime before{};
  RealTime after{};
  Energy total;
};

struct CsvSamples {
  std::vector<CsvSample> rows;  // at least one, strictly in order of time
  std::uint64_t repeated = 0;   // left out: at the time of the one before
  std::optional<std::string> cut_off;
  std::vector<std::string> warnings;
};

struct CsvCounter {
  std::vector<CsvCounterRead> rows;  // at least one, in order of time
  Energy quantum;                    // the smallest step of the file's numbers
  std::optional<std::string> cut_off;
  std::vector<std::string> warnings;
};

// Errors: as GzipReader; corrupt, with line and column; unavailable when there is no row.
Result<CsvSamples> read_csv_samples(const std::filesystem::path& path);
Result<CsvCounter> read_csv_counter(const std::filesystem::path& path);

}  // namespace jouleprof::importers
