// Reads other tools' files into a recording.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/source_text.h"
#include "jouleprof/units.h"
#include "model/recording.h"
#include "model/wall_log.h"

namespace jouleprof::importers {

struct Format {
  std::string_view name;         // as given to --format
  std::string_view description;  // one line for --help
};

// All formats, in the order in which they are tried.
std::span<const Format> formats();

struct ImportOptions {
  std::string format = {};  // one of formats(); empty: recognise it from the content
  // The time between two rows of a log without time stamps (dmon); absent means one second.
  std::optional<Duration> interval = {};
  // The list that --query-gpu had, for a log of nvidia-smi without header.
  std::string columns = {};
  // The columns of any CSV file: DEVICE=NAME:UNIT of powers, where device and unit may be left out;
  // NAME:UNIT of the time; and the column with the name or number of each row's device. Not empty:
  // the files are read by these names (logs/csv_logs.cpp).
  std::vector<std::string> power_columns = {};
  std::string time_column = {};
  std::string device_column = {};
  // Product name of the GPUs; empty: as the log names them. It decides how far their sensors may be
  // off (model/device/sensor_table.h).
  std::string device_name = {};
  // dmon: the work is only the active rows (logs/dmon_lines.h), not the whole log.
  bool trim = false;
  // dmon: which block, from one, of a capture that holds several.
  std::optional<std::size_t> block = {};
};

// Reads the files as one recording. The content decides the format, never the file's name. Files of
// several formats, or of a format whose files hold a whole log each, are placed by their wall-clock
// times (combine()). A folder stands for those of its files that are recognised; the
// others are named in a warning.
//
// `run.source` is "import:FORMAT", or "import:FORMAT+FORMAT"; `run.tool_version` is left to the
// caller. Host time begins at zero; clock points tie it to the wall clock where the files do, and a
// recording without any has no known wall time. A pause in which the other tool was not recording
// is cut out of host time, so that no energy is counted for it: each piece has its own clock
// points, and a warning gives the time that was cut. A value that the other tool marks as missing
// is absent, with a ReadFailure where the sensor has other values. Rows that cannot be right are
// left out, and counted; a recording is complete also where a file ends within a row. Texts may be
// UTF-16, and may have a time in front of each line, as `ts` writes it.
//
// Errors: not_found, permission_denied for a file; invalid_argument when no format fits, or an
// unknown one is named; corrupt, with file and line, for bad content; unavailable when the files
// hold no energy and too few power readings (less than two) to have one, or when one of several
// files has no wall-clock times.
Result<model::Recording> import_files(const std::vector<std::filesystem::path>& files,
                                      const ImportOptions& options = {});

// --- One format's reader, and all of them ---

struct Importer {
  Format format;
  bool several_files;  // whether read() takes more than one
  // Whether `text` is, or was meant to be, of this format. Linear in the text at worst.
  bool (*recognises)(std::string_view text);
  Result<model::Recording> (*read)(std::span<const SourceText> sources,
                                   const ImportOptions& options);
  // Whether a text that is recognised only adds to others of the format: it has no power of its
  // own.
  bool (*only_adds)(std::string_view text) = nullptr;
};

// import_files for texts that are already in memory.
Result<model::Recording> import_texts(std::span<const SourceText> sources,
                                      const ImportOptions& options = {});

// --- Puts recordings of one experiment, each of another log, on one time line ---

struct ImportedPart {
  std::string path;  // of its first file, for messages
  model::Recording recording;
};

// Joins the parts by the wall clock. Domains of one device and kind are one; a sensor that two
// parts have is one as well. Pauses in which no log has a reading are cut out, as in a single log.
// A domain of all GPUs together contains the single ones. Warnings name their file. Errors:
// unavailable for a part without wall-clock times; corrupt where its clock goes back, or where two
// parts have readings of one sensor at the same time.
Result<model::Recording> combine(std::vector<ImportedPart> parts);

// Logs of meters at the power supply of a machine.
// Reads, as its content says:
// - the output of `wattmetre-read` for OmegaWatt meters: "#timestamp,#frame_is_ok,...,#activepowN";
// - the output of `ipmitool dcmi power reading`, again and again, each with a line before it that
//   has the time, or by the time of the BMC, which is taken as UTC;
// - lines of JSON with a time and Redfish's PowerConsumedWatts or PowerWatts.Reading;
// - a CSV file with a column of times and one of watts.
// Times: seconds or milliseconds since 1970, or ISO 8601, in UTC where no zone is given.
// `column`: of the power, with or without "#"; empty: the only one, or of several the only one that
// is not all zero. Rows without a value are left out; those that cannot be right, too, and counted.
// Errors: corrupt, with the line, where most rows cannot be right; invalid_argument where the
// column must be named; unavailable where there are fewer than two readings.
Result<model::WallLog> read_wall_log(std::string_view text, const std::string& file,
                                     const std::string& column = "");

}  // namespace jouleprof::importers
