// What several tests of this folder need.
#pragma once

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "recording/random_recording.h"
#include "recording/reader.h"
#include "recording/tables/schema.h"
#include "recording/writer.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::recording {

inline void expect_equal(const model::Recording& a, const model::Recording& b) {
  EXPECT_EQ(a.run, b.run);
  EXPECT_EQ(a.run.trace_folder, b.run.trace_folder);
  ASSERT_EQ(a.clock_points.size(), b.clock_points.size());
  for (std::size_t i = 0; i < a.clock_points.size(); ++i) {
    EXPECT_EQ(a.clock_points[i].host, b.clock_points[i].host);
    EXPECT_EQ(a.clock_points[i].real, b.clock_points[i].real);
    EXPECT_EQ(a.clock_points[i].suspended, b.clock_points[i].suspended);
  }
  EXPECT_EQ(a.domains, b.domains);
  EXPECT_EQ(a.sensors, b.sensors);
  EXPECT_TRUE(a.readings == b.readings);
  EXPECT_EQ(a.idle_spans, b.idle_spans);
  EXPECT_EQ(a.processes, b.processes);
  EXPECT_TRUE(a.process_readings == b.process_readings);
  EXPECT_EQ(a.warnings, b.warnings);
  EXPECT_EQ(a.overhead, b.overhead);
  EXPECT_EQ(a.windows, b.windows);
  EXPECT_TRUE(a.traces == b.traces);
  EXPECT_EQ(a.imported_windows, b.imported_windows);
  EXPECT_EQ(a.remembered, b.remembered);
}

inline void run_sql(const std::filesystem::path& path, const std::string& sql) {
  SQLite::Database db(path.string(), SQLite::OPEN_READWRITE);
  db.exec("PRAGMA synchronous = OFF; " + sql);
}

// Makes a recording one of an older version: with the tables of that version, and in them the rows
// of this one as far as they have columns there.
inline void make_older(const std::filesystem::path& path, std::int32_t version) {
  const std::filesystem::path newer = path.string() + ".newer";
  std::filesystem::rename(path, newer);
  SQLite::Database db(path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  db.exec("PRAGMA synchronous = OFF; ATTACH '" + newer.string() + "' AS newer; BEGIN");
  for (const Table& table : tables(version)) {
    db.exec(table.create_statement());
    std::string columns;
    SQLite::Statement info(db, "PRAGMA table_info(" + table.name + ")");
    while (info.executeStep()) {
      columns += (columns.empty() ? "" : ", ") + info.getColumn(1).getString();
    }
    db.exec("INSERT INTO main." + table.name + " SELECT " + columns + " FROM newer." + table.name +
            " ORDER BY rowid");
  }
  if (version >= 3 && version < 8)
    db.exec("UPDATE activity_chunk SET kind = replace(kind, 'overlapped', 'beside')");
  db.exec("PRAGMA application_id = " + std::to_string(kApplicationId));
  db.exec("PRAGMA user_version = " + std::to_string(version) + "; COMMIT");
  std::filesystem::remove(newer);
}

// Leaves of a recording what an older version has tables for (from version 5 on: columns, too).
inline void drop_newer(model::Recording& recording, std::int32_t version) {
  if (version < 14) {
    for (auto& trace : recording.traces) trace.status.memsets_left_out = 0;
  }
  if (version < 12) recording.run.open_windows.clear();
  if (version < 13) {  // of the process that recorded itself
    for (auto& window : recording.run.open_windows) window.process = recording.run.pid.value_or(0);
  }
  if (version < 11) {
    recording.run.user.clear();
    recording.run.node_list.clear();
  }
  if (version < 10) recording.remembered.clear();
  if (version < 9) {
    for (auto& domain : recording.domains) domain.known_levels = {};
  }
  if (version < 8) {
    recording.run.boot_id.clear();
    recording.run.rank = {};
    for (auto& trace : recording.traces) trace.rank = {};
  }
  if (version < 4) recording.run.trace_folder.clear();
  if (version < 3) recording.traces.clear();
  if (version < 2) {
    recording.windows.clear();
    for (auto& sensor : recording.sensors) sensor.traits.rise.reset();
  }
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The names in a folder.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A writer with one sensor of id 0, committed.
inline Writer writer_with_sensor(const std::filesystem::path& path) {
  Writer writer = Writer::create(path).value();
  EXPECT_TRUE(writer.add(model::Domain{}));
  EXPECT_TRUE(writer.add(model::Sensor{}));
  EXPECT_TRUE(writer.commit());
  return writer;
}

// `count` power readings from number `first` on; the n-th is n watts at n milliseconds.
inline model::Readings numbered_powers(int first, int count) {
  model::Readings readings;
  for (int n = first; n < first + count; ++n) {
    readings.powers.push_back({model::SensorId{0}, HostTime{std::chrono::milliseconds{n}},
                               Power::watts(static_cast<double>(n))});
  }
  return readings;
}

// Makes a folder read-only for its lifetime. As root it also becomes another user, whom permissions
// bind.
class ReadOnly {
 public:
  explicit ReadOnly(const std::filesystem::path& folder) : folder_(folder), user_(geteuid()) {
    chmod(folder_.c_str(), 0555);
    if (user_ == 0 && seteuid(65534) != 0) effective_ = false;
  }
  ReadOnly(const ReadOnly&) = delete;
  ReadOnly& operator=(const ReadOnly&) = delete;
  ~ReadOnly() {
    EXPECT_EQ(seteuid(user_), 0);
    chmod(folder_.c_str(), 0755);
  }
  bool effective() const { return effective_; }

 private:
  std::filesystem::path folder_;
  uid_t user_;
  bool effective_ = true;
};

}  // namespace jouleprof::recording
