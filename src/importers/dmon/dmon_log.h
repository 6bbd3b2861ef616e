// Reads the output of `nvidia-smi dmon` as rows.
//
// A header line names the columns and may come again at any time, with other columns; a second
// header line has their units. Headers exist in three generations (temp / gtemp mtemp /
// jpg ofa ccpm) and in any order (-s); `-o` puts Date, Time or both in front; `--format csv` puts
// commas between. '-' is a value that the driver does not give.
//
// A file that begins with a dmon header is a log, and everything in it has to be dmon's. Any other
// text is a capture: only its dmon blocks count, each from a header to the next blank or foreign
// line. One of them is read: they may be of any times.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/importer.h"

namespace jouleprof::importers {

enum class DmonField {
  kPower,              // pwr, W
  kTemperature,        // gtemp or temp, C
  kMemoryTemperature,  // mtemp, C
  kSm,                 // sm, %
  kMemory,             // mem, %: of time, not of space
  kEncoder,            // enc, %
  kDecoder,            // dec, %
  kJpeg,               // jpg, %
  kOfa,                // ofa, %
  kMemoryClock,        // mclk, MHz
  kSmClock,            // pclk, MHz
  kFrameBuffer,        // fb, MB used
};
inline constexpr std::size_t kDmonFields = 12;

struct DmonRow {
  std::int64_t gpu = 0;
  std::optional<Duration> stamp;  // since 1970, or since midnight of the first row (-o T)
  bool starts_section = false;
  std::array<std::optional<double>, kDmonFields> values;  // in dmon's units

  std::optional<double> operator[](DmonField field) const {
    return values[static_cast<std::size_t>(field)];
  }
};

enum class DmonStamps { kNone, kTime, kDateTime };

struct DmonLog {
  std::vector<DmonRow> rows;
  DmonStamps stamps = DmonStamps::kNone;
  bool has_power_column = false;
  std::size_t pmon_rows = 0;  // of a capture; left out
  // The last line, when it was left out because it may have been cut off.
  std::optional<std::size_t> cut_off_line;
};

// Whether there is a dmon header in `text`, or rows that lack one.
bool is_dmon(std::string_view text);

// `block`: which one of a capture, from one; it must be given where there are several with rows.
// Errors: corrupt with the line: a row that does not fit its header or is no row, other units, rows
// without a header, pmon's rows, rows of single MIG instances; invalid_argument: several blocks and
// none was chosen, or one that is not there.
Result<DmonLog> read_dmon_log(const SourceText& source, std::optional<std::size_t> block = {});

}  // namespace jouleprof::importers
