#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "analysis/synthetic_run_test.h"
#include "report/example_profiles_test.h"
#include "report/figures.h"
#include "report/quantity.h"
#include "report/svg/svg_format.h"

namespace jouleprof::report {
namespace {

using analysis::simulated::SyntheticRun;
using ::testing::HasSubstr;
using ::testing::Not;

analysis::Run example_run() {
  SyntheticRun run;
  run.kernels = analysis::simulated::various_kernels(4);
  run.seconds = 10;
  return analysis::Run(analysis::simulated::synthesise(run).recording);
}

std::string balance_of(const model::Profile& profile) {
  Drawing drawing("");
  draw_balance(drawing, 0, profile);
  return drawing.document(100, 100, "");
}

TEST(BalanceParts, SumToTheEnergyExactly) {
  const auto profile = gpu_profile();
  for (const auto& domain : profile.domains) {
    if (!domain.energy) continue;
    Energy sum;
    for (const auto& part : balance_parts(profile, domain)) sum += part.energy;
    EXPECT_EQ(sum, domain.energy->energy) << domain.domain.device;
  }
}

TEST(BalanceParts, OfADomainThatIsNotDividedAreItsLevels) {
  auto profile = gpu_profile();
  profile.processes.clear();
  auto& gpu = profile.domains.front();
  gpu.idle_part = gpu.others = gpu.held_unowned = gpu.unattributed = std::nullopt;
  std::vector<std::string> labels;
  for (const auto& part : balance_parts(profile, gpu)) labels.emplace_back(part.label);
  EXPECT_EQ(labels, (std::vector<std::string>{"rest", "held", "dynamic, not attributed"}));
  gpu.levels = {};
  ASSERT_EQ(balance_parts(profile, gpu).size(), 1U);
  EXPECT_EQ(balance_parts(profile, gpu).front().energy, gpu.energy->energy);
}

TEST(BalanceParts, HeldEnergyOfNoProcessIsAPartOfItsOwn) {
  auto profile = gpu_profile();
  auto& gpu = profile.domains.front();
  gpu.held_unowned = gpu.levels.held->energy;
  profile.processes.front().shares.front().energy -= *gpu.held_unowned;
  const auto parts = balance_parts(profile, gpu);
  const auto unowned = std::find_if(parts.begin(), parts.end(),
                                    [](const auto& p) { return p.label == "held, unowned"; });
  ASSERT_NE(unowned, parts.end());
  EXPECT_EQ(unowned->energy, *gpu.held_unowned);
  EXPECT_TRUE(unowned->level);  // the interval of all held energy
  Energy sum;
  for (const auto& part : parts) sum += part.energy;
  EXPECT_EQ(sum, gpu.energy->energy);
}

TEST(RunSvg, NegativeUnattributedEnergyIsInTheListAndHasNoWidth) {
  auto profile = gpu_profile();
  auto& gpu = profile.domains.front();
  *gpu.idle_part += *gpu.unattributed + Energy::joules(12);
  gpu.unattributed = Energy::joules(-12);
  const auto svg = balance_of(profile);
  EXPECT_THAT(svg, HasSubstr("unattributed -12.00 J (-"));
  EXPECT_THAT(svg, Not(HasSubstr("data-part=\"unattributed\" data-joules=\"-")));
}

TEST(RunSvg, WithoutAnEnergyTheReasonsAreThere) {
  auto profile = gpu_profile();
  for (auto& domain : profile.domains) {
    domain.energy.reset();
    domain.reason = "<no> sensor";
  }
  Drawing drawing("");
  draw_headline(drawing, 0, profile);
  EXPECT_THAT(drawing.document(1, 1, ""), HasSubstr("no energy"));
  const auto svg = balance_of(profile);
  EXPECT_THAT(svg, HasSubstr("UNAVAILABLE gpu0: &lt;no&gt; sensor"));
  EXPECT_THAT(svg, Not(HasSubstr("data-joules")));
}

TEST(RunSvg, HasACurveOfTheWholeRunAndOfAPart) {
  const auto run = example_run();
  const auto whole = run_svg(run, {}, {});
  const auto part = run_svg(run, {std::chrono::seconds{2}, std::chrono::seconds{6}}, {});
  ASSERT_TRUE(whole && part);
  for (const auto& svg : {*whole, *part}) {
    EXPECT_THAT(svg, HasSubstr("data-domain=\"0\""));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
  EXPECT_NE(*whole, *part);
}

// A square wave whose period is a little more than two steps.
TEST(RunSvg, TheLineOfCoarseStepsHasNoBeatOfThePower) {
  constexpr std::size_t kCount = 400;
  PowerTrack track;
  track.step = std::chrono::seconds{10};
  track.end = track.begin + kCount * track.step;
  for (std::size_t i = 0; i < kCount; ++i) {
    const double phase = std::fmod(10.0 * static_cast<double>(i), 20.5) / 20.5;
    const double part = std::clamp(1 - 2 * std::abs(phase - 0.25), 0.0, 1.0);
    track.steps.push_back({{Energy::joules(10 * (200 + 200 * part)), Energy::joules(50), {}}});
    track.extremes.push_back({{200, 400}});
  }
  auto profile = gpu_profile();
  profile.domains.resize(1);
  track.id = profile.domains[0].domain.id;
  Drawing drawing("");
  draw_timeline(drawing, 0, profile, {track}, track.begin);
  const auto svg = drawing.document(1, 1, "");
  const auto line = svg.substr(svg.find("data-domain") - 9000, 9000);
  const auto places = line.substr(line.rfind("<path d=\"") + 9);
  std::vector<double> heights;
  std::istringstream read(places.substr(0, places.find('"')));
  for (std::string word; read >> word;) {
    if (word.find('H') != std::string::npos) heights.push_back(std::stod(word));
  }
  ASSERT_EQ(heights.size(), kCount / 8);
  const auto [least, most] = std::minmax_element(heights.begin(), heights.end());
  EXPECT_LT(*most - *least, 96 * 0.15);  // of a swing of half the chart
}

TEST(Axis, HasRoundNumbers) {
  EXPECT_EQ(ticks(0, 100), (std::vector<double>{0, 50, 100}));
  const auto around = padded_axis(5, 5, 0, 10);
  EXPECT_DOUBLE_EQ(around.at(5), 5);
}

TEST(Png, IsDrawnOrItsLibraryIsNamed) {
  const auto png = png_of_svg(
      R"(<svg xmlns="http://www.w3.org/2000/svg" width="10" height="6"><rect width="10" height="6"/></svg>)");
  if (!png) {
    EXPECT_EQ(png.error().code, Errc::kUnavailable);
    EXPECT_THAT(png.error().message, HasSubstr("librsvg2-2"));
    return;
  }
  EXPECT_THAT(*png, ::testing::StartsWith("\x89PNG\r\n"));
  EXPECT_EQ(png->substr(16, 8), std::string("\0\0\0\x14\0\0\0\x0c", 8));  // 20 x 12
  const auto broken = png_of_svg("<svg");
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, Errc::kInternal);
}

}  // namespace
}  // namespace jouleprof::report
