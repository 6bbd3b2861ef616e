#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/cli/measure/run_command.h"

namespace jouleprof::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

model::Profile run_of(double joules, double own, double undivided) {
  model::Profile profile;
  profile.end = profile.begin + duration_of(2.0);
  auto& gpu = profile.domains.emplace_back();
  gpu.domain.kind = model::DomainKind::kGpu;
  gpu.domain.device = "gpu0";
  gpu.domain.visible = true;
  gpu.energy = model::Measurement{};
  gpu.energy->energy = Energy::joules(joules);
  gpu.energy->error = Energy::joules(0.05 * joules);
  gpu.command = model::CommandEnergy{};
  gpu.command->energy.energy = Energy::joules(own);
  gpu.command->energy.error = Energy::joules(0.05 * own);
  gpu.command->undivided = Energy::joules(undivided);
  return profile;
}

TEST(RepeatedRuns, AreOfTheCommandWhereItsPartIsKnown) {
  const std::vector runs{RepeatedRun::of(run_of(300, 290, 1), false),
                         RepeatedRun::of(run_of(302, 292, 1), false)};
  EXPECT_THAT(progress_text(runs[0], 1, 2), HasSubstr("290.0 J, "));
  EXPECT_THAT(repeats_to_text(runs, {}, {}, {}),
              AllOf(HasSubstr("mean 291.0 J"), HasSubstr("of the command")));
}

// Of the command is anything from 1 J to 277 J: neither is its energy.
TEST(RepeatedRuns, AreOfAllDevicesWhereThePartOfOneIsNot) {
  const std::vector runs{RepeatedRun::of(run_of(300, 290, 1), false),
                         RepeatedRun::of(run_of(302, 0.9918, 276), false)};
  EXPECT_THAT(progress_text(runs[1], 2, 2), HasSubstr("302.0 J of all devices"));
  const std::string text = repeats_to_text(runs, report::UnitCount{10, "image"}, {}, {});
  EXPECT_THAT(text, AllOf(HasSubstr("mean 301.0 J"), HasSubstr("of all devices"),
                          Not(HasSubstr("at most"))));
}

}  // namespace
}  // namespace jouleprof::cli
