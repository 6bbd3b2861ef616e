// Rows as `nvidia-smi dmon` prints them, for programs that read its output.
//
// Columns, units, widths and the header that comes again every 44 rows are those of driver 590.
// One difference: with an interval below a second the time has fractions, which the unit row shows
// ("HH:MM:SS.mmm").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/snapshot.h"

namespace jouleprof::report {

struct DmonOptions {
  std::string select = "puc";  // -s: groups p u c v m e t, printed in this order
  std::string time = {};       // -o: "", "D", "T" or "DT"
  Duration interval = std::chrono::seconds(1);
};

class DmonTable {
 public:
  // Errors: invalid_argument for a letter that names no group or no stamp.
  static Result<DmonTable> create(const DmonOptions& options);

  // The two header lines.
  std::string header() const;

  // One line: integers, '-' for what is absent. Stamps are local time, as in the original.
  std::string row(RealTime time, const model::DomainSnapshot& gpu) const;

  // A line for each GPU, and the header before them where it is due. Other devices have no place in
  // this format and are left out.
  std::string rows(const model::Snapshot& snapshot);

 private:
  struct Column {
    std::string_view name;
    std::string_view unit;
    std::string_view figure;  // its name in report/snapshot.h; empty: no meter here reads it
    double scale;             // figure times scale is what is printed
  };
  DmonTable() = default;
  static std::vector<Column> group(char letter);

  std::vector<Column> columns_;
  bool date_ = false;
  bool clock_ = false;
  int decimals_ = 0;
  unsigned rows_since_header_ = 0;
  bool started_ = false;
};

}  // namespace jouleprof::report
