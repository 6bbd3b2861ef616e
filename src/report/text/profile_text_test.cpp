#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "base/text.h"
#include "report/cells.h"
#include "report/example_profiles_test.h"
#include "report/format/format.h"
#include "report/headline_text.h"
#include "report/total.h"
#include "tests/support/golden.h"

namespace jouleprof::report {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<std::string_view> lines_of(const std::string& text) {
  auto lines = split(text, '\n');
  lines.pop_back();
  return lines;
}

TEST(ProfileText, GpuMachine) {
  TextOptions options;
  options.height = 24;
  options.recording_path = "train.jprof";
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/gpu.txt", to_text(gpu_profile(), options)));
}

TEST(ProfileText, TheCommandsEnergyComesBeforeTheTotal) {
  auto profile = gpu_profile();
  const auto one_line = [](const std::string& text) {
    std::string joined;
    for (const auto line : split(text, '\n')) {
      for (const auto word : split(line, ' ')) {
        if (!word.empty()) joined += std::string(word) + " ";
      }
    }
    return joined;
  };
  const std::string text = one_line(to_text(profile));
  // 37.49 kJ less 232.5 J of others and 61.54 J that are not divided.
  EXPECT_THAT(text, HasSubstr("command 37.19 kJ "));
  EXPECT_LT(text.find("command 37.19 kJ"), text.find("total 37.49 kJ"));
  EXPECT_THAT(text, HasSubstr("61.54 J more may be its own: of no known process"));

  auto& package = profile.domains[1];
  package.command->energy.energy -= *package.command->rest;
  package.command->rest.reset();
  EXPECT_THAT(one_line(to_text(profile)),
              AllOf(HasSubstr("command 29.85 kJ "),
                    HasSubstr("rest of package-0 is not its own: others used it")));

  // The board's instances may be of several owners, though no others used it.
  profile.domains[0].command->rest.reset();
  auto instance = profile.domains[0];
  instance.domain.id = model::DomainId{9};
  instance.domain.parent = profile.domains[0].domain.id;
  instance.domain.uuid = "MIG-1";
  instance.energy.reset();
  profile.domains.push_back(instance);
  EXPECT_THAT(one_line(to_text(profile)),
              AllOf(HasSubstr("rest of package-0 is not its own: others used it"),
                    HasSubstr("rest of gpu0 is not its own: MIG divides it")));
  TextOptions whole;
  whole.whole_machine = true;
  EXPECT_THAT(one_line(to_text(profile, whole)),
              AllOf(Not(HasSubstr("command 29.85")), HasSubstr("total 37.49 kJ")));
  for (auto& d : profile.domains) d.command.reset();
  profile.command_reason = "the recording is of a machine, not a command";
  EXPECT_THAT(one_line(to_text(profile)),
              AllOf(Not(HasSubstr("command 29.85")), HasSubstr("is of a machine, not a command")));
}

TEST(ProfileText, VirtualMachineWithAnEstimateOnly) {
  TextOptions options;
  options.height = 24;
  options.recording_path = "make.jprof";
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/vm.txt", to_text(vm_profile(), options)));
}

TEST(ProfileText, LostGpuWithWarningsAndManyProcesses) {
  TextOptions options;
  options.height = 24;
  options.recording_path = "runs/big one.jprof";
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/lost.txt", to_text(lost_profile(), options)));
}

TEST(ProfileText, TheAnswerComesFirst) {
  TextOptions options;
  options.height = 40;
  options.recording_path = "train.jprof";
  options.details = false;
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/gpu_brief.txt", to_text(gpu_profile(), options)));
  EXPECT_TRUE(matches_golden(JOULEPROF_TESTDATA "/vm_brief.txt", to_text(vm_profile(), options)));
  for (const auto& profile : {gpu_profile(), vm_profile(), lost_profile()}) {
    const std::string text = to_text(profile, options);
    EXPECT_LE(lines_of(text).size(), 15U) << text;
    for (const auto line : lines_of(text)) EXPECT_LE(display_width(line), 80U) << line;
  }
}

TEST(ProfileText, WithoutAGpuThatWasLostTheEnergyIsALowerBound) {
  auto profile = lost_profile();
  for (auto& domain : profile.domains) {
    if (!domain.energy && domain.domain.kind == model::DomainKind::kGpu) {
      domain.least.emplace().energy = Energy::joules(1200.742);
      domain.least->error = Energy::joules(60);
    }
  }
  TextOptions options;
  options.width = 120;
  const auto text = to_text(profile, options);
  EXPECT_THAT(text, ::testing::StartsWith("PARTIAL: at least 1.143 kWh (4.116 MJ -5.0 %)"));
  EXPECT_THAT(text, HasSubstr("at least 4.116 MJ -5.0 % (repeatability"));
  const auto total = total_of(profile);
  EXPECT_EQ(quoted_interval_text(*quoted(total, true)).find(" to "), std::string::npos);
  EXPECT_THAT(partial_text(profile, total), HasSubstr("gpu1 took 1.201 kJ while it had readings"));
  // All that is known is in the sum, with its error; and what is known of nothing else, too.
  const auto without = total_of(lost_profile());
  EXPECT_EQ(total.energy->energy, without.energy->energy + Energy::joules(1200.742));
  EXPECT_EQ(total.energy->error, without.energy->error + Energy::joules(60));
  EXPECT_FALSE(total.rest);
  std::erase_if(profile.domains, [](const auto& d) { return d.energy.has_value(); });
  const auto alone = total_of(profile);
  ASSERT_TRUE(alone.energy);
  EXPECT_EQ(alone.energy->energy, Energy::joules(1200.742));
  EXPECT_FALSE(alone.command);
  EXPECT_THAT(to_text(profile, options),
              AllOf(HasSubstr("at least 1.201 kJ"), HasSubstr("the command's part is unknown")));
}

TEST(ProfileText, ALostMeterOfTheMachineTakesNothingFromTheTotal) {
  auto profile = gpu_profile();
  const auto before = total_of(profile);
  auto& wall = profile.domains.emplace_back();
  wall.domain.id = model::DomainId{99};
  wall.domain.kind = model::DomainKind::kPlatform;
  wall.domain.device = "wall";
  wall.domain.visible = true;
  wall.reason = "its readings end 3.0 s after the work began";
  wall.least.emplace().energy = Energy::joules(1505);
  const auto total = total_of(profile);
  EXPECT_FALSE(total.lost);
  ASSERT_TRUE(total.energy && before.energy);
  EXPECT_EQ(total.energy->energy, before.energy->energy);
  ASSERT_TRUE(total.command);
  EXPECT_FALSE(total.command->is_partial);
  EXPECT_EQ(partial_text(profile, total), "");
  // With a device that the total would contain, only that one is more.
  profile.domains[0].energy.reset();
  profile.domains[0].least.emplace().energy = Energy::joules(7);
  EXPECT_EQ(total_of(profile).lost, Energy::joules(7));
  EXPECT_THAT(partial_text(profile, total_of(profile)),
              AllOf(HasSubstr("took 7.000 J while"), Not(HasSubstr("wall"))));
}

TEST(ProfileText, TheAnswerSaysWhatIsEstimatedAndWhatIsMissing) {
  TextOptions options;
  options.width = 120;
  options.details = false;
  const auto first_line = [&options](const model::Profile& profile) {
    return std::string(lines_of(to_text(profile, options)).front());
  };
  auto profile = gpu_profile();
  EXPECT_THAT(first_line(profile), AllOf(HasSubstr("10.41 Wh (37.49 kJ"),
                                         HasSubstr("of it your command 10.33 Wh to 10.35 Wh"),
                                         Not(HasSubstr("estimated"))));
  profile.domains[1].energy->provenance = model::Provenance::kEstimated;
  EXPECT_THAT(first_line(profile), HasSubstr("CPU 30 % (estimated)"));
  // Never zero: a command that hardly used a device has less than can be seen.
  for (auto& d : profile.domains) {
    if (d.command) {
      d.command->energy.energy = d.command->processes = d.command->undivided = Energy{};
      d.command->rest.reset();
      d.command->energy.error = Energy::joules(1.8);
    }
  }
  EXPECT_THAT(first_line(profile), HasSubstr("of it your command at most 1.500 mWh"));
  // A lost device may have had any amount more.
  profile.domains[0].energy.reset();
  profile.domains[0].least.emplace().energy = Energy::joules(20);
  EXPECT_THAT(first_line(profile), AllOf(HasSubstr("PARTIAL: at least"),
                                         HasSubstr("of it your command an unknown part")));
  options.details = true;
  options.width = 300;
  const auto text = to_text(profile, options);
  EXPECT_THAT(text,
              AllOf(Not(HasSubstr("at least 0 J")), Not(HasSubstr("processes 0 J")),
                    HasSubstr("the command's part is unknown: a device lacks readings of a part")));
  profile.domains[0] = gpu_profile().domains[0];
  profile.domains[0].command = profile.domains[1].command;
  for (auto& d : profile.domains) {
    if (d.command) d.command->energy.error = Energy{};
  }
  EXPECT_THAT(first_line(profile), HasSubstr("of it your command nothing that was seen"));
  profile = gpu_profile();
  profile.domains[0].energy.reset();
  profile.domains[0].reason = "lost";
  EXPECT_THAT(first_line(profile), HasSubstr("; without GPU"));
  for (auto& d : profile.domains) d.energy.reset();
  EXPECT_THAT(first_line(profile), AllOf(HasSubstr("unavailable"), Not(HasSubstr("0 J"))));
  options.whole_machine = true;
  EXPECT_THAT(first_line(gpu_profile()), Not(HasSubstr("your command")));
}

TEST(ProfileText, TheCommandsPartHasItsOwnIntervalWhereTheTotalsIsNarrower) {
  TextOptions options;
  options.width = 140;
  options.details = false;
  const auto first_line = [&options](const model::Profile& profile) {
    return std::string(lines_of(to_text(profile, options)).front());
  };
  auto profile = gpu_profile();
  auto& own = *profile.domains[0].command;
  const auto domain = own.energy;
  EXPECT_THAT(first_line(profile), Not(HasSubstr("(95 %")));
  // The division leaves 10 kJ below it open, and the two figures are no bounds.
  own.energy.error += Energy::joules(5000);
  own.energy.shift -= 5000 / own.energy.energy.joules();
  EXPECT_THAT(first_line(profile),
              HasSubstr("your command 10.33 Wh (95 %: 7.033 Wh to 10.87 Wh);"));
  own.energy = domain;
  own.energy.error += Energy::joules(1000);
  EXPECT_THAT(first_line(profile),
              HasSubstr("your command 10.33 Wh (95 %: 9.533 Wh to 11.15 Wh);"));
}

TEST(ProfileText, SharesThatUtilisationLeavesOpenHaveTheirBounds) {
  auto profile = gpu_profile();
  EXPECT_THAT(to_text(profile, {}), Not(HasSubstr("is uncertain")));
  ASSERT_FALSE(profile.processes[0].shares.empty());
  auto& share = profile.processes[0].shares[0];
  share.bounds = model::DivisionBounds{Energy::joules(0.95 * share.energy.joules()),
                                       Energy::joules(1.05 * share.energy.joules())};
  EXPECT_THAT(to_text(profile, {}), Not(HasSubstr("is uncertain")));
  share.bounds->low = Energy{};
  EXPECT_THAT(to_text(profile, {}), HasSubstr("gpu: the division by use is uncertain: "));
}

TEST(ProfileText, OneGpuFitsOneScreen) {
  TextOptions options;
  options.details = false;
  options.height = 24;
  options.recording_path = "train.jprof";
  auto profile = gpu_profile();
  profile.warnings = {"one", "two", "three", "four", "five"};
  const std::string text = to_text(profile, options);
  EXPECT_LE(lines_of(text).size(), 24u) << text;
  for (const auto line : lines_of(text)) EXPECT_LE(display_width(line), 80u) << line;
  EXPECT_THAT(text, HasSubstr("4 more warnings"));
}

TEST(ProfileText, AFindingIsWholeWhereThereIsRoom) {
  auto profile = gpu_profile();
  ASSERT_FALSE(profile.findings.empty());
  std::string& step = profile.findings.front().next_step;
  for (int i = 0; i < 6; ++i) step += " Use larger batches, or release the GPU.";
  step += " The end.";
  TextOptions options;
  options.height = 24;
  EXPECT_THAT(to_text(profile, options), Not(HasSubstr("The end.")));
  options.height = 40;
  EXPECT_THAT(to_text(profile, options), HasSubstr("The end."));
  options.height.reset();  // a file
  EXPECT_THAT(to_text(profile, options), HasSubstr("The end."));
}

TEST(ProfileText, TwelveGpusAreFoldedIntoAScreensWidth) {
  model::Profile profile = gpu_profile();
  auto gpu = profile.domains[0];
  profile.domains.clear();
  for (unsigned i = 0; i < 12; ++i) {
    gpu.domain.id = model::DomainId{i};
    gpu.domain.device = "gpu" + std::to_string(i);
    profile.domains.push_back(gpu);
  }
  const std::string text = to_text(profile);
  for (const auto line : lines_of(text)) EXPECT_LE(display_width(line), 80u) << line;
  EXPECT_THAT(text, AllOf(HasSubstr("gpu6 "), Not(HasSubstr("gpu7 ")), HasSubstr("5 more")));
  // 5 times 24 871.204518 J, and 12 times.
  EXPECT_THAT(text, AllOf(HasSubstr("124.4 kJ"), HasSubstr("total      298.5 kJ"),
                          HasSubstr("12 domains")));
}

TEST(ProfileText, NothingMeasuredSaysSo) {
  const std::string text = to_text(model::Profile{});
  EXPECT_THAT(text, HasSubstr("unavailable: no device"));
  EXPECT_THAT(text, Not(HasSubstr("0 J")));
  EXPECT_THAT(text, Not(HasSubstr("next")));
}

TEST(ProfileText, ASimulationIsNotToBeOverlooked) {
  auto profile = gpu_profile();
  profile.simulated = true;
  for (auto& d : profile.domains) d.energy->provenance = model::Provenance::kSimulated;
  const std::string text = to_text(profile);
  EXPECT_THAT(text, StartsWith("SIMULATED"));
  EXPECT_EQ(text.find(" measured\n"), std::string::npos) << text;
  EXPECT_THAT(text, HasSubstr(", SIMULATED:"));
}

TEST(ProfileText, ATotalIsAsGoodAsItsWorstPart) {
  auto profile = gpu_profile();
  profile.domains[1].energy->provenance = model::Provenance::kEstimated;
  EXPECT_THAT(to_text(profile), HasSubstr("(repeatability \xC2\xB1"
                                          "0.2 %), ESTIMATED:"));
}

TEST(ProfileText, PartsThatDoNotSumAreShouted) {
  auto profile = gpu_profile();
  *profile.domains[0].balance.parts += Energy::joules(3);
  EXPECT_THAT(to_text(profile), HasSubstr("differs by 3.000 J"));
}

// Columns continue below; no figure is left out or parted from its unit.
TEST(ProfileText, SixtyColumnsHaveRoomForAllFigures) {
  for (const bool details : {false, true}) {
    TextOptions options;
    options.details = details;
    options.width = 120;
    const std::string wide = to_text(gpu_profile(), options);
    options.width = 60;
    const std::string narrow = to_text(gpu_profile(), options);
    for (const std::string_view line : lines_of(narrow)) EXPECT_LE(display_width(line), 60) << line;
    const std::regex figure("[0-9.]+ (m|k|M)?(J|W|Wh)\\b");
    std::set<std::string> missing;
    for (std::sregex_iterator it(wide.begin(), wide.end(), figure), end; it != end; ++it) {
      if (narrow.find(it->str()) == std::string::npos) missing.insert(it->str());
    }
    EXPECT_THAT(missing, testing::IsEmpty());
  }
}

TEST(ProfileText, ColourOnlyWhenAskedAndAsciiOnlyWhenAsked) {
  TextOptions options;
  options.height = 24;
  const auto profile = vm_profile();
  EXPECT_EQ(to_text(profile, options).find('\x1b'), std::string::npos);
  options.colour = true;
  EXPECT_NE(to_text(profile, options).find("\x1b[1;33mESTIMATED\x1b[0m"), std::string::npos);
  options.colour = false;
  options.ascii = true;
  const std::string ascii = to_text(profile, options);
  EXPECT_TRUE(std::all_of(ascii.begin(), ascii.end(), [](char c) { return c > 0; })) << ascii;
  EXPECT_THAT(ascii, HasSubstr("+-70 %"));
}

TEST(ProfileText, NamesCannotDriveTheTerminal) {
  auto profile = gpu_profile();
  const std::string evil =
      "\x1b[2J\x1b]0;title\x07 bad\xFF\xC2\x9B"
      "31m\r\nexit status 0";
  profile.run.command = {evil};
  profile.run.host = evil;
  profile.processes[0].process.command_line = evil;
  profile.domains[0].domain.device = evil;
  profile.domains[3].energy.reset();
  profile.domains[3].reason = evil;
  profile.warnings = {evil};
  TextOptions options;
  options.height = 24;
  options.recording_path = evil;
  const std::string text = to_text(profile, options);
  for (const char c : {'\x1b', '\x07', '\r', '\xFF', '\x9B'}) {
    EXPECT_EQ(text.find(c), std::string::npos) << static_cast<int>(c);
  }
}

TEST(ProfileText, TheNextCommandIsGivenInFull) {
  TextOptions options;
  options.height = 24;
  options.next_command = "jouleprof export " + std::string(100, 'x') + ".jprof";
  const std::string text = to_text(gpu_profile(), options);
  EXPECT_THAT(std::string(lines_of(text).back()), HasSubstr(options.next_command));
}

TEST(ProfileText, APartOfARunSaysWhichPart) {
  auto profile = gpu_profile();
  profile.begin = at(110);
  profile.end = at(112.5);
  profile.start_time += std::chrono::seconds{10};
  EXPECT_THAT(to_text(profile), HasSubstr("from 10.00 s to 12.50 s of the run"));
  // The result is that of the run.
  EXPECT_THAT(to_text(profile),
              HasSubstr("exit status 0 after 83.42 s, started 2026-11-20 14:03:11"));
  EXPECT_THAT(to_text(gpu_profile()), Not(HasSubstr("of the run")));
}

}  // namespace
}  // namespace jouleprof::report
