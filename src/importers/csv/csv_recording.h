// Imports CSV files: power samples, reads of an energy counter and a timeline of kernels
// (docs/formats.md has the columns).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "importers/builder.h"
#include "importers/csv/csv_file.h"
#include "model/activity/device_timeline.h"
#include "model/recording.h"

namespace jouleprof::importers {

struct CsvSources {
  // Empty: there is none. Each may be compressed with gzip.
  std::filesystem::path samples;
  std::filesystem::path counter;
  std::filesystem::path kernels;
  std::filesystem::path names;  // JSON: the kernels' names and the instant their times count from
  // "BEGIN:END": intervals in which nothing ran. Bare numbers are Unix seconds; with a unit ("7s")
  // they count from the first reading.
  std::vector<std::string> idle;
  std::string device_name;  // "NVIDIA H100 80GB HBM3"; its generation's traits are the sensors' own
  // What a sample is: "ring" (the driver's own stamped samples), "instant" or "average" (polled).
  std::string sampled = "ring";
  bool events = false;  // keep each kernel and not only its class's activity in bins
};

// One GPU ("gpu0") with its sensors and, where there are kernels, a trace. Host time begins at the
// first reading or kernel; clock points tie it to the wall clock. The work is the kernels' span, or
// all of the readings' where there are none.
//
// Errors: not_found, permission_denied for a file; invalid_argument when there is neither samples
// nor counter, or an option is wrong; corrupt, with file, line and column, for bad content;
// unavailable for a file without rows and when kernels and readings have no time in common.
Result<model::Recording> import_csv(const CsvSources& sources);

// --- A timeline of kernels as CSV, made into a trace; private to this folder ---

// The content of the JSON file of names.
struct CsvKernelNames {
  std::optional<std::int64_t> base_unix_ns;  // origin of the kernels' times; absent: 1970
  std::map<std::int64_t, std::string> names;
  bool given = false;
};
// Errors: as read_file; corrupt.
Result<CsvKernelNames> read_kernel_names(const std::filesystem::path& path);

class CsvKernels {
 public:
  // Reads the header and the first row. Errors: as CsvFile; unavailable when there is no row.
  static Result<CsvKernels> open(const std::filesystem::path& path, CsvKernelNames names);

  RealTime first() const { return first_; }

  // Reads all rows. One that cannot be right is left out: its launch counts as dropped. `origin` is
  // the wall time of host time zero.
  Result<model::Trace> read(RealTime origin, bool events);

  // After read(): the span that kernels ran in, and records that are no work of the GPU's.
  RealTime begin() const { return begin_; }
  RealTime end() const { return end_; }
  const std::map<std::string, std::uint64_t>& left_out() const { return left_out_; }
  const CsvFile& file() const { return file_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Row {
    RealTime begin{};
    RealTime end{};
    std::uint32_t kernel_class = 0;  // kNone: left out
    std::uint32_t stream = 0;
  };
  CsvKernels(CsvFile file, CsvKernelNames names)
      : file_(std::move(file)), names_(std::move(names)) {}
  Result<void> find_columns();
  Result<bool> next_row();
  void take_row();
  std::uint32_t class_of_row();
  std::uint32_t class_of_name(std::string_view name);

  CsvFile file_;
  CsvKernelNames names_;
  CsvColumn start_, duration_, stop_, id_, name_, stream_;
  model::Trace trace_;
  std::unordered_map<std::int64_t, std::uint32_t> by_id_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  Row row_;
  RealTime first_{};
  std::vector<std::string> warnings_;
  RealTime begin_{};
  RealTime end_{};
  std::map<std::string, std::uint64_t> left_out_;
  LaunchLimit limit_;
};

}  // namespace jouleprof::importers
