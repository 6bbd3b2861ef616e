#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/testing.h"

namespace jouleprof::importers {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

const std::string kHeader =
    "timestamp,project_name,run_id,duration,emissions,cpu_power,cpu_energy,gpu_energy,ram_energy,"
    "energy_consumed,country_name\n";

TEST(CodeCarbon, TheLastRowOfARunIsTheRun) {
  const auto recording = import_text(
      kHeader +
      "2026-04-11T08:00:10,train,A,10.0,0.1,7.5,0.001,0.002,0.0005,0.0035,\"Korea, Republic of\"\n"
      "2026-04-11T08:00:20,train,A,20.0,0.2,7.5,0.002,0.004,0.001,0.007,France\n"
      "2026-04-11T08:01:00,eval,B,5.0,0.1,7.5,0.001,0,0.001,0.002,France\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:codecarbon");
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  const auto& train = recording->imported_windows[0];
  EXPECT_EQ(train.name, "train");
  EXPECT_EQ(train.begin, HostTime{});
  EXPECT_EQ(train.duration, Duration{seconds{20}});
  ASSERT_EQ(train.energies.size(), 3u);
  EXPECT_EQ(train.energies[1].energy, Energy::joules(0.004 * 3.6e6));
  EXPECT_EQ(recording->imported_windows[1].energies.size(), 2u);  // no GPU
  EXPECT_EQ(recording->imported_windows[1].begin, HostTime{seconds{55}});
  EXPECT_TRUE(has_warning(*recording, "1 value of gpu_energy that is exactly 0"));
  EXPECT_TRUE(has_warning(*recording, "1 earlier row of the same run"));
}

TEST(CodeCarbon, TasksAreWindows) {
  const auto recording = import_text(
      "task_name,timestamp,project_name,run_id,duration,emissions,cpu_energy,energy_consumed\n"
      "load,2026-04-11T08:00:10,p,A,10.0,0.1,0.001,0.001\n"
      "fit,2026-04-11T08:00:30,p,A,20.0,0.1,0.002,0.002\n");
  ASSERT_TRUE(recording) << recording.error().message;
  ASSERT_EQ(recording->imported_windows.size(), 2u);
  EXPECT_EQ(recording->imported_windows[1].name, "fit");
}

TEST(CodeCarbon, BadFiles) {
  EXPECT_THAT(import_error(kHeader), HasSubstr("no run"));
  EXPECT_THAT(import_error(kHeader + "now,train,A,1,0,0,0,0,0,0,F\n"),
              HasSubstr("timestamp is 'now', no time"));
  EXPECT_THAT(import_error(kHeader + "2026-04-11T08:00:10,train,A,1,0,0,many,0,0,0,F\n"),
              HasSubstr("cpu_energy is 'many', no energy"));
}

}  // namespace
}  // namespace jouleprof::importers
