#include "analysis/sweep/sweep.h"

#include <gtest/gtest.h>

namespace jouleprof::analysis {
namespace {

model::ImportedWindow window(const char* limit, double seconds, std::vector<double> joules,
                             const char* batch = "64") {
  model::ImportedWindow w;
  w.name = "epoch";
  w.duration = duration_of(seconds);
  for (std::uint32_t i = 0; i < joules.size(); ++i) {
    w.energies.push_back({model::DomainId{i}, Energy::joules(joules[i])});
  }
  w.labels = {{"batch_size", batch}};
  if (limit != nullptr) w.labels.push_back({"power_limit_watts", limit});
  return w;
}

model::Recording recording(std::vector<model::ImportedWindow> windows) {
  model::Recording r;
  for (std::uint32_t i = 0; i < 2; ++i) {
    r.domains.push_back({model::DomainId{i},
                         model::DomainKind::kGpu,
                         "gpu" + std::to_string(i),
                         "",
                         "",
                         {},
                         true,
                         ""});
  }
  r.domains.push_back(
      {model::DomainId{2}, model::DomainKind::kCpu, "package-0", "", "", {}, true, ""});
  r.imported_windows = std::move(windows);
  return r;
}

TEST(Sweep, WindowsOfOneSettingAreSamplesOfOnePoint) {
  const auto sweeps = sweeps_of(recording({window("200", 12, {100}), window("300", 10, {120}),
                                           window("200", 14, {104}), window("300", 10, {130})}));
  ASSERT_EQ(sweeps.size(), 1U);
  ASSERT_EQ(sweeps[0].points.size(), 2U);
  EXPECT_EQ(sweeps[0].knob, "power_limit_watts");
  EXPECT_EQ(sweeps[0].points[0].setting, 300);
  EXPECT_EQ(sweeps[0].points[1].samples.size(), 2U);
  EXPECT_DOUBLE_EQ(sweeps[0].points[1].mean_seconds(), 13);
  EXPECT_DOUBLE_EQ(sweeps[0].points[1].mean_joules(), 102);
}

TEST(Sweep, EachSetOfOtherLabelsIsASweepOfItsOwn) {
  const auto sweeps =
      sweeps_of(recording({window("200", 12, {100}, "32"), window("200", 12, {100}, "64")}));
  ASSERT_EQ(sweeps.size(), 2U);
  EXPECT_EQ(sweeps[0].labels[0].value, "32");
}

TEST(Sweep, EnergyIsTheSumOfTheGpusWithoutTheCpu) {
  const auto sweeps = sweeps_of(recording({window("200", 12, {100, 50, 1000})}));
  EXPECT_DOUBLE_EQ(sweeps.at(0).points.at(0).mean_joules(), 150);
}

TEST(Sweep, WindowsWithoutAKnobAndWithoutFiguresAreLeftOut) {
  const auto sweeps = sweeps_of(recording({window(nullptr, 12, {100}), window("200", 0, {100}),
                                           window("200", 12, {}), window("x", 1, {1})}));
  ASSERT_EQ(sweeps.size(), 1U);
  EXPECT_EQ(sweeps[0].left_out, 2U);
  EXPECT_TRUE(sweeps[0].points.empty());
}

}  // namespace
}  // namespace jouleprof::analysis
