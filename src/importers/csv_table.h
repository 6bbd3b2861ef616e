// A small CSV file with a header line, in memory. Big files: csv/csv_file.h.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/importer.h"
#include "importers/lines.h"

namespace jouleprof::importers {

// The header's names, trimmed; empty when `text` has no line. For recognising a format.
std::vector<std::string> csv_header(std::string_view text);

std::optional<std::size_t> find_column(const std::vector<std::string>& header,
                                       std::string_view name);

// The "N" of a name such as "gpuN_energy"; nothing for any other name.
std::optional<int> numbered_column(std::string_view name, std::string_view prefix,
                                   std::string_view suffix);

// A CSV field may carry its unit: "61 W", "pwr [W]", "Power (mW)".
struct WithUnit {
  std::string_view word;
  std::string_view unit;  // empty: none
};

WithUnit split_unit(std::string_view field);

// The rows of a file in memory, which must outlive it.
class CsvRows {
 public:
  explicit CsvRows(const SourceText& source);

  const std::vector<std::string>& header() const { return header_; }
  // Errors: corrupt when the header has no column of this name.
  Result<std::size_t> column(std::string_view name) const;
  tl::unexpected<Error> missing_column(std::string_view name) const;

  // Goes to the next row that is not blank; false at the end. A last line without a line end may be
  // cut off in the middle of a number: it is left out, and cut_off() holds the warning.
  bool next();
  std::string_view text() const { return lines_.text(); }
  const std::optional<std::string>& cut_off() const { return cut_off_; }

  // corrupt: "PATH, line N: MESSAGE", of the row; before the first row, of the header.
  tl::unexpected<Error> fail_at(std::string_view message) const;
  // Errors: corrupt when `fields` is not the number of the header's columns.
  Result<void> check_fields(std::size_t fields) const;

 private:
  const SourceText& source_;
  std::vector<std::string> header_;
  Lines lines_;
  std::optional<std::string> cut_off_;
};

}  // namespace jouleprof::importers
