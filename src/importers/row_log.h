// The reader of all logs of rows: a table of columns describes each tool's, a few hooks what else
// is particular to it.
//
// A row that does not fit its header, or has no time, no device or a value that is none, is left
// out and counted. A last row without a line end counts where it is whole. Values are converted by
// the units that the log states. Rows of one device that contradict each other are refused
// (one_value.h).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "importers/builder.h"
#include "importers/import.h"

namespace jouleprof::importers {

enum class LogRole {
  kValue,
  kStamp,   // the whole time
  kDate,    // 20261121, before a time of day
  kTime,    // of the day
  kIndex,   // of the device; a cell "GPU 3" too
  kUuid,    // names the device where there is no index
  kBus,     // the same
  kName,    // the product's name
  kDevice,  // a name of ours: "gpu0"
  kDomain,  // a word of ours: "gpu", "dram"
  kSensor,  // the name of the sensor, of a log with a row a sensor
  kProvenance,
  kGood,       // whether the tool calls the row valid
  kWorkBegin,  // of the recording, since 1970
  kWorkEnd,
};

// A column that a tool's logs may have.
struct LogField {
  std::string_view name;  // in lower case
  LogRole role = LogRole::kValue;
  std::string_view unit = {};  // meant where the log states none
  model::SensorKind kind = model::SensorKind::kGauge;
  std::string_view sensor = {};
  bool is_mean = false;  // of the last second
};

// A column of one log.
struct LogColumn {
  std::optional<LogRole> role = {};  // absent: left out
  std::string unit = {};             // meant where a cell states none
  std::string device = {};           // of a log with a column a device
  std::size_t sensor = 0;            // of a value
};

struct LogDevice {
  model::DomainKind kind = model::DomainKind::kGpu;
  std::string device;
  std::string name;
  std::string uuid = {};
};

struct LogSensor {
  model::SensorKind kind{};
  std::string name;
  bool is_mean = false;
};

struct LogRow {
  std::optional<LogTime> time;
  Duration stamp{};
  std::size_t device = 0;
  std::size_t line = 0;
  std::string uuid;                                                   // or bus id, as it is named
  std::size_t product = 0;                                            // of products_
  std::vector<std::pair<std::size_t, std::optional<double>>> values;  // sensor, in its SI unit
  bool begins = false;                                                // a header stands before it
  bool starts_section = false;  // the tool was not recording just before
  model::Provenance provenance = model::Provenance::kMeasured;
};

using Cells = std::vector<std::string>;

struct LogTool {
  std::string_view format;       // "dmon"
  std::string_view name;         // who writes such logs, for messages
  std::string_view advice = {};  // how to log power with it
  std::span<const LogField> fields = {};
  Cells (*cells)(std::string_view line) = csv_cells;
  // Whether a line may be a header. Null: the first line is it, and no other.
  bool (*is_header)(std::string_view line) = nullptr;
  bool (*is_units)(const Cells& cells) = nullptr;       // of the columns above
  bool (*is_message)(std::string_view line) = nullptr;  // among the rows: counted
  // A row's cells, where they are not one a column as split.
  void (*mend)(Cells& cells, const Cells& header) = nullptr;
  std::string_view device = "gpu";  // what stands before a device's number
  bool has_few_units = false;       // of the columns, those of powers and energies among them
  bool has_row_a_sensor = false;    // of a device, and not one for all
  bool numbers_by_look = false;     // rows without a device: by their place in a look
  bool times_are_utc = false;       // those without a zone
  bool headers_begin_sections = false;
  bool one_row_a_second = false;  // at most, of a device
  bool is_polled_mean = false;    // a mean of the last second, which the next row may overlap
  // Counters are read as seldom as their energy allows, and count meanwhile: no time is cut out of
  // a log that has nothing else.
  bool reads_counters_seldom = false;
};

// A cell without a figure: "[N/A]", "N/A", "-", "[Not Supported]", "ERR!", empty.
bool is_absent(std::string_view cell);
// Joins the cells of the one column whose text may have blanks, where there are more cells than
// columns.
void join_cells(Cells& cells, const Cells& header, std::string_view column);
// What one unit is of the SI unit, both of one quantity: "mW" of "W" is 0.001.
std::optional<double> unit_scale(std::string_view unit, std::string_view of);

class RowLog {
 public:
  RowLog(const LogTool& tool, const ImportOptions& options);

  // Reads one file. `device`: of its rows, where they say none.
  // Errors: corrupt, with the line.
  Result<void> read(const SourceText& source, const std::string& device = {});
  // Puts the rows into a recording. Errors: corrupt where rows contradict each other; unavailable
  // where there is no row, or no power.
  Result<model::Recording> finish() &&;

  // For logs whose lines are no cells of columns.
  std::size_t device(const std::string& key, LogDevice device);
  std::size_t sensor(LogSensor sensor);
  void add(LogRow row) { rows_.push_back(std::move(row)); }
  BadRows& bad() { return bad_; }
  void set_source(const SourceText& source) { source_ = &source; }

  const std::vector<LogRow>& rows() const { return rows_; }
  // Values of a row; nothing where it has none.
  std::optional<double> value(const LogRow& row, std::string_view sensor) const;
  std::optional<double> power(const LogRow& row) const;
  RecordingBuilder& builder() { return builder_; }

  // What a tool says of its whole log: called with the row at which each round over the devices
  // begins, and the rounds' times.
  std::function<void(std::span<const std::size_t> rounds, const Layout& layout)> on_rounds;
  // Which columns there are, where the header does not decide it by the tool's fields alone.
  std::function<std::optional<LogColumn>(std::string_view name)> on_column;
  std::string note_of_elapsed;  // where times are numbers that do not count from 1970
  std::string note_of_size;     // where their size alone says in which unit they do
  // Gives the columns of a log without header by its first row. Errors: why they cannot be known.
  std::function<Result<Cells>(const Cells& row)> on_missing_header;

 private:
  struct Keys;

  tl::unexpected<Error> error(std::string_view message) const;
  bool has_header() const { return !columns_.empty(); }
  Result<void> set_header(const Cells& names);
  Result<void> take_units(const Cells& cells);
  Result<bool> take_line(const Lines& lines);
  std::optional<std::string> take_row(const Cells& cells);
  std::optional<std::string> read_cell(const LogColumn& column, const std::string& cell, Keys& keys,
                                       LogRow& row);
  std::size_t device_of(Keys& keys);
  Result<void> name_by_look();
  void separate_uuids();
  Result<void> name_products();
  Result<void> make_stamps();
  Result<void> check_interval() const;
  void read_local_times();
  void turn_newest_first();
  void leave_out_far_times();
  void put_late_rows_in_place();
  void leave_out_repeated_rows();
  Result<void> check_one_value();
  std::optional<std::string> adjacent_device() const;
  void check_repeated_rows();
  bool devices_go_back() const;
  Layout add_rounds();
  void warn_of_rows();

  const LogTool& tool_;
  const ImportOptions& options_;
  RecordingBuilder builder_;
  const SourceText* source_ = nullptr;
  std::string file_device_;
  std::size_t line_ = 0;
  Cells header_;
  std::vector<LogColumn> columns_;
  std::vector<std::size_t> reading_order_;  // of columns: that of the tool's fields
  std::vector<LogSensor> sensors_;
  std::vector<LogDevice> devices_;
  std::map<std::string, std::size_t> places_;  // of devices, by what names them
  std::vector<std::string> products_{""};      // names in rows; the first: none
  std::map<std::size_t, std::map<std::string, std::size_t>> uuids_;  // of an index: rows of each
  std::vector<LogRow> rows_;
  bool after_header_ = false;
  bool has_keys_ = false;
  std::size_t files_ = 0;
  HostTime last_at_{};  // of a row
  std::optional<RealTime> work_begin_, work_end_;
  std::size_t messages_ = 0;
  std::map<std::string, std::size_t> other_entities_;
  std::vector<std::string> left_out_;
  BadRows bad_;
  LogTime::Kind times_ = LogTime::Kind::kCalendar;
  bool has_times_ = false;
  bool counts_by_size_ = false;  // a time, in no known unit
};

}  // namespace jouleprof::importers
