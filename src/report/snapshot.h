// What outputs show of a snapshot: which domains, and which figures by which names; and its outputs
// as text: one line, a table, the rows of nvidia-smi dmon.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/snapshot.h"

namespace jouleprof::report {

// The names of all figures but the energy, in the order of the output's columns.
std::span<const std::string_view> snapshot_figures();

// A figure by its name, in the unit of the name; absent where it is not known.
std::optional<double> figure_of(const model::DomainSnapshot& domain, std::string_view name);

// What limits a GPU's clocks, in the words of model::kClockReasons; absent where it is not known.
std::optional<std::vector<std::string_view>> clock_limits_of(const model::DomainSnapshot& domain);

// The domains that are rows of the monitor: those with a sensor that are not within another domain.
std::vector<const model::DomainSnapshot*> rows_of(const model::Snapshot& snapshot);

// One line of status for a terminal, written over itself while a command runs.
// "1 min 23 s  gpu0 312.4 W  package-0 81.0 W  12.34 kJ": at most `width` columns, no line end, no
// control character. Shows the devices that the command can see; those that do not fit are counted
// ("+3 more"), and no figure is cut. The energy is the sum over all of them: left out where one
// with a power has none, "at least" where one has no power. Simulated and estimated are marked.
std::string live_line(const model::Snapshot& snapshot, int width);

// --- The monitor's table for people ---

// `header` and rows have the same columns; a row a device.
std::string monitor_table_header();
std::string monitor_table_rows(const model::Snapshot& snapshot);

// --- Rows as `nvidia-smi dmon` prints them ---

struct DmonOptions {
  std::string select = "puc";  // -s: groups p u c v m e t, printed in this order
  std::string time = {};       // -o: "", "D", "T" or "DT"
  Duration interval = std::chrono::seconds(1);
};

// For programs that read its output. Columns, units, widths and the header that comes again every
// 44 rows are those of driver 590. One difference: with an interval below a second the time has
// fractions, which the unit row shows ("HH:MM:SS.mmm").
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
    std::string_view figure;  // its name in as figure_of() takes it; empty: no meter here reads it
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
