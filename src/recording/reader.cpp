#include "recording/reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recording/claim.h"
#include "recording/spool/spool_reader.h"
#include "recording/sqlite_file.h"
#include "recording/tables/rows.h"
#include "recording/tables/schema.h"
#include "recording/tables/table_rows.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

// Reads the tables of one open file into one recording.
class Reader {
 public:
  explicit Reader(const OpenFile& file) : db_(*file.db) {
    // The file may have grown a little since it was measured.
    const auto bytes = static_cast<std::int64_t>(file.bytes) + (1 << 20);
    inspection_.bytes_left = bytes;
    // A row of ours takes SQLite fewer steps than it has bytes; this is far beyond, and finite.
    steps_left_ = bytes;
    sqlite3_progress_handler(db_.getHandle(), kStepsAtOnce, &Reader::on_progress, this);
  }
  ~Reader() { sqlite3_progress_handler(db_.getHandle(), 0, nullptr, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // Invalid if there is a problem afterwards.
  model::Recording read() {
    for (const auto part :
         {&Reader::check_tables, &Reader::read_run, &Reader::read_domains, &Reader::check_parents,
          &Reader::read_sensors, &Reader::read_processes, &Reader::read_all_readings,
          &Reader::read_notes, &Reader::read_own_windows, &Reader::read_all_traces,
          &Reader::read_imported_windows, &Reader::read_all_remembered}) {
      if (inspection_.good()) (this->*part)();
    }
    return std::move(recording_);
  }

  const std::string& problem() const { return inspection_.problem; }

 private:
  static constexpr int kStepsAtOnce = 4096;
  static int on_progress(void* self) {
    return (static_cast<Reader*>(self)->steps_left_ -= kStepsAtOnce / 16) < 0;
  }

  Rows rows(std::string_view table) { return {db_, inspection_, table}; }
  template <class Record>
  std::vector<Record> all(std::string_view table) {
    return read_all<Record>(db_, inspection_, table, known_);
  }
  void complain(std::string what) { inspection_.problem = std::move(what); }

  // Views, virtual tables and computed columns in place of our tables could run code of the file's
  // author. Everything else in the file is ignored.
  void check_tables() {
    SQLite::Statement find(db_, "SELECT type, sql FROM sqlite_master WHERE name = ?");
    for (const Table& table : tables()) {
      find.bind(1, table.name);
      if (!find.executeStep()) return complain(fmt::format("it has no table {}", table.name));
      if (find.getColumn(0).getString() != "table" ||
          find.getColumn(1).getString() != table.create_statement()) {
        return complain(
            fmt::format("its table {} does not have the columns of its version", table.name));
      }
      find.reset();
    }
  }

  void read_run() {
    Rows run = rows("run");
    if (!run.next()) return complain("its table run is empty");
    run.integer(1, 1);
    recording_.run.tool_version = run.text();
    recording_.run.host = run.text();
    recording_.run.source = run.text();
    recording_.run.working_directory = run.text();
    recording_.run.pid = run.maybe(&Rows::small_integer);
    recording_.run.exit_status = run.maybe(&Rows::small_integer);
    recording_.run.work_begin = run.maybe(&Rows::host_time);
    recording_.run.work_end = run.maybe(&Rows::host_time);
    recording_.run.complete = run.flag();
    recording_.run.trace_folder = run.text_or_empty();
    for (Rows row = rows("identity"); row.next();) {
      row.integer(1, 1);
      recording_.run.boot_id = row.text_or_empty();
      recording_.run.user = row.text_or_empty();
      recording_.run.node_list = row.text_or_empty();
      fields(recording_.run.rank, RowReader(row));
    }
    for (Rows row = rows("open_window"); row.next();) {
      recording_.run.open_windows.push_back({row.text(), row.host_time(), row.small_integer()});
    }
    for (Rows argument = rows("command_argument"); argument.next();) {
      argument.integer();
      recording_.run.command.push_back(argument.text());
    }
    for (Rows point = rows("clock_point"); point.next();) {
      recording_.clock_points.push_back({point.host_time(), point.real_time(), point.duration()});
    }
  }

  void read_domains() {
    recording_.domains = all<model::Domain>("domain");
    read_levels(db_, inspection_, known_.domains, recording_.domains);
  }

  void check_parents() {
    std::unordered_map<model::DomainId, std::optional<model::DomainId>> parents;
    for (const auto& d : recording_.domains) parents[d.id] = d.parent;
    for (const auto& d : recording_.domains) {
      std::size_t depth = 0;
      for (auto parent = d.parent; parent; parent = parents[*parent]) {
        if (!parents.contains(*parent) || ++depth > kDeepestDomain) {
          return complain(
              fmt::format("domain {} has no proper parent", static_cast<std::uint32_t>(d.id)));
        }
      }
    }
  }

  void read_sensors() { recording_.sensors = all<model::Sensor>("sensor"); }

  void read_processes() { recording_.processes = all<model::Process>("process"); }

  void read_all_readings() {
    recording_.readings = read_readings(db_, inspection_, known_);
    recording_.process_readings = read_process_readings(db_, inspection_, known_);
  }

  void read_notes() {
    recording_.idle_spans = all<model::IdleSpan>("idle_span");
    recording_.warnings = all<model::Warning>("warning");
    for (Rows row = rows("overhead"); row.next();) {
      row.integer(1, 1);
      fields(recording_.overhead.emplace(), RowReader(row));
    }
  }

  void read_own_windows() { recording_.windows = read_windows(db_, inspection_, known_.domains); }

  void read_all_traces() { recording_.traces = read_traces(db_, inspection_); }

  void read_all_remembered() { recording_.remembered = read_remembered(db_, inspection_); }

  void read_imported_windows() {
    std::vector<model::ImportedWindow>& out = recording_.imported_windows;
    std::unordered_map<std::uint32_t, std::size_t> places;
    for (Rows row = rows("imported_window"); row.next();) {
      places[row.new_id<std::uint32_t>(imported_windows_)] = out.size();
      fields(out.emplace_back(), RowReader(row));
    }
    for (Rows row = rows("imported_window_energy"); row.next();) {
      const auto window = row.reference<std::uint32_t>(imported_windows_);
      model::ImportedWindow::DomainEnergy energy;
      fields(energy, RowReader(row, &known_));
      if (inspection_.good()) out[places[window]].energies.push_back(energy);
    }
    for (Rows row = rows("imported_window_label"); row.next();) {
      const auto window = row.reference<std::uint32_t>(imported_windows_);
      model::ImportedWindow::Label label;
      fields(label, RowReader(row));
      if (inspection_.good()) out[places[window]].labels.push_back(std::move(label));
    }
  }

  static constexpr std::size_t kDeepestDomain = 16;

  SQLite::Database& db_;
  Inspection inspection_;
  std::int64_t steps_left_ = 0;
  model::Recording recording_;
  KnownIds known_;
  Ids imported_windows_;
};

// One sink a trace: those of the recording, then those that are new.
class Rest final : public spool::SpoolConsumer {
 public:
  explicit Rest(std::vector<model::Trace>&& traces) {
    for (auto& trace : traces) sinks.emplace_back().trace = std::move(trace);
  }
  model::ActivitySink& process(const spool::SpoolProcess& process) override {
    model::Trace& trace = sinks.emplace_back().trace;
    static_cast<model::TracedProcess&>(trace) = process;
    return sinks.back();
  }
  void warn(std::string text) override { warnings.push_back(std::move(text)); }

  std::uint64_t activities() const {
    std::uint64_t sum = 0;
    for (const auto& sink : sinks) sum += sink.trace.status.activities;
    return sum;
  }

  std::deque<spool::TraceSink> sinks;  // which stay where they are
  std::vector<std::string> warnings;
};

fs::path find_folder(const fs::path& file, const fs::path& noted) {
  std::error_code err;
  if (fs::is_directory(noted, err)) return noted;
  const fs::path overlapped = fs::absolute(file, err).parent_path() / noted.filename();
  return fs::is_directory(overlapped, err) ? overlapped : fs::path();
}

HostTime last_word(const model::Recording& recording) {
  HostTime last = recording.run.work_begin.value_or(HostTime{});
  for (const auto& point : recording.clock_points) last = std::max(last, point.host);
  return last;
}

// Records that traced processes wrote after the tool was killed. Private to this folder.
// Adds them to the recording read from `file`, which was cut off, with a warning. Does nothing
// while the tool still runs. Looks for the spool in the folder that the recording names, then next
// to `file` for the same name. Changes nothing in it.
void take_left_over(const fs::path& file, model::Recording& recording) {
  if (recording.run.trace_folder.empty()) return;
  const auto warn = [&recording, at = last_word(recording)](std::string text) {
    recording.warnings.push_back({at, std::move(text)});
  };
  const fs::path folder = find_folder(file, recording.run.trace_folder);
  if (folder.empty()) {
    return warn(fmt::format(
        "the end of the trace is missing: the folder {} does not exist; put it back, or "
        "next to the recording",
        recording.run.trace_folder));
  }
  const auto lock = spool::FolderLock::of_visitor(folder);
  if (lock.busy()) return;
  Rest rest(std::move(recording.traces));
  const std::uint64_t before = rest.activities();
  spool::SpoolReader reader(folder);
  for (auto& sink : rest.sinks) reader.resume(model::Trace(sink.trace), sink);
  const auto polled = reader.poll(rest);
  recording.traces.clear();
  for (auto& sink : rest.sinks) recording.traces.push_back(std::move(sink.trace));
  for (auto& text : rest.warnings) warn(std::move(text));
  if (!polled) {
    warn(fmt::format("the end of the trace cannot be read: {}", polled.error().message));
  } else if (*polled) {
    warn(
        fmt::format("the tool was cut off before the programs ended: their later records ({} "
                    "launches) are read from {}; keep that folder next to the recording",
                    rest.activities() - before, folder.string()));
  }
}

}  // namespace

Result<model::Recording> read_recording(const std::filesystem::path& path) {
  auto file = open_recording(path);
  if (!file) return forward_error(file);
  try {
    Reader reader(*file);
    model::Recording recording = reader.read();
    if (reader.problem().empty()) {
      if (!recording.run.complete) take_left_over(path, recording);
      recording.run.being_written = !recording.run.complete && is_claimed(path);
      return recording;
    }
    return fail(Errc::kCorrupt, fmt::format("{} is damaged: {}", path.string(), reader.problem()));
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(read_error(path, e, file->db->getHandle()));
  } catch (const std::exception& e) {
    return fail(Errc::kUnavailable, fmt::format("cannot read {}: {}", path.string(), e.what()));
  }
}

}  // namespace jouleprof::recording
