// A sensor has one value at a time: finds rows of one device that contradict each other.
//
// Several loggers may write into one file: one on each machine of a job, or one for each board
// under the index 0. As one curve their rows give the energy of one board.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "importers/builder.h"
#include "jouleprof/units.h"

namespace jouleprof::importers {

// The rows of one device, in the file's order.
struct DeviceRows {
  struct Column {
    std::string name;
    // Whether a device's value cannot alternate from row to row: temperature, memory, a limit.
    bool slow = false;
    bool counts = false;              // an energy counter: it only rises
    std::vector<double> values = {};  // of each row; NaN where it has none
  };
  std::string device;
  std::vector<Duration> stamps;    // empty: the log has none
  std::vector<std::size_t> lines;  // in the file
  std::vector<bool> begins;        // whether a header stands before the row
  std::vector<Column> columns;     // the first one is the power, where there is one
  bool one_row_a_second = false;   // the tool never writes more
};

struct Contradiction {
  std::string text;
  bool is_certain = false;  // else the load may alternate as fast as the rows come
};

// Rows contradict each other where
// - a counter falls and rises again and again;
// - the stamps go back over a time that has rows, or several rows come in each period, and the
//   values are not those of one sensor: then neighbours would agree better than rows of successive
//   periods;
// - the values of successive rows alternate between levels that each stay constant.
// Not: a clock that was set, a log that stands in the file twice, and rows of one sensor by two
// loggers.
std::optional<Contradiction> find_contradiction(const DeviceRows& rows);

// The rows to use, in the order of time: without repetitions of a row, and sorted where two loggers
// wrote rows of one sensor. Indices into `rows`. Warns of a contradiction that is not certain.
// Errors: corrupt, of one that is.
Result<std::vector<std::size_t>> rows_of_one_value(const DeviceRows& rows, const std::string& path,
                                                   RecordingBuilder& builder);

}  // namespace jouleprof::importers
