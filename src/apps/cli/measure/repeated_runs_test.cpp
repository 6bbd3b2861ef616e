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

// A GPU that was lost, or that one run does not have: its figures are not those of the others.
TEST(RepeatedRuns, WithoutADeviceOfTheOthersAreNotInTheMean) {
  const auto add_cpu = [](model::Profile profile) {
    auto& cpu = profile.domains.emplace_back(profile.domains[0]);
    cpu.domain.kind = model::DomainKind::kCpu;
    cpu.domain.device = "package-0";
    profile.domains[0].energy->repeatability = Energy::joules(3.1);
    cpu.energy->energy = cpu.command->energy.energy = Energy::joules(10);
    return profile;
  };
  auto lost = add_cpu(run_of(300, 290, 1));
  lost.domains[0].energy.reset();
  lost.domains[0].command.reset();
  auto absent = lost;
  lost.domains[0].least = lost.domains[1].energy;
  const auto of = [](const model::Profile& profile) { return RepeatedRun::of(profile, true); };
  const std::vector runs{of(add_cpu(run_of(300, 290, 1))), of(add_cpu(run_of(302, 292, 1))),
                         of(lost), of(absent)};
  report::TextOptions wide;
  wide.width = 300;
  EXPECT_THAT(progress_text(runs[2], 3, 4),
              HasSubstr("at least 20.00 J with at most a part of gpu0, "));
  EXPECT_THAT(progress_text(runs[3], 4, 4), HasSubstr(": 10.00 J without gpu0, "));
  EXPECT_THAT(repeats_to_text(runs, {}, {}, wide),
              AllOf(HasSubstr("mean 311.0 J"),
                    HasSubstr("; 2 of the runs, without a known energy of gpu0 and package-0, are "
                              "not in it")));
  EXPECT_THAT(repeats_to_text({of(lost), of(lost)}, {}, {}, {}), HasSubstr("no energy is known"));
  EXPECT_THAT(repeats_to_text({runs[0], runs[3]}, report::UnitCount{2, "image"}, {}, wide),
              HasSubstr("155.0 J ±9.7 % (repeatability ±1.0 %)"));
  EXPECT_THAT(repeats_to_text({runs[0], runs[3]}, {}, {}, wide),
              AllOf(HasSubstr("310.0 J of one run, ±9.7 %; how much runs vary is not known"),
                    Not(HasSubstr("deviation 0 J"))));
}

}  // namespace
}  // namespace jouleprof::cli
