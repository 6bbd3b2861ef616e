// A big CSV file with a header line, read row by row; it may be compressed with gzip.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/gzip/gzip.h"
#include "base/result.h"
#include "importers/source_text.h"

namespace jouleprof::importers {

// What a column holds. Its name in the header is `name` and one of the units, which it determines.
struct CsvQuantity {
  struct Unit {
    std::string_view suffix;
    int decimals = 0;  // one unit is 10^decimals of the value's own unit
  };
  std::string_view name;
  std::span<const Unit> units;
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

  // The one column of the quantity.
  CsvColumn column(const CsvQuantity& quantity);
  // Finds a column that may be missing.
  CsvColumn optional_column(const CsvQuantity& quantity);
  // What is wrong with the header as a whole.
  void fail_header(std::string_view message);
  // After the last column. Errors: corrupt, for the first of: a column that is missing (its names
  // are listed), or that the header has twice; fail_header(); a column that was not asked for.
  Result<void> check_header() const;

  // Calls `take` at each row; what it did not take is left out and counted: rows that have not as
  // many fields as the header, or at which it called fail_at(). Blank lines are passed over. A last
  // line without a line end counts where it is whole. Returns warnings of what was left out.
  // Errors: as GzipReader; corrupt where `take` called fail_all_at(), and, for the first of the
  // rows that were left out, where these are more than the others; unavailable without any row.
  Result<std::vector<std::string>> each_row(const std::function<void()>& take);
  std::uint64_t left_out() const { return left_out_; }
  bool is_cut_off() const { return is_cut_off_; }

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
  const std::string& path() const { return reader_.path(); }

 private:
  explicit CsvFile(GzipReader reader) : reader_(std::move(reader)) {}
  Result<bool> fill();  // more text behind what is there; false at the end
  Result<void> read_start();
  Result<bool> next_line();
  Result<void> split_line();

  GzipReader reader_;
  std::string buffer_;
  std::size_t at_ = 0;
  bool at_end_ = false;
  std::string_view text_;  // within buffer_
  bool ended_ = false;
  std::size_t line_ = 0;
  std::uint64_t left_out_ = 0;
  bool is_cut_off_ = false;
  std::optional<Error> error_;  // of the header, then of the row
  bool is_hopeless_ = false;
  std::vector<std::string> header_;
  std::vector<bool> asked_;
  std::vector<std::string_view> fields_;
  std::vector<std::string> quoted_;
  LastLine last_;
};

// The columns of our own files (docs/formats.md).
namespace csv {

inline constexpr std::array<CsvQuantity::Unit, 4> kTimeUnits{
    // of nanoseconds
    {{"_ns", 0}, {"_us", 3}, {"_ms", 6}, {"_s", 9}}};
inline constexpr std::array<CsvQuantity::Unit, 3> kPowerUnits{
    // of microwatts
    {{"_mw", 3}, {"_w", 6}, {"_watts", 6}}};
inline constexpr std::array<CsvQuantity::Unit, 4> kEnergyUnits{
    // of microjoules
    {{"_uj", 0}, {"_mj", 3}, {"_j", 6}, {"_joules", 6}}};
inline constexpr std::array<CsvQuantity::Unit, 1> kNoUnit{};

inline constexpr CsvQuantity kTime{"t", kTimeUnits};
inline constexpr CsvQuantity kBefore{"t_before", kTimeUnits};
inline constexpr CsvQuantity kAfter{"t_after", kTimeUnits};
inline constexpr CsvQuantity kPower{"power", kPowerUnits};
inline constexpr CsvQuantity kEnergy{"energy", kEnergyUnits};
inline constexpr CsvQuantity kStart{"start", kTimeUnits};
inline constexpr CsvQuantity kDuration{"duration", kTimeUnits};
inline constexpr CsvQuantity kEnd{"end", kTimeUnits};
inline constexpr CsvQuantity kKernelId{"kernel_id", kNoUnit};
inline constexpr CsvQuantity kName{"name", kNoUnit};
inline constexpr CsvQuantity kStream{"stream", kNoUnit};

}  // namespace csv

}  // namespace jouleprof::importers
