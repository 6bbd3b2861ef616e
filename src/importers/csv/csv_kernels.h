// A timeline of kernels as CSV, made into a trace.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "importers/csv/csv_file.h"
#include "importers/launch_limit.h"
#include "model/activity/device_timeline.h"

namespace jouleprof::importers {

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
