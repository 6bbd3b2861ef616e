// Files that are no recordings, newer ones, damaged and hostile ones.
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "recording/reader.h"
#include "recording/recording_fixture.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// A folder with a good recording, x.jprof, that tests damage.
class Damaged : public testing::Test {
 protected:
  Damaged() { EXPECT_TRUE(write_recording(path_, RandomRecording(5).make())); }

  // The error of reading the file, which must name it.
  Error error_of(const fs::path& path) {
    const auto read = read_recording(path);
    EXPECT_FALSE(read);
    if (read) return {};
    EXPECT_THAT(read.error().message,
                AllOf(HasSubstr(path.string()), testing::Not(HasSubstr("\n"))));
    return read.error();
  }
  Error error() { return error_of(path_); }
  // Removed first: some file systems wait for the disk when a file is emptied and written again.
  void replace(const std::string& content) {
    fs::remove(tree_ / "content");
    tree_.write("content", content);
  }
  Errc code_of_content(const std::string& content) {
    replace(content);
    return error_of(tree_ / "content").code;
  }

  TempTree tree_;
  fs::path path_ = tree_ / "x.jprof";
};

// A recorder that was killed as it began leaves a header and no tables, or all of them in the log.
TEST_F(Damaged, ARecordingThatHasOnlyBegun) {
  const fs::path begun = tree_ / "begun.jprof";
  {
    SQLite::Database db(begun.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    db.exec("PRAGMA journal_mode = WAL");
  }
  const Error error = error_of(begun);
  EXPECT_EQ(error.code, Errc::kCorrupt);
  EXPECT_THAT(error.message, HasSubstr("is empty: the recording was cut off as it began"));

  SQLite::Database db(begun.string(), SQLite::OPEN_READWRITE);
  db.exec("PRAGMA wal_autocheckpoint = 0; BEGIN");
  for (const Table& table : tables()) db.exec(table.create_statement());
  db.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  db.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  db.exec("INSERT INTO run VALUES (1, '', '', '', '', NULL, NULL, NULL, NULL, 0, NULL); COMMIT");
  const auto read = read_recording(begun);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read->run.complete);
}

TEST_F(Damaged, NoFileAtAll) {
  EXPECT_EQ(error_of(tree_ / "none.jprof").code, Errc::kNotFound);
  EXPECT_EQ(error_of(path_ / "x").code, Errc::kNotFound);
  EXPECT_EQ(error_of(tree_.root()).code, Errc::kCorrupt);
  EXPECT_EQ(error_of("/dev/null").code, Errc::kCorrupt);
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const auto of_pipe = error_of(fmt::format("/dev/fd/{}", pipe[0]));  // as of the shell's <(...)
  EXPECT_THAT(of_pipe.message, HasSubstr("is a pipe; write it to a file first"));
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_EQ(error_of(tree_ / std::string(300, 'x')).code, Errc::kUnavailable);
}

TEST_F(Damaged, NoPermission) {
  chmod(tree_.root().c_str(), 0755);
  chmod(path_.c_str(), 0);
  const ReadOnly read_only(tree_.root());
  if (!read_only.effective()) GTEST_SKIP() << "cannot give up root here";
  EXPECT_EQ(error().code, Errc::kPermissionDenied);
}

TEST_F(Damaged, NotARecording) {
  EXPECT_EQ(code_of_content(""), Errc::kCorrupt);
  EXPECT_EQ(code_of_content("SQL"), Errc::kUnsupported);
  EXPECT_EQ(code_of_content("# gpu pwr gtemp\n    0   70   30\n"), Errc::kUnsupported);
  EXPECT_EQ(code_of_content(std::string(100'000, '\0')), Errc::kUnsupported);
  SQLite::Database((tree_ / "other.db").string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE run(x); INSERT INTO run VALUES (1)");
  EXPECT_THAT(error_of(tree_ / "other.db").message, HasSubstr("not a jouleprof recording"));
}

TEST_F(Damaged, AnotherVersionIsNamedWithOurs) {
  const int other = kSchemaVersion + 1;
  run_sql(path_, fmt::format("PRAGMA user_version = {}; DROP TABLE run", other));
  EXPECT_EQ(error().code, Errc::kUnsupported);
  EXPECT_THAT(error().message, AllOf(HasSubstr(fmt::format("version {}", other)),
                                     HasSubstr(fmt::format("version {}", kSchemaVersion))));
  run_sql(path_, "PRAGMA user_version = 0");
  EXPECT_EQ(error().code, Errc::kCorrupt);
}

TEST_F(Damaged, Truncated) {
  const std::string whole = bytes_of(path_);
  for (std::size_t size = 0; size < whole.size(); size += 997) {
    replace(whole.substr(0, size));
    const auto read = read_recording(tree_ / "content");
    // The last pages may hold nothing of the recording.
    if (read) {
      EXPECT_GT(size, whole.size() * 9 / 10);
      expect_equal(*read, RandomRecording(5).make());
    } else {
      EXPECT_EQ(read.error().code, Errc::kCorrupt) << size;
    }
  }
}

// Damage that no check can see (another digit in a name) reads; anything else is an error, and none
// of it a crash, which is what the sanitizers watch.
TEST_F(Damaged, BitsFlipped) {
  const std::string whole = bytes_of(path_);
  std::mt19937 random(1);
  int errors = 0;
  for (int round = 0; round < 400; ++round) {
    std::string damaged = whole;
    for (int n = round % 4; n >= 0; --n) {
      damaged[random() % damaged.size()] ^= static_cast<char>(1 << random() % 8);
    }
    replace(damaged);
    const auto read = read_recording(tree_ / "content");
    if (read) continue;
    ++errors;
    // A bit of the version makes the file a newer one.
    EXPECT_THAT(read.error().code, testing::AnyOf(Errc::kCorrupt, Errc::kUnsupported))
        << read.error().message;
  }
  EXPECT_GT(errors, 20);
}

TEST_F(Damaged, PagesOfNoise) {
  const std::string whole = bytes_of(path_);
  std::mt19937 random(2);
  for (std::size_t page = 1; page < whole.size() / 4096; ++page) {
    std::string damaged = whole;
    for (std::size_t i = 0; i < 4096; ++i) {
      damaged[page * 4096 + i] = static_cast<char>(random());
    }
    EXPECT_EQ(code_of_content(damaged), Errc::kCorrupt) << page;
  }
}

// Every column of every table with every kind of value that does not belong there.
TEST_F(Damaged, StrangeValues) {
  const std::string whole = bytes_of(path_);
  SQLite::Database memory(":memory:", SQLite::OPEN_READWRITE);
  int refused = 0;
  for (const Table& table : tables()) {
    memory.exec(table.create_statement());
    SQLite::Statement columns(memory, fmt::format("PRAGMA table_info({})", table.name));
    while (columns.executeStep()) {
      const std::string column = columns.getColumn(1).getString();
      for (const char* value : {"NULL", "-1", "9223372036854775807", "-9223372036854775807",
                                "1e308", "9e999", "'text'", "x'00ff'", "4294967296", "''"}) {
        replace(whole);
        const std::string set =
            fmt::format("UPDATE {} SET {} = {} WHERE rowid = (SELECT max(rowid) FROM {})",
                        table.name, column, value, table.name);
        try {
          run_sql(tree_ / "content", "PRAGMA ignore_check_constraints = ON; " + set);
        } catch (const SQLite::Exception&) {
          continue;  // SQLite itself does not let it in
        }
        const auto read = read_recording(tree_ / "content");
        if (read) continue;
        ++refused;
        EXPECT_EQ(read.error().code, Errc::kCorrupt) << set << ": " << read.error().message;
        EXPECT_THAT(read.error().message, HasSubstr(table.name)) << set;
      }
    }
  }
  EXPECT_GT(refused, 200);
}

TEST_F(Damaged, ValuesThatNoColumnMayHave) {
  const std::string whole = bytes_of(path_);
  for (const char* sql : {
           "UPDATE power_reading SET sensor = 7",
           "UPDATE power_reading SET power_watts = 2e9",
           "UPDATE power_reading SET power_watts = 9e999",
           "UPDATE power_reading SET at_nanoseconds = 9223372036854775807",
           "UPDATE counter_reading SET after_nanoseconds = before_nanoseconds - 1",
           "UPDATE gpu_process_reading SET domain = 1",
           "UPDATE process_reading SET process = 99",
           "UPDATE process_reading SET pss_bytes = -1",
           "UPDATE sensor SET kind = 'thermometer'",
           "UPDATE sensor SET domain = 1000",
           "UPDATE sensor SET gain_low_ratio = gain_high_ratio + 1",
           "UPDATE sensor SET offset_high_watts = offset_low_watts - 1",
           "UPDATE sensor SET correction_ratio = 11",
           "UPDATE domain SET kind = 'GPU'",
           "UPDATE domain SET parent = 77",
           "UPDATE domain SET parent = id",
           "UPDATE domain SET visible = 2",
           "UPDATE board_level SET domain = 1",
           "UPDATE board_level SET level = 'rest', domain = 0",
           "UPDATE board_level SET power_watts = 0",
           "UPDATE board_level SET spread_watts = -1",
           "DROP TABLE board_level",
           "UPDATE remembered_kernel SET power_watts = 0",
           "UPDATE remembered_kernel SET error_watts = -1",
           "UPDATE remembered_kernel SET launch_nanoseconds = 0",
           "UPDATE remembered_kernel SET kind = 'thought'",
           "DROP TABLE remembered_kernel",
           "UPDATE read_failure SET code = 'tired'",
           "UPDATE process SET pid = 4294967296",
           "INSERT INTO idle_span VALUES (2, 1)",
           "UPDATE window SET window_series = 4000000000",
           "UPDATE window SET duration_nanoseconds = -1",
           "UPDATE window SET begin_nanoseconds = 4611686018427387903, duration_nanoseconds = 1",
           "UPDATE window_series SET device_time = 2",
           "UPDATE window_series SET name = printf('%.*c', 257, 'x')",
           "UPDATE window_series SET pid = 4294967296",
           "DELETE FROM window_series",
           "DROP TABLE window",
           "UPDATE trace SET id = 7 WHERE id = 1",
           "UPDATE trace SET pid = 4294967296",
           "UPDATE trace SET bin_nanoseconds = 0",
           "DELETE FROM trace",
           "UPDATE trace_status SET dropped = -1",
           "UPDATE traced_device SET trace = 7",
           "UPDATE traced_device SET number = number + 1",
           "DELETE FROM traced_device",
           "UPDATE kernel_class SET kind = 'thread'",
           "UPDATE kernel_class SET grid_x = 4294967296",
           "DELETE FROM kernel_class",
           "UPDATE layer SET parent = number",
           "UPDATE layer SET macs = -1",
           "UPDATE layer SET macs = 9e999",
           "DELETE FROM layer",
           "UPDATE activity_range SET parent = 77",
           "UPDATE scope SET layer = 5",
           "UPDATE scope SET activity_range = 5",
           "UPDATE scope SET phase = 'sideways'",
           "DELETE FROM scope",
           "UPDATE activity_chunk SET kind = 'lumps'",
           "UPDATE activity_chunk SET traced_device = 5",
           "UPDATE activity_chunk SET entries = x'ff'",
           "UPDATE activity_chunk SET entries = 'text'",
           "UPDATE activity_chunk SET end_nanoseconds = begin_nanoseconds - 1",
           "DROP TABLE scope",
           "INSERT INTO imported_window_energy VALUES (99, 0, 1)",
           "INSERT INTO imported_window_label VALUES (99, 'a', 'b')",
           "DELETE FROM run",
           "DELETE FROM sensor",
           "DROP TABLE warning",
           "ALTER TABLE warning ADD COLUMN more",
           "DROP TABLE warning; CREATE VIEW warning AS SELECT 1 AS at_nanoseconds, 'x' AS text",
           "DROP TABLE warning; CREATE VIRTUAL TABLE warning USING fts5(text)",
       }) {
    replace(whole);
    run_sql(tree_ / "content", std::string("PRAGMA ignore_check_constraints = ON; ") + sql);
    EXPECT_EQ(error_of(tree_ / "content").code, Errc::kCorrupt) << sql;
  }
}

TEST_F(Damaged, WhatOthersAddIsNotLookedAt) {
  run_sql(path_,
          "CREATE TABLE note(x); CREATE INDEX i ON power_reading(at_nanoseconds); "
          "CREATE TRIGGER t AFTER INSERT ON warning BEGIN SELECT 1; END; VACUUM");
  const auto read = read_recording(path_);
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(*read, RandomRecording(5).make());
}

void put16(std::string& page, std::size_t at, std::size_t value) {
  page[at] = static_cast<char>(value >> 8);
  page[at + 1] = static_cast<char>(value);
}
void put32(std::string& page, std::size_t at, std::size_t value) {
  put16(page, at, value >> 16);
  put16(page, at + 2, value & 0xffff);
}

// An interior page of a table whose children are all the page `child`
// (https://www.sqlite.org/fileformat2.html#b_tree_pages).
std::string page_of_copies(std::size_t child) {
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kCells = 400;
  std::string page(kPage, '\0');
  page[0] = 5;
  put16(page, 3, kCells);
  put16(page, 5, kPage - kCells * 6);
  put32(page, 8, child);
  for (std::size_t i = 0; i < kCells; ++i) {
    const std::size_t cell = kPage - (i + 1) * 6;
    put16(page, 12 + 2 * i, cell);
    put32(page, cell, child);
    page[cell + 4] = static_cast<char>(0x80 | i >> 7);
    page[cell + 5] = static_cast<char>(i & 0x7f);
  }
  return page;
}

// Six pages that would be 400^6 rows.
TEST_F(Damaged, ATreeThatWouldTakeForever) {
  std::size_t root = 0;
  {
    SQLite::Database db(path_.string());
    const auto found =
        db.execAndGet("SELECT rootpage FROM sqlite_master WHERE name = 'clock_point'");
    root = static_cast<std::size_t>(found.getInt());
  }
  run_sql(path_, "DELETE FROM clock_point; INSERT INTO clock_point VALUES (1, 2, 3)");
  std::string file = bytes_of(path_);
  const std::size_t pages = file.size() / 4096;
  file += file.substr((root - 1) * 4096, 4096);  // page pages + 1: the leaf
  for (std::size_t level = 1; level <= 5; ++level) file += page_of_copies(pages + level);
  file.replace((root - 1) * 4096, 4096, page_of_copies(pages + 6));
  put32(file, 28, pages + 6);
  replace(file);
  EXPECT_EQ(error_of(tree_ / "content").code, Errc::kCorrupt);
  EXPECT_THAT(error_of(tree_ / "content").message,
              HasSubstr("more rows than the file has room for"));
}

}  // namespace
}  // namespace jouleprof::recording
