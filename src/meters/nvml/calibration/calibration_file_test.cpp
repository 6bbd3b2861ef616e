#include "meters/nvml/calibration/calibration_file.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "meters/nvml/calibration/state_folder_fixture.h"

namespace jouleprof::meters::nvml {
namespace {

using testing::HasSubstr;

class CalibrationFile : public StateFolder {
 protected:
  CalibrationFile() {
    const model::KnownLevel rest{Power::watts(80), Power::watts(1), {}, {}};
    EXPECT_TRUE(keep_levels({{"GPU-1", {rest, {}}}, {"GPU-2", {rest, {}}}, {"GPU-3", {}}}));
    EXPECT_TRUE(keep_calibrations({{"GPU-1", {}}}));
  }
};

TEST_F(CalibrationFile, ForgetsTheNamedDevicesWhole) {
  EXPECT_EQ(forget_devices({"GPU-1", "GPU-7"}), 1U);
  EXPECT_TRUE(read_calibrations().contains("GPU-2"));
  EXPECT_FALSE(read_calibrations().contains("GPU-1"));
  EXPECT_FALSE(read_levels().contains("GPU-1"));
  EXPECT_TRUE(read_levels().contains("GPU-2"));
}

TEST_F(CalibrationFile, ForgetsAllDevices) {
  EXPECT_EQ(forget_all_devices(), 2U);
  EXPECT_TRUE(read_calibrations().empty());
  EXPECT_TRUE(read_levels().empty());
  EXPECT_EQ(forget_all_devices(), 0U);
}

// A file that cannot be read is not replaced by an empty one.
TEST_F(CalibrationFile, AFileThatCannotBeReadStays) {
  const auto path = tree_ / "jouleprof/calibration.json";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  const auto forgotten = forget_all_devices();
  ASSERT_FALSE(forgotten);
  EXPECT_THAT(forgotten.error().message, HasSubstr(path.string()));
  EXPECT_TRUE(std::filesystem::is_directory(path));
}

}  // namespace
}  // namespace jouleprof::meters::nvml
