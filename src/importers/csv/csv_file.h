// A big CSV file with a header line, read row by row; it may be compressed with gzip.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/gzip/gzip.h"
#include "base/result.h"
#include "importers/source_text.h"
#include "jouleprof/units.h"

namespace jouleprof::importers {

// A column's name in the header; it determines the unit.
struct ColumnName {
  std::string_view name;
  int decimals = 0;  // one unit of the name is 10^decimals of the value's own unit
};

// A column of a file; false where the header has none.
struct CsvColumn {
  std::optional<std::size_t> index = {};
  int decimals = 0;
  std::string name = {};

  explicit operator bool() const { return index.has_value(); }
};

class CsvFile {
 public:
  // Errors: as GzipReader; unavailable when there is no header line.
  static Result<CsvFile> open(const std::filesystem::path& path);

  // The one column that bears one of these names.
  CsvColumn column(std::span<const ColumnName> names);
  // Finds a column that may be missing.
  CsvColumn optional_column(std::span<const ColumnName> names);
  // What is wrong with the header as a whole.
  void fail_header(std::string_view message);
  // After the last column. Errors: corrupt, for the first of: a column that is missing (its names
  // are listed), or that the header has twice; fail_header(); a column that was not asked for.
  Result<void> check_header() const;

  // Goes to the next row that `take` takes; false at the end. Blank lines are passed over. A row
  // that has not as many fields as the header, or at which `take` called fail_at(), is left out and
  // counted. A last line without a line end counts where it is whole; else cut_off() is set.
  // Errors: as GzipReader; corrupt where `take` called fail_all_at().
  Result<bool> next(const std::function<void()>& take);
  // After the last row. Appends a warning of the rows that were left out. Errors: corrupt, for the
  // first of them, where more were left out than taken.
  Result<void> check_left_out(std::vector<std::string>& warnings) const;
  std::uint64_t left_out() const { return left_out_; }

  std::string_view field(const CsvColumn& column) const { return fields_[*column.index]; }
  // A field as a whole number of the value's own unit, rounded. Fails the row, with 0, where it is
  // none.
  std::int64_t integer(const CsvColumn& column);

  // The row cannot be right: "PATH, line N, column 'NAME': MESSAGE". The first message counts.
  void fail_at(const CsvColumn& column, std::string_view message);
  // fail_at() where the rows that follow would be no better.
  void fail_all_at(const CsvColumn& column, std::string_view message);
  bool failed() const { return error_.has_value(); }

  std::size_t line() const { return line_; }
  const std::optional<std::string>& cut_off() const { return cut_off_; }
  const std::string& path() const { return reader_.path(); }

 private:
  explicit CsvFile(GzipReader reader) : reader_(std::move(reader)) {}
  Result<void> read_start();
  Result<bool> next_row();
  Result<bool> next_line();
  Result<void> split_line();

  GzipReader reader_;
  std::string buffer_;
  std::size_t at_ = 0;
  bool at_end_ = false;
  std::string_view text_;  // within buffer_
  bool ended_ = false;
  std::size_t line_ = 0;
  std::uint64_t taken_ = 0;  // rows
  std::uint64_t left_out_ = 0;
  std::optional<Error> error_;  // of the header, then of the row
  std::optional<Error> first_left_out_;
  bool is_hopeless_ = false;
  std::vector<std::string> header_;
  std::vector<bool> asked_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> quoted_;
  LastLine last_;
  std::optional<std::string> cut_off_;
};

// The names of the columns of our own files (docs/formats.md): NAME_UNIT.
namespace csv {

inline constexpr std::int64_t kLastUnixNanosecond = kLastUnixTime.count();
inline constexpr Duration kLongestKernel = std::chrono::hours{1};

using TimeColumns = std::array<ColumnName, 4>;  // in nanoseconds
inline constexpr TimeColumns kTime{{{"t_ns", 0}, {"t_us", 3}, {"t_ms", 6}, {"t_s", 9}}};
inline constexpr TimeColumns kBefore{
    {{"t_before_ns", 0}, {"t_before_us", 3}, {"t_before_ms", 6}, {"t_before_s", 9}}};
inline constexpr TimeColumns kAfter{
    {{"t_after_ns", 0}, {"t_after_us", 3}, {"t_after_ms", 6}, {"t_after_s", 9}}};
inline constexpr TimeColumns kStart{
    {{"start_ns", 0}, {"start_us", 3}, {"start_ms", 6}, {"start_s", 9}}};
inline constexpr TimeColumns kDuration{
    {{"duration_ns", 0}, {"duration_us", 3}, {"duration_ms", 6}, {"duration_s", 9}}};
inline constexpr TimeColumns kEnd{{{"end_ns", 0}, {"end_us", 3}, {"end_ms", 6}, {"end_s", 9}}};

// In microwatts and microjoules.
inline constexpr std::array<ColumnName, 3> kPower{
    {{"power_mw", 3}, {"power_w", 6}, {"power_watts", 6}}};
inline constexpr std::array<ColumnName, 4> kEnergy{
    {{"energy_uj", 0}, {"energy_mj", 3}, {"energy_j", 6}, {"energy_joules", 6}}};

inline constexpr std::array<ColumnName, 1> kKernelId{{{"kernel_id", 0}}};
inline constexpr std::array<ColumnName, 1> kName{{{"name", 0}}};
inline constexpr std::array<ColumnName, 1> kStream{{{"stream", 0}}};

}  // namespace csv

}  // namespace jouleprof::importers
