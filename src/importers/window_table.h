// The reader of all tables of windows: a table of columns describes each tool's, hooks what its
// rows and the whole table mean.
//
// A row that does not fit its header or holds what cannot be is left out, and counted; so is a row
// with a time that stands in the file twice. A last row without a line end counts where it is
// whole.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/builder.h"
#include "importers/import.h"

namespace jouleprof::importers {

enum class TableRole {
  kName,    // of the window
  kText,    // for the hook
  kLabel,   // kept with the window under `label`
  kNumber,  // for the hook
  kStart,   // times
  kEnd,
  kDuration,
  kEnergy,
};

struct TableField {
  std::string_view name;  // '#' in it stands for the device's number
  TableRole role = TableRole::kText;
  bool is_needed = false;
  double scale = 1;                  // to seconds or joules
  std::string_view label = {};       // of kLabel; absent: the column's name
  std::string_view device = "gpu0";  // of kEnergy; '#' as in the name
  std::string_view product = {};
  std::string_view unit = {};  // of times that are numbers; empty: by their size
};

struct TableWindow {
  std::size_t line = 0;
  model::ImportedWindow window;
  std::optional<LogTime> start, end;
  std::optional<Duration> duration;
  std::map<std::string, double, std::less<>> numbers;  // by column
  std::map<std::string, std::string, std::less<>> texts;
};

class WindowTable;

struct TableTool {
  std::string_view format;
  std::string_view row;     // what a row is: "window", "run"
  std::string_view reason;  // why its devices have no power over time
  std::span<const TableField> fields = {};
  bool keeps_other_columns = false;  // as labels
  // Columns of a table without times that no two rows have the same of, so that equal rows are one.
  std::span<const std::string_view> keys = {};
  // The cells of a line with this many columns; null: CSV.
  std::vector<std::string> (*cells)(std::string_view line, std::size_t columns) = nullptr;
  // A row's last word: why it is left out.
  std::optional<std::string> (*check)(WindowTable& table, TableWindow& row) = nullptr;
  // The table's last word, once all rows are read: the windows that stay, and warnings.
  // Errors: unavailable where none does.
  Result<void> (*complete)(WindowTable& table) = nullptr;
  // What times with a date and no zone are: local ones, or what they count.
  bool times_are_local = false;
  RealTime (*calendar)(Duration) = nullptr;
};

class WindowTable {
 public:
  WindowTable(const TableTool& tool, const SourceText& source)
      : tool_(tool), builder_(std::string(tool.format)), source_(source) {}

  // Errors: corrupt, with the line; unavailable where there is no row.
  Result<model::Recording> import() &&;

  const SourceText& source() const { return source_; }
  std::vector<TableWindow>& windows() { return windows_; }
  RecordingBuilder& builder() { return builder_; }
  model::DomainId domain(const std::string& device, const std::string& product);
  bool has_column(std::string_view name) const;

 private:
  struct Column {
    const TableField* field = nullptr;
    std::string name;
    std::string device, product;  // of an energy
  };
  Result<void> read();
  void read_local_times();
  void lay_out();
  bool is_header_again(std::string_view line) const;
  Result<void> take_header(const std::vector<std::string>& names);
  std::optional<std::string> take_row(const std::vector<std::string>& cells, TableWindow& row);
  std::optional<std::string> read_cell(const Column& column, const std::string& cell,
                                       TableWindow& row);

  const TableTool& tool_;
  RecordingBuilder builder_;
  const SourceText& source_;
  std::vector<Column> columns_;
  std::map<std::string, model::DomainId> domains_;  // by device
  std::vector<TableWindow> windows_;
  std::set<std::string, std::less<>> lines_;  // of rows
  std::size_t repeated_ = 0;
  BadRows bad_;
  std::map<std::string, std::size_t> zeros_;  // of a column: energies of exactly 0
};

// Importer::read of a tool.
template <const TableTool& tool>
Result<model::Recording> read_table(std::span<const SourceText> sources, const ImportOptions&) {
  return WindowTable(tool, sources.front()).import();
}

}  // namespace jouleprof::importers
