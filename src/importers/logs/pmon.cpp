// What `nvidia-smi pmon -o DT` prints: the use of GPUs by processes. It has no power, and is
// imported together with a log that has.
//
//   #Date  Time  gpu  pid  type  sm  mem  enc  dec  jpg  ofa  fb  ccpm  command
//
// '-' is what the driver does not give; a row of a GPU without processes has '-' for the pid. The
// last column may have blanks.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/logs/dmon_lines.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

constexpr double kMebibyte = 1024.0 * 1024.0;

struct Columns {
  std::optional<std::size_t> date, time, gpu, pid, sm, fb, command;
  std::size_t count = 0;
};

Columns parse_columns(std::string_view line) {
  Columns columns;
  const auto header = parse_dmon_header(line);
  columns.count = header->names.size();
  const auto place = [&](std::string_view name) { return find_column(header->names, name); };
  columns.date = place("date");
  columns.time = place("time");
  columns.gpu = place("gpu");
  columns.pid = place("pid");
  columns.sm = place("sm");
  columns.fb = place("fb");
  columns.command = place("command");
  return columns;
}

struct Row {
  Duration stamp{};
  std::int64_t gpu = 0;
  std::optional<std::int64_t> pid;
  std::optional<double> sm, fb;
  std::string command;
};

class Import {
 public:
  explicit Import(const SourceText& source)
      : source_(source), lines_(source.text), builder_("pmon") {}

  Result<model::Recording> run() {
    if (auto read = read_rows(); !read) return forward_error(read);
    if (rows_.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: no row of 'nvidia-smi pmon' in it", source_.path));
    }
    if (!columns_.date || !columns_.time) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: pmon shows no power, and without date and time its rows cannot "
                              "be placed among those of a power log; log with 'nvidia-smi pmon -o "
                              "DT' and 'nvidia-smi dmon -s puc -o DT', and import both",
                              source_.path));
    }
    add_readings();
    return std::move(builder_).take();
  }

 private:
  Result<void> read_rows() {
    BadRows bad;
    while (lines_.next()) {
      const std::string_view line = trim(lines_.text());
      if (line.empty()) continue;
      if (const auto header = parse_dmon_header(line); header && header->is_pmon) {
        columns_ = parse_columns(line);
        continue;
      }
      if (line.starts_with('#') || line.starts_with("Idx")) continue;  // units
      if (columns_.count == 0) {
        return fail_at(source_, lines_.number(), "values without a header; log without 'noheader'");
      }
      Row row;
      if (bad.take(source_, lines_, {}, builder_, [&] { return take_row(line, row); })) {
        rows_.push_back(std::move(row));
      }
    }
    for (std::string& text : bad.warnings()) builder_.warn(std::move(text));
    return bad.check(source_, rows_.size());
  }

  // Why the row is left out; nothing where it counts.
  std::optional<std::string> take_row(std::string_view line, Row& row) const {
    auto fields = dmon_cells(line);
    if (columns_.command && fields.size() > columns_.count) {  // a command with blanks or commas
      for (std::size_t i = *columns_.command + 1; i < fields.size(); ++i) {
        fields[*columns_.command] += ' ' + fields[i];
      }
      fields.resize(columns_.count);
    }
    if (fields.size() != columns_.count) {
      return fmt::format("{} fields under a header of {} columns", fields.size(), columns_.count);
    }
    const auto gpu = parse_integer(fields[*columns_.gpu]);
    if (!gpu || *gpu < 0 || *gpu > 65535) {
      return fmt::format("{} is no GPU index", show(fields[*columns_.gpu]));
    }
    row.gpu = *gpu;
    if (columns_.date && columns_.time) {
      const auto date = parse_compact_date(fields[*columns_.date]);
      const auto time = parse_time_of_day(fields[*columns_.time]);
      if (!date || !time) return "no date and time";
      row.stamp = *date + *time;
    }
    if (fields[*columns_.pid] != "-") {
      row.pid = parse_integer(fields[*columns_.pid]);
      if (!row.pid || *row.pid <= 0 || *row.pid > INT32_MAX) {
        return fmt::format("{} is no process", show(fields[*columns_.pid]));
      }
    }
    if (columns_.sm) row.sm = parse_number(fields[*columns_.sm]);
    if (columns_.fb) row.fb = parse_number(fields[*columns_.fb]);
    if (columns_.command) row.command = fields[*columns_.command];
    return std::nullopt;
  }

  void add_readings() {
    std::vector<Stamp> stamps;
    for (const Row& row : rows_) {
      if (stamps.empty() || stamps.back().at != row.stamp) stamps.push_back({row.stamp, false});
    }
    const Layout layout = lay_out(stamps);
    std::size_t look = 0;
    for (const Row& row : rows_) {
      if (row.stamp != stamps[look].at) ++look;
      add_row(row, layout.times[look]);
    }
    builder_.set_clock(layout, local_to_real);
    builder_.recording().run.work_begin = layout.times.front();
    builder_.recording().run.work_end = layout.times.back();
    builder_.warn("the log's time stamps are local time, read in this machine's time zone");
  }

  void add_row(const Row& row, HostTime at) {
    const auto [domain, is_new_gpu] = domains_.try_emplace(row.gpu);
    if (is_new_gpu) {
      domain->second = builder_.add_domain(model::DomainKind::kGpu, fmt::format("gpu{}", row.gpu),
                                           fmt::format("GPU {}", row.gpu));
      builder_.domain(domain->second).unavailable_reason = "pmon shows no power";
    }
    if (!row.pid) return;
    auto& recording = builder_.recording();
    const std::size_t known = recording.processes.size();
    model::Process& process = builder_.process(static_cast<pid_t>(*row.pid), at);
    process.in_tree = true;  // pmon lists what a reader asks for
    if (recording.processes.size() > known && !row.command.empty()) process.name = row.command;
    model::GpuProcessReading reading;
    reading.process = process.id;
    reading.domain = domain->second;
    reading.at = at;
    if (row.sm && *row.sm >= 0 && *row.sm <= 100) reading.compute_utilisation = *row.sm / 100;
    if (row.fb && *row.fb >= 0 && *row.fb < 1e9) {
      reading.memory_bytes = static_cast<std::uint64_t>(*row.fb * kMebibyte);
    }
    recording.process_readings.gpu_processes.push_back(reading);
  }

  const SourceText& source_;
  Lines lines_;
  RecordingBuilder builder_;
  Columns columns_;
  std::vector<Row> rows_;
  std::map<std::int64_t, model::DomainId> domains_;
};

// A log of pmon begins with its header: a capture that has dmon's rows, too, is dmon's.
bool recognises_pmon(std::string_view text) {
  for (Lines lines(text); lines.next();) {
    const std::string_view line = trim(lines.text());
    if (line.empty()) continue;
    const auto header = parse_dmon_header(line);
    return header && header->is_pmon;
  }
  return false;
}

Result<model::Recording> read_pmon(std::span<const SourceText> sources, const ImportOptions&) {
  return Import(sources.front()).run();
}

}  // namespace

extern const Importer kPmonImporter{
    {"pmon", "what 'nvidia-smi pmon -o DT' prints, together with a log of power"},
    false,
    recognises_pmon,
    read_pmon};

}  // namespace jouleprof::importers
