#include <gmock/gmock.h>

#include "meters/nvml/calibration/calibrator.h"
#include "meters/nvml/nvml_meter_fixture.h"

namespace jouleprof::meters {
namespace {

using nvml::BoardLook;
using testing::HasSubstr;
using testing::Optional;

using BoardLookTest = NvmlMeterTest;

TEST_F(BoardLookTest, IsOfTheOneBoard) {
  add_hopper().compute = {{7, 500, 0, 0}};
  auto& second = add_hopper();
  second.temperature = 55;
  open();
  const BoardLook first_look = look_at(*meter_, meter_->gpus()[0]);
  EXPECT_EQ(first_look.processes, 1);
  EXPECT_EQ(first_look.temperature, 41);
  EXPECT_EQ(first_look.sm_clock, 1980e6);
  EXPECT_EQ(first_look.utilisation, 0.87);
  const BoardLook second_look = look_at(*meter_, meter_->gpus()[1]);
  EXPECT_EQ(second_look.processes, 0);
  EXPECT_EQ(second_look.temperature, 55);
}

TEST(BoardLook, ABoardIsAtRestWithoutContextAndWithClocksDown) {
  EXPECT_EQ((BoardLook{0, 345e6, 0, 31}.not_at_rest()), std::nullopt);
  EXPECT_EQ((BoardLook{0, {}, {}, {}}.not_at_rest()), std::nullopt);
  EXPECT_EQ((BoardLook{{}, 345e6, {}, {}}.not_at_rest()), std::nullopt);
  EXPECT_THAT((BoardLook{2, 345e6, 0, 31}.not_at_rest()), Optional(HasSubstr("2 process(es)")));
  EXPECT_THAT((BoardLook{0, 1980e6, 0, 31}.not_at_rest()), Optional(HasSubstr("1980 MHz")));
  EXPECT_THAT((BoardLook{0, 345e6, 0.5, 31}.not_at_rest()), Optional(HasSubstr("50 %")));
  EXPECT_THAT((BoardLook{{}, {}, 0, 31}.not_at_rest()), Optional(HasSubstr("neither")));
}

}  // namespace
}  // namespace jouleprof::meters
