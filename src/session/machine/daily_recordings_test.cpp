#include "session/machine/daily_recordings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "base/file.h"
#include "recording/reader.h"
#include "session/sampling/sampling_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

const RealTime kNoon{std::chrono::sys_days{std::chrono::year{2026} / 11 / 23}.time_since_epoch() +
                     12h};

class Service {
 public:
  explicit Service(DailyOptions options = {}) {
    options.folder = tree.root();
    options.now = [this] { return now; };
    options.on_error = [this](const Error& error) { errors.push_back(error.message); };
    auto opened = DailyRecordings::open(std::move(options));
    EXPECT_TRUE(opened) << opened.error().message;
    if (!opened) return;
    recordings = std::move(*opened);
    model::RunInfo run;
    run.host = "node7";
    model::Domain domain;
    domain.device = "gpu0";
    model::Sensor sensor;
    sensor.kind = model::SensorKind::kEnergyCounter;
    Batch batch = batch_of(run);
    batch.domains.push_back(domain);
    batch.sensors.push_back(sensor);
    EXPECT_TRUE(recordings->append(batch));
  }
  void pass(Duration time) {
    now.host += time;
    now.real += time;
  }
  void read(int joules) {
    model::Readings readings;
    readings.counters.push_back({model::SensorId{0}, now.host, now.host, Energy::joules(joules)});
    EXPECT_TRUE(recordings->append(batch_of(readings)));
    EXPECT_TRUE(recordings->commit());
  }
  std::vector<std::string> names() const {
    auto all = list_folder(tree.root());
    EXPECT_TRUE(all);
    std::erase_if(*all, [](const auto& name) { return !name.ends_with(".jprof"); });
    return *all;
  }
  std::vector<std::int64_t> joules(const std::string& name) const {
    const auto recording = recording::read_recording(tree / name);
    EXPECT_TRUE(recording) << recording.error().message;
    std::vector<std::int64_t> out;
    if (!recording) return out;
    EXPECT_EQ(recording->run.host, "node7");
    for (const auto& reading : recording->readings.counters) {
      out.push_back(reading.total.microjoules() / 1'000'000);
    }
    return out;
  }

  TempTree tree;
  ClockPoint now{HostTime{1h}, kNoon, {}};
  std::vector<std::string> errors;
  std::unique_ptr<DailyRecordings> recordings;
};

TEST(DailyRecordings, ANewDayBeginsWithTheLastReadingOfTheOldOne) {
  Service service;
  service.read(1);
  service.pass(12h - 10s);
  service.read(2);
  service.pass(20s);
  service.read(3);  // the first of the new day ends the old file
  service.pass(5s);
  service.read(4);
  EXPECT_TRUE(service.recordings->finish());
  EXPECT_EQ(service.names(), (std::vector<std::string>{"2026-11-23.jprof", "2026-11-24.jprof"}));
  EXPECT_EQ(service.joules("2026-11-23.jprof"), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(service.joules("2026-11-24.jprof"), (std::vector<std::int64_t>{3, 4}));
}

TEST(DailyRecordings, AnotherStartOnTheSameDayHasAFileOfItsOwn) {
  Service service;
  service.read(1);
  EXPECT_TRUE(service.recordings->finish());
  DailyOptions options;
  options.folder = service.tree.root();
  options.now = [&service] { return service.now; };
  const auto again = DailyRecordings::open(options);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->path().filename(), "2026-11-23-2.jprof");
  EXPECT_EQ(service.joules("2026-11-23.jprof"), std::vector<std::int64_t>{1});
}

TEST(DailyRecordings, OldOnesAreRemovedAndOthersLeftAlone) {
  DailyOptions options;
  options.longest = 48h;
  Service service(options);
  service.tree.write("2026-11-01.jprof", "old");
  service.tree.write("2026-11-22-3.jprof", "young enough");
  service.tree.write("train.jprof", "the user's");
  service.read(1);
  service.pass(24h);
  service.read(2);
  EXPECT_EQ(service.names(), (std::vector<std::string>{"2026-11-22-3.jprof", "2026-11-23.jprof",
                                                       "2026-11-24.jprof", "train.jprof"}));
}

TEST(DailyRecordings, AWallClockThatIsSetForwardMakesNothingOld) {
  Service service;
  service.now.real += 24h * 365;  // while the service runs
  service.read(1);
  service.now.real = {};  // as it begins, on a machine whose clock has no battery
  DailyOptions options;
  options.folder = service.tree.root();
  options.now = [&service] { return service.now; };
  const auto again = DailyRecordings::open(options);
  ASSERT_TRUE(again) << again.error().message;
  service.now.real = kNoon;
  EXPECT_TRUE((*again)->commit());
  EXPECT_EQ(service.names(), (std::vector<std::string>{"1970-01-01.jprof", "2026-11-23-2.jprof",
                                                       "2026-11-23.jprof", "2027-11-23.jprof"}));
}

TEST(DailyRecordings, AfterAWallClockThatWasSetBackOverMidnightTheNewestFilesStay) {
  DailyOptions options;
  options.most_bytes = 1 << 20;
  Service service(options);
  EXPECT_TRUE(service.recordings->finish());
  for (const char* name : {"2026-11-22.jprof", "2026-11-24.jprof"}) {
    service.tree.write(name, std::string(600 << 10, 'x'));
  }
  options.folder = service.tree.root();
  options.now = [&service] { return service.now; };
  ASSERT_TRUE(DailyRecordings::open(options));
  EXPECT_TRUE(std::filesystem::exists(service.tree / "2026-11-22.jprof"));
  EXPECT_FALSE(std::filesystem::exists(service.tree / "2026-11-24.jprof"));
}

TEST(DailyRecordings, TheRateIsSaidOnce) {
  std::vector<double> rates;
  DailyOptions options;
  options.on_rate = [&rates](double bytes_a_day) { rates.push_back(bytes_a_day); };
  Service service(options);
  std::uint64_t before = 0;
  std::uint32_t number = 0;  // wraps
  for (int minute = 0; minute < 40; ++minute) {
    model::Readings some;
    for (int i = 0; i < 5000; ++i) {
      number = number * 1'103'515U + 12'345U;
      some.counters.push_back({model::SensorId{0}, service.now.host + Duration{i},
                               service.now.host + Duration{i},
                               Energy::microjoules(static_cast<std::int32_t>(number))});
    }
    EXPECT_TRUE(service.recordings->append(batch_of(some)));
    service.pass(1min);
    EXPECT_TRUE(service.recordings->commit());
    if (minute == 2) before = std::filesystem::file_size(service.recordings->path());
  }
  ASSERT_EQ(rates.size(), 1u);
  const auto after = std::filesystem::file_size(service.recordings->path());
  EXPECT_NEAR(rates[0], static_cast<double>(after - before) / 37 * 1440, rates[0] / 4);
}

TEST(DailyRecordings, TheirSizeIsBounded) {
  DailyOptions options;
  options.most_bytes = 1 << 20;
  Service service(options);
  for (const char* name : {"2026-10-01.jprof", "2026-10-02-2.jprof", "2026-10-02-10.jprof"}) {
    service.tree.write(name, std::string(300 << 10, 'x'));
  }
  for (int commit = 0; commit < 100; ++commit) {
    model::Readings some;
    for (int i = 0; i < 2000; ++i) {
      service.pass(7ms + Duration{i * 7919 % 1000});
      some.counters.push_back({model::SensorId{0}, service.now.host, service.now.host,
                               Energy::microjoules(i * 104'729LL % 1'000'003)});
    }
    EXPECT_TRUE(service.recordings->append(batch_of(some)));
    EXPECT_TRUE(service.recordings->commit());
  }
  std::uintmax_t sum = 0;
  for (const auto& name : service.names()) sum += std::filesystem::file_size(service.tree / name);
  EXPECT_LE(sum, std::uintmax_t{1 << 20});
  EXPECT_FALSE(std::filesystem::exists(service.tree / "2026-10-01.jprof"));
  EXPECT_GT(service.names().size(), 1u);
  EXPECT_TRUE(service.errors.empty());
}

TEST(DailyRecordings, AFileThatFailsIsFollowedByAnother) {
  Service service;
  service.read(1);
  model::Readings unknown;
  unknown.counters.push_back({model::SensorId{7}, service.now.host, service.now.host, {}});
  EXPECT_TRUE(service.recordings->append(batch_of(unknown)));  // of a sensor that was not described
  EXPECT_TRUE(service.recordings->commit());
  ASSERT_EQ(service.errors.size(), 1u);
  EXPECT_EQ(service.names().size(), 1u);  // not at once
  service.pass(61s);
  service.read(2);
  service.pass(1s);
  service.read(3);
  EXPECT_EQ(service.names().size(), 2u);
}

TEST(DailyRecordings, AFileThatIsRemovedIsFollowedByAnother) {
  Service service;
  service.read(1);
  std::filesystem::remove_all(service.tree.root());
  service.pass(1s);
  service.read(2);
  ASSERT_EQ(service.errors.size(), 1u);
  EXPECT_TRUE(service.errors.front().ends_with("was removed or moved")) << service.errors.front();
  service.pass(1s);
  service.read(3);
  EXPECT_TRUE(service.recordings->finish());
  EXPECT_EQ(service.joules("2026-11-23.jprof"), (std::vector<std::int64_t>{2, 3}));
}

TEST(DailyRecordings, AFolderThatCannotBeMadeIsAnError) {
  const TempTree tree{{"file", "x"}};
  DailyOptions options;
  options.folder = tree / "file/below";
  EXPECT_FALSE(DailyRecordings::open(options));
}

}  // namespace
}  // namespace jouleprof::session
