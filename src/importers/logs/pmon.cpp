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
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/logs/dmon_lines.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

struct Row {
  Duration stamp{};
  std::int64_t gpu = 0;
  std::optional<std::int64_t> pid;
  std::optional<double> sm, fb;
  std::string command;
};

class Import {
 public:
  explicit Import(const SourceText& source) : source_(source), builder_("pmon") {}

  Result<model::Recording> run() {
    if (auto read = read_rows(); !read) return forward_error(read);
    if (rows_.empty()) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: no row of 'nvidia-smi pmon' in it", source_.path));
    }
    if (!has_times_) {
      return fail(Errc::kUnavailable,
                  fmt::format("{}: pmon shows no power, and without date and time its rows cannot "
                              "be placed among those of a power log; log with 'nvidia-smi pmon -o "
                              "DT' and 'nvidia-smi dmon -s puc -o DT', and import both",
                              source_.path));
    }
    add_readings();
    return std::move(builder_).finish_windows(source_.path);
  }

 private:
  Result<void> read_rows() {
    BadRows bad;
    for (Lines lines(source_.text); lines.next();) {
      const std::string_view line = trim(lines.text());
      if (line.empty()) continue;
      if (auto header = parse_dmon_header(line); header && header->is_pmon) {
        const bool had_times = std::exchange(
            has_times_, find_column(header->names, "date") && find_column(header->names, "time"));
        if (!names_.empty() && had_times != has_times_) {
          return fail_at(source_, lines.number(), kOtherTimes);
        }
        names_ = std::move(header->names);
        continue;
      }
      if (line.starts_with('#') || line.starts_with("Idx")) continue;  // units
      if (names_.empty()) {
        return fail_at(source_, lines.number(), "values without a header; log without 'noheader'");
      }
      Row row;
      if (bad.take(source_, lines, {}, builder_, [&] { return take_row(line, row); })) {
        rows_.push_back(std::move(row));
      }
    }
    for (std::string& text : bad.warnings()) builder_.warn(std::move(text));
    return bad.check(source_, rows_.size());
  }

  // Why the row is left out; nothing where it counts.
  std::optional<std::string> take_row(std::string_view line, Row& row) const {
    auto fields = dmon_cells(line);
    if (runs_into_next(fields)) return "it was cut off, and runs into the next row";
    join_cells(fields, names_, "command");  // with blanks or commas
    if (fields.size() != names_.size()) {
      return fmt::format("{} fields under a header of {} columns", fields.size(), names_.size());
    }
    const auto cell = [&](std::string_view name) {
      const auto place = find_column(names_, name);
      return place ? std::string_view(fields[*place]) : std::string_view();
    };
    const auto gpu = parse_integer(cell("gpu"));
    if (!gpu || *gpu < 0 || *gpu > 65535) return show(cell("gpu")) + " is no GPU index";
    row.gpu = *gpu;
    if (has_times_) {
      const auto date = parse_compact_date(cell("date"));
      const auto time = parse_time_of_day(cell("time"));
      if (!date || !time) return "no date and time";
      row.stamp = *date + *time;
    }
    if (cell("pid") != "-") {
      row.pid = parse_integer(cell("pid"));
      if (!row.pid || *row.pid <= 0 || *row.pid > INT32_MAX) {
        return show(cell("pid")) + " is no process";
      }
    }
    row.sm = parse_number(cell("sm"));
    row.fb = parse_number(cell("fb"));
    row.command = cell("command");
    return std::nullopt;
  }

  // Whether a whole row follows without a line end: with a second date and time, which the command
  // would take.
  bool runs_into_next(const Cells& fields) const {
    constexpr std::size_t kDate = 8;
    return has_times_ && importers::runs_into_next(fields, names_.size(), [&](std::size_t i) {
             const std::string_view date = fields[i];
             return date.size() >= kDate && parse_compact_date(date.substr(date.size() - kDate)) &&
                    parse_time_of_day(fields[i + 1]);
           });
  }

  void add_readings() {
    std::vector<Stamp> all, stamps;
    for (const Row& row : rows_) all.push_back({row.stamp, false});
    builder_.read_local_times({&all, 1});
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].stamp = all[i].at;
    for (const Row& row : rows_) {
      if (stamps.empty() || stamps.back().at != row.stamp) stamps.push_back({row.stamp, false});
    }
    const Layout layout = lay_out(stamps);
    std::size_t look = 0;
    for (const Row& row : rows_) {
      if (row.stamp != stamps[look].at) ++look;
      add_row(row, layout.times[look]);
    }
    builder_.set_clock(layout, utc_to_real);
    builder_.recording().run.work_begin = layout.times.front();
    builder_.recording().run.work_end = layout.times.back();
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
    model::Process& process = builder_.process(static_cast<pid_t>(*row.pid), at);
    process.in_tree = true;  // pmon lists what a reader asks for
    if (process.name == "(unknown)" && !row.command.empty()) process.name = row.command;
    model::GpuProcessReading reading;
    reading.process = process.id;
    reading.domain = domain->second;
    reading.at = at;
    if (row.sm && *row.sm >= 0 && *row.sm <= 100) reading.compute_utilisation = *row.sm / 100;
    if (row.fb && *row.fb >= 0 && *row.fb < 1e9) {
      reading.memory_bytes = static_cast<std::uint64_t>(*row.fb * *unit_scale("MB", "B"));
    }
    recording.process_readings.gpu_processes.push_back(reading);
  }

  const SourceText& source_;
  RecordingBuilder builder_;
  Cells names_;  // of the columns
  bool has_times_ = false;
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
