#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/testing.h"

namespace jouleprof::importers {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST(Gpupp, ExecutionsOfLayersAreWindows) {
  const auto recording = import_text(
      "layer_name,exec_id,start_time,end_time,duration_ms,start_power_w,end_power_w,avg_power_w,"
      "energy_j\n"
      "encoder.0,0,1763508239.5,1763508239.502,2.0,100,120,110,0.22\n"
      "encoder.1,1,1763508239.502,1763508239.503,1.0,120,120,120,0.12\n"
      "encoder.0,2,1763508239.503,1763508239.505,2.0,100,120,2775.5,5.5\n");
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_EQ(recording->run.source, "import:gpupp");
  ASSERT_EQ(recording->imported_windows.size(), 3u);
  EXPECT_EQ(recording->imported_windows[1].begin, HostTime{milliseconds{2}});
  EXPECT_EQ(recording->imported_windows[2].energies[0].energy, Energy::joules(5.5));
  EXPECT_TRUE(has_warning(*recording, "1 of 3 windows: the mean power of gpu0 is above"));
  EXPECT_TRUE(has_warning(*recording, "1 of 3 rows: the power at the begin is that at the end"));
}

TEST(Gpupp, TablesOfKernelsHaveNoTimes) {
  for (const std::string text :
       {"kernel_name,exec_id,duration_ms,avg_power_w,energy_j\naten::mm,0,1.5,200,0.3\n",
        "kernel_name,total_duration_ms,avg_power_w,total_energy_j\naten::mm,1.5,200,0.3\n"}) {
    const auto recording = import_text(text);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_FALSE(recording->imported_windows[0].begin);
    EXPECT_EQ(recording->imported_windows[0].energies[0].energy, Energy::joules(0.3));
  }
  const std::string head = "kernel_name,exec_id,duration_ms,avg_power_w,energy_j\n";
  const auto too_much = import_text(head + "aten::mm,0,1,1775,1.775\n");
  EXPECT_TRUE(
      has_warning(*too_much, "1 of 1 windows: the mean power of gpu0 is above what any gpu"));
  const auto large = import_text(head + "aten::mm,0,1,1400,1.4\n");
  EXPECT_FALSE(has_warning(*large, "the mean power of gpu0 is above"));
  EXPECT_THAT(import_error("kernel_name,energy_j\na,1\n"), HasSubstr("line 2: it has no duration"));
  EXPECT_THAT(import_error("kernel_name,duration_ms,energy_j\na,1,x\n"),
              HasSubstr("energy_j is 'x', no energy"));
}

TEST(GpuppPeerFiles, AreFlagged) {
  JOULEPROF_PEER_FILE(kernels, "gpupp/kernel_demo_profile.csv");
  JOULEPROF_PEER_FILE(layers, "gpupp/layer_demo_profile.csv");
  auto recording = import_files({kernels});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "the mean power of gpu0 is above"));
  recording = import_files({layers});
  ASSERT_TRUE(recording) << recording.error().message;
  EXPECT_TRUE(has_warning(*recording, "the power at the begin is that at the end"));
}

}  // namespace
}  // namespace jouleprof::importers
