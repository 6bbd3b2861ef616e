#include "recording/writer.h"

#include <SQLiteCpp/Transaction.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "recording/sqlite_file.h"
#include "recording/tables/schema.h"
#include "recording/tables/table_rows.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceMilliseconds = 2000;

void execute(SQLite::Statement& statement) {
  statement.exec();
  statement.reset();
}

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void store_all(Insert& insert, const std::vector<model::RememberedKernel>& kernels) {
  for (const auto& kernel : kernels) {
    if (!is_storable(kernel)) continue;
    add_columns(insert, kernel);
    insert.store();
  }
}

// All but the run and the traces, of a batch or a recording.
template <class Parts>
Result<void> write_parts(Writer& writer, const Parts& parts) {
  Result<void> done;
  const auto add_all = [&](const auto& items) {
    for (const auto& item : items) {
      if (done) done = writer.add(item);
    }
  };
  add_all(parts.clock_points);
  add_all(parts.domains);
  add_all(parts.sensors);
  add_all(parts.idle_spans);
  add_all(parts.processes);
  add_all(parts.warnings);
  if (done && parts.overhead) done = writer.set_overhead(*parts.overhead);
  if (done) done = writer.append(parts.readings);
  if (done) done = writer.append(parts.process_readings);
  if (done) done = writer.append(parts.windows);
  return done;
}

}  // namespace

struct Writer::Impl {
  fs::path path;
  std::optional<Claim> claim;  // none once closed
  // Open since before the database: a program that closed it has closed SQLite's descriptors, too.
  OwnDescriptor witness{::open("/", O_PATH | O_CLOEXEC)};
  std::unique_ptr<SQLite::Database> db;  // none once closed
  std::unique_ptr<Statements> statements;
  bool in_transaction = false;
  std::int64_t imported_windows = 0;
  std::optional<Error> failure;

  // Does `change` within a transaction. After the first failure nothing is done any more.
  template <class Change>
  Result<void> attempt(Change&& change) {
    stop_if_cut_off();
    if (failure) return tl::unexpected(*failure);
    try {
      if (!in_transaction) execute(statements->begin);
      in_transaction = true;
      change(*statements);
      return {};
    } catch (const SQLite::Exception& e) {
      return give_up(sqlite_error("write " + path.string(), e, db->getHandle()));
    } catch (const std::exception& e) {
      return give_up(
          {Errc::kUnavailable, fmt::format("cannot write {}: {}", path.string(), e.what())});
    }
  }

  // SQLite would write into the program's files that now have its descriptors' numbers, and close
  // them: it is left as it is, for good.
  void stop_if_cut_off() {
    if (db == nullptr || witness.get() >= 0) return;
    static std::mutex mutex;
    static auto& left = *new std::vector<std::pair<decltype(db), decltype(statements)>>;
    const std::lock_guard lock(mutex);
    left.emplace_back(std::move(db), std::move(statements));
    failure = {Errc::kUnavailable,
               fmt::format("cannot write {}: this program closed all descriptors, those of the "
                           "recording too; open the monitor after that",
                           path.string())};
  }

  Result<void> give_up(Error error) {
    sqlite3_exec(db->getHandle(), "ROLLBACK", nullptr, nullptr, nullptr);
    in_transaction = false;
    failure = error;
    return tl::unexpected(std::move(error));
  }

  Result<void> commit(bool may_wait) {
    stop_if_cut_off();
    if (failure) return tl::unexpected(*failure);
    if (!in_transaction) return {};
    try {
      execute(statements->commit);
      in_transaction = false;
      return {};
    } catch (const SQLite::Exception& e) {
      // Only with a rollback journal, during a long read. The transaction stays open.
      if (e.getErrorCode() == SQLITE_BUSY && may_wait) {
        statements->commit.tryReset();
        return {};
      }
      return give_up(sqlite_error("write " + path.string(), e, db->getHandle()));
    }
  }

  // Ends the write-ahead log, for which no other process may have the file open.
  Result<void> leave_single_file() {
    statements.reset();
    for (int patience = 100;; --patience) {
      try {
        db->execAndGet("PRAGMA journal_mode = DELETE");
        db.reset();
        return {};
      } catch (const SQLite::Exception& e) {
        if (e.getErrorCode() != SQLITE_BUSY) {
          return tl::unexpected(sqlite_error("finish " + path.string(), e, db->getHandle()));
        }
        if (patience == 0) {
          return fail(Errc::kUnavailable,
                      fmt::format("{} is complete, but open in another program: keep its files "
                                  "with -wal and -shm next to it",
                                  path.string()));
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  }

  void release() {
    statements.reset();
    db.reset();
    claim.reset();
    if (!failure) {
      failure = {Errc::kInternal, fmt::format("{} was finished already", path.string())};
    }
  }
};

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;

Writer& Writer::operator=(Writer&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

Writer::~Writer() {
  if (impl_ && impl_->db) {
    (void)impl_->commit(false);
    impl_->release();
  }
}

Result<Writer> Writer::create(const fs::path& path, const WriterOptions& options) {
  auto claim = Claim::take(path, options.overwrite);
  if (!claim) return forward_error(claim);
  return create(std::move(*claim));
}

Result<Writer> Writer::create(Claim claim) {
  auto impl = std::make_unique<Impl>();
  impl->path = claim.path();
  auto db = create_database(claim);
  if (!db) return forward_error(db);
  impl->claim.emplace(std::move(claim));
  impl->db = std::move(*db);
  try {
    impl->statements = std::make_unique<Statements>(*impl->db);
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(sqlite_error("write " + impl->path.string(), e, impl->db->getHandle()));
  }
  return Writer(std::move(impl));
}

Result<void> Writer::set_run(const model::RunInfo& run) {
  return impl_->attempt([&](Statements& s) {
    s.run(1, run.tool_version, run.host, run.source, run.working_directory, run.pid,
          run.exit_status, run.work_begin, run.work_end, false, text_or_null(run.trace_folder));
    const std::array texts{text_or_null(run.boot_id), text_or_null(run.user),
                           text_or_null(run.node_list)};
    s.identity.add(1);
    for (const auto& text : texts) s.identity.add(text);
    fields(run.rank, RowWriter(s.identity));
    s.identity.store();
    execute(s.forget_command);
    std::int64_t position = 0;
    for (const auto& argument : run.command) s.command_argument(position++, argument);
    execute(s.forget_open_windows);
    for (const auto& window : run.open_windows) {
      s.open_window(window.name, window.begin, window.process);
    }
  });
}

Result<void> Writer::add(const ClockPoint& point) {
  return impl_->attempt(
      [&](Statements& s) { s.clock_point(point.host, point.real, point.suspended); });
}

Result<void> Writer::add(const model::Domain& d) {
  return impl_->attempt([&](Statements& s) {
    store(s.domain, d);
    s.levels.replace(d);
  });
}

Result<void> Writer::add(const model::Sensor& sensor) {
  return impl_->attempt([&](Statements& s) { store(s.sensor, sensor); });
}

Result<void> Writer::add(const model::Process& process) {
  return impl_->attempt([&](Statements& s) { store(s.process, process); });
}

Result<void> Writer::add(const model::IdleSpan& span) {
  return impl_->attempt([&](Statements& s) { store(s.idle_span, span); });
}

Result<void> Writer::add(const model::Warning& warning) {
  return impl_->attempt([&](Statements& s) { store(s.warning, warning); });
}

Result<void> Writer::add(const model::ImportedWindow& window) {
  return impl_->attempt([&](Statements& s) {
    const std::int64_t id = impl_->imported_windows++;
    store(s.imported_window, window, id);
    for (const auto& energy : window.energies) store(s.imported_window_energy, energy, id);
    for (const auto& label : window.labels) store(s.imported_window_label, label, id);
  });
}

Result<void> Writer::set_overhead(const model::Overhead& o) {
  return impl_->attempt([&](Statements& s) { store(s.overhead, o, 1); });
}

Result<void> Writer::append(const model::Readings& readings) {
  if (readings.empty()) return {};
  return impl_->attempt([&](Statements& s) {
    const auto impossible = [&s](model::SensorId sensor, HostTime at, double value) {
      s.read_failure(sensor, at, to_string(Errc::kCorrupt),
                     fmt::format("the sensor returned {}, which is impossible", value));
    };
    for (const auto& r : readings.counters) store(s.counter_reading, r);
    for (const auto& r : readings.powers) {
      if (storable_power(r.power.watts())) {
        store(s.power_reading, r);
      } else {
        impossible(r.sensor, r.at, r.power.watts());
      }
    }
    for (const auto& r : readings.gauges) {
      if (std::isfinite(r.value)) {
        store(s.gauge_reading, r);
      } else {
        impossible(r.sensor, r.at, r.value);
      }
    }
    for (const auto& r : readings.failures) store(s.read_failure, r);
  });
}

Result<void> Writer::append(const model::ProcessReadings& readings) {
  if (readings.empty()) return {};
  return impl_->attempt([&](Statements& s) {
    for (const auto& r : readings.processes) store(s.process_reading, r);
    for (const auto& r : readings.gpu_processes) store(s.gpu_process_reading, r);
    for (const auto& r : readings.machine) store(s.machine_reading, r);
  });
}

Result<void> Writer::append(const std::vector<model::Window>& windows) {
  if (windows.empty()) return {};
  return impl_->attempt([&](Statements& s) { s.windows.append(windows); });
}

Result<void> Writer::append(std::uint32_t trace, const model::Trace& more) {
  return impl_->attempt([&](Statements& s) { s.traces.append(trace, more); });
}

Result<void> Writer::append(const std::vector<model::RememberedKernel>& kernels) {
  if (kernels.empty()) return {};
  return impl_->attempt([&](Statements& s) { store_all(s.remembered_kernel, kernels); });
}

Result<void> add_remembered(const fs::path& path,
                            const std::vector<model::RememberedKernel>& kernels) {
  if (kernels.empty()) return {};
  try {
    SQLite::Database db(path.string(), SQLite::OPEN_READWRITE, kPatienceMilliseconds);
    SQLite::Transaction transaction(db, SQLite::TransactionBehavior::IMMEDIATE);
    Insert insert(db, "remembered_kernel");
    store_all(insert, kernels);
    transaction.commit();
    return {};
  } catch (const SQLite::Exception& e) {
    return tl::unexpected(sqlite_error("write " + path.string(), e, nullptr));
  }
}

Result<void> Writer::commit() { return impl_->commit(true); }

Result<void> Writer::finish() {
  const auto done = impl_->attempt([](Statements& s) { execute(s.complete); });
  const auto closed = close();
  return done ? closed : done;
}

Result<void> Writer::close() {
  auto done = impl_->commit(false);
  if (done) done = impl_->leave_single_file();
  impl_->release();
  return done;
}

void remove_recording(const std::filesystem::path& path) {
  std::error_code ignored;
  remove_side_files(path);
  std::filesystem::remove(path, ignored);
}

Result<void> Writer::append(const Batch& batch) {
  Result<void> done;
  if (batch.run) done = set_run(*batch.run);
  if (done) done = write_parts(*this, batch);
  for (const auto& part : batch.traces) {
    if (done) done = append(part.trace, part.more);
  }
  return done;
}

Result<void> append_recording(Writer& writer, const model::Recording& recording) {
  auto done = writer.set_run(recording.run);
  if (done) done = write_parts(writer, recording);
  for (const auto& window : recording.imported_windows) {
    if (done) done = writer.add(window);
  }
  if (done) done = writer.append(recording.remembered);
  std::uint32_t trace = 0;
  for (const auto& whole : recording.traces) {
    if (done) done = writer.append(trace++, whole);
  }
  return done;
}

Result<void> write_recording(const std::filesystem::path& path, const model::Recording& recording,
                             const WriterOptions& options) {
  const auto claim = Claim::take(path, options.overwrite);
  if (!claim) return forward_error(claim);
  auto fresh = NewFile::next_to(claim->path());
  if (!fresh) return forward_error(fresh);
  {
    auto writer = Writer::create(fresh->path(), {.overwrite = true});
    if (!writer) {
      remove_side_files(fresh->path());
      return forward_error(writer);
    }
    auto done = append_recording(*writer, recording);
    if (done) done = recording.run.complete ? writer->finish() : writer->close();
    if (!done) {
      writer = tl::unexpected(done.error());  // closes it
      remove_side_files(fresh->path());
      return done;
    }
  }
  remove_side_files(claim->path());
  return fresh->take_place();
}

}  // namespace jouleprof::recording
