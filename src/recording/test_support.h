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
}

inline void run_sql(const std::filesystem::path& path, const std::string& sql) {
  SQLite::Database db(path.string(), SQLite::OPEN_READWRITE);
  db.exec("PRAGMA synchronous = OFF; " + sql);
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

// Makes a folder read-only and, as root, becomes somebody for whom that counts, for as long as this
// lives.
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
