// Recordings with something in every field, for tests and as seeds of the fuzzer.
#pragma once

#include <SQLiteCpp/Database.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "model/recording.h"
#include "recording/reader.h"
#include "recording/spool/random_trace_fixture.h"
#include "recording/tables/schema.h"
#include "recording/writer.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::recording {

// A seed always gives one recording. Readings are in the order of time, ids in order of size,
// as a reader gives them back. `size` is the number of readings of each kind.
class RandomRecording {
 public:
  explicit RandomRecording(unsigned seed, int size = 50) : random_(seed), size_(size) {}

  model::Recording make() {
    model::Recording r;
    spool::RandomTrace trace_records(static_cast<unsigned>(below(1000)));
    r.run = {text(),
             text(),
             text(),
             {},
             text(),
             maybe(pid()),
             maybe(pid()),
             maybe(time()),
             maybe(time()),
             chance(),
             false,
             {},
             text(),
             trace_records.record<model::Rank>(0),
             text(),
             text(),
             {}};
    for (int n = below(3); n > 0; --n) r.run.open_windows.push_back({text(), time(), below(1000)});
    if (r.run.complete) r.run.trace_folder = text();  // of others there would be a rest
    for (int n = below(5); n > 0; --n) r.run.command.push_back(text());
    for (int n = below(4); n > 0; --n) {
      r.clock_points.push_back({time(), RealTime{duration()}, duration()});
    }
    for (unsigned i = 0; i < kDomains; ++i) r.domains.push_back(domain(i * 3));
    for (unsigned i = 0; i < kSensors; ++i) r.sensors.push_back(sensor(i * 1000003));
    for (unsigned i = 0; i < kProcesses; ++i) r.processes.push_back(process(i));
    add_readings(r);
    for (int n = below(3); n > 0; --n) {
      const HostTime begin = time();
      r.idle_spans.push_back({begin, begin + std::chrono::seconds{below(9)}});
    }
    for (int n = below(3); n > 0; --n) r.warnings.push_back({time(), text()});
    if (chance()) r.overhead = model::Overhead{duration(), duration(), bytes()};
    add_windows(r);
    for (unsigned n = 0; n < 2; ++n) {
      r.traces.push_back(
          spool::RandomTrace(static_cast<unsigned>(below(1 << 30)), size_ / 2).make());
      r.traces.back().position = {time(), static_cast<std::uint32_t>(below(9)), bytes()};
    }
    for (int n = below(4); n > 0; --n) r.imported_windows.push_back(imported_window());
    for (int n = 1 + below(3); n > 0; --n) r.remembered.push_back(remembered());
    return r;
  }

 private:
  static constexpr unsigned kDomains = 4;
  static constexpr unsigned kSensors = 6;
  static constexpr unsigned kProcesses = 5;

  int below(int n) { return std::uniform_int_distribution(0, n - 1)(random_); }
  bool chance() { return below(2) == 0; }
  template <class T>
  std::optional<T> maybe(T value) {
    return chance() ? std::optional(value) : std::nullopt;
  }
  std::string text() {
    static const std::string kTexts[] = {
        "",         "plain",          "naïve café ⚡",          "a 'b' \"c\"; DROP",
        "\xff\xfe", "tab\tnew\nline", std::string("nul\0in", 6)};
    return kTexts[below(std::size(kTexts))] + std::string(static_cast<std::size_t>(below(40)), 'x');
  }
  pid_t pid() { return below(1 << 22); }
  Duration duration() {
    return Duration{std::uniform_int_distribution<std::int64_t>(0, std::int64_t{1} << 61)(random_)};
  }
  HostTime time() { return HostTime{Duration{duration() / (1 + below(1000))}}; }
  Energy energy() { return Energy::microjoules(duration().count()); }
  std::uint64_t bytes() { return static_cast<std::uint64_t>(duration().count()); }
  double number() { return std::uniform_real_distribution<double>(-1000, 1000)(random_); }

  model::Domain domain(unsigned id) {
    std::optional<model::DomainId> parent;
    if (id > 0 && chance()) parent = model::DomainId{0};
    return {model::DomainId{id},
            model::DomainKind{below(8)},
            text(),
            text(),
            text(),
            parent,
            chance(),
            text(),
            {maybe(level()), maybe(level())}};
  }
  model::KnownLevel level() {
    return {Power::watts(1 + below(1000)), Power::watts(below(100) / 8.0), maybe(number()),
            RealTime{duration()}};
  }
  model::RememberedKernel remembered() {
    return {text(),
            spool::RandomTrace(static_cast<unsigned>(below(1000))).record<model::KernelClass>(0),
            Duration{1 + below(1 << 20)},
            Power::watts(1 + below(1000)),
            Power::watts(below(100) / 8.0),
            maybe(1e6 * below(3000)),
            RealTime{duration()}};
  }
  model::DomainId any_domain() {
    return model::DomainId{3 * static_cast<unsigned>(below(kDomains))};
  }
  model::Sensor sensor(unsigned id) {
    return {model::SensorId{id},
            any_domain(),
            model::SensorKind{below(5)},
            text(),
            model::Provenance{below(4)},
            {maybe(duration()), maybe(duration()), maybe(duration()), maybe(duration()),
             maybe(duration()), maybe(energy()), energy(), scale(), chance() ? 1 : 1.25}};
  }
  model::ScaleError scale() {
    const double gain = below(100) / 100.0;
    if (chance()) return model::ScaleError::symmetric(gain);
    return {-gain / 2, gain, Power::watts(-below(9)), Power::watts(below(20)), text()};
  }
  model::SensorId any_sensor() {
    return model::SensorId{1000003 * static_cast<unsigned>(below(kSensors))};
  }
  model::Process process(unsigned id) {
    return {model::ProcessId{id}, pid(),   maybe(pid()), pid(), text(), text(), time(),
            maybe(time()),        chance()};
  }
  model::ProcessId any_process() {
    return model::ProcessId{static_cast<unsigned>(below(kProcesses))};
  }

  void add_windows(model::Recording& r) {
    HostTime begin{std::chrono::hours{1000}};
    const std::string names[] = {text(), text(), text()};
    for (int i = 0; i < size_; ++i) {
      begin += Duration{below(3) * 1'000'003};
      r.windows.push_back({names[below(3)], begin, begin + Duration{duration() / (1 + below(1000))},
                           1 + below(3), 1 + below(3), chance()});
    }
  }

  model::ImportedWindow imported_window() {
    model::ImportedWindow window{text(), maybe(time()), duration(), {}, {}};
    for (int n = below(3); n > 0; --n) window.energies.push_back({any_domain(), energy()});
    for (int n = below(3); n > 0; --n) window.labels.push_back({text(), text()});
    return window;
  }

  void add_readings(model::Recording& r) {
    HostTime at{std::chrono::hours{1000}};
    for (int i = 0; i < size_; ++i) {
      at += Duration{below(3) * 1'000'003};  // now and then two at once
      r.readings.counters.push_back({any_sensor(), at, at + Duration{below(9)}, energy()});
      r.readings.powers.push_back({any_sensor(), at, Power::watts(number())});
      r.readings.gauges.push_back({any_sensor(), at, number() * 1e9});
      r.process_readings.processes.push_back({any_process(), at, duration(), duration(),
                                              maybe(bytes()), maybe(bytes()), maybe(bytes())});
      r.process_readings.gpu_processes.push_back(
          {any_process(), any_domain(), at, maybe(number()), maybe(bytes())});
      r.process_readings.machine.push_back({at, duration(), duration(), bytes()});
      if (below(10) == 0) {
        r.readings.failures.push_back({any_sensor(), at, {Errc{below(8)}, text()}});
      }
    }
  }

  std::mt19937 random_;
  int size_;
};

// --- What several tests of this folder need ---

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
