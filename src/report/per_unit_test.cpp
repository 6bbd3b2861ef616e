#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/costs/costs.h"
#include "report/example_profiles_test.h"
#include "report/format/format.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PerUnit, CountsAndNames) {
  EXPECT_EQ(parse_unit_count("22600:inference")->count, 22600);
  EXPECT_EQ(parse_unit_count("22600:inference")->name, "inference");
  EXPECT_EQ(parse_unit_count("1.5e6")->name, "unit");
  for (const auto* text : {"", ":image", "0:image", "-3", "many:image"}) {
    EXPECT_FALSE(parse_unit_count(text)) << text;
  }
}

TEST(PerUnit, IsOfTheCommand) {
  const model::Profile profile = gpu_profile();
  const Total total = total_of(profile);
  ASSERT_TRUE(total.command);
  EXPECT_LT(total.command->energy.energy, total.energy->energy);
  const PerUnit per = per_unit(profile, {1000, "token"});
  EXPECT_TRUE(per.is_command);
  EXPECT_DOUBLE_EQ(per.joules.value() * 1000, total.command->energy.energy.joules());
  EXPECT_DOUBLE_EQ(per.dynamic_joules.value() * 1000, total.command->processes.joules());
  EXPECT_NEAR((per.upper_error_joules - per.error_joules) * 1000, total.command->undivided.joules(),
              1e-6);
  EXPECT_THAT(per_unit_to_text(per, {}), HasSubstr("of the command"));
}

// Costs, too: all that is made of a lower bound is one.
TEST(PerUnit, OfALostDeviceIsAtLeastSoMuch) {
  PerUnit per = per_unit(gpu_profile(), {1000, "token"});
  per.is_partial = true;
  per.shown_money = 0.5;
  EXPECT_THAT(per_unit_to_text(per, {}), HasSubstr("at least "));
  EXPECT_THAT(per_unit_to_text(per, {}), HasSubstr("costs at least 0.5"));
  EXPECT_THAT(per_unit_to_text(per, {}), Not(HasSubstr("+")));
  per.error_joules = 2 * *per.joules;  // no upper bound, either
  EXPECT_THAT(per_unit_to_text(per, {}), Not(HasSubstr("at most")));
  Costs costs;
  costs.is_command = true;
  costs.energy = Energy::joules(100);
  costs.error = costs.upper_error = Energy::joules(5);
  costs.factors.price = Price{0.3, "EUR"};
  costs.money = 0.01;
  costs.is_partial = true;
  const auto lines = cost_lines(costs, false);
  EXPECT_THAT(lines[0].words, HasSubstr("at least 0.01000 EUR -5.0 %: at least 100.0 J"));
  const auto j = nlohmann::json::parse(to_json(gpu_profile(), &costs, nullptr, &per));
  for (const auto* key : {"costs", "per_unit"}) {
    EXPECT_TRUE(j[key]["interval_joules"][0].is_number()) << key;
    EXPECT_TRUE(j[key]["interval_joules"][1].is_null()) << key;
  }
}

TEST(PerUnit, OfAWholeMachineIsTheTotalOverTheCount) {
  model::Profile profile = gpu_profile();
  const Total total = total_of(profile);
  ASSERT_TRUE(total.energy && total.rest);
  const PerUnit per = per_unit(profile, {1000, "token"}, true);
  EXPECT_DOUBLE_EQ(per.joules.value() * 1000, total.energy->energy.joules());
  EXPECT_DOUBLE_EQ(per.error_joules * 1000, total.energy->error.joules());
  EXPECT_DOUBLE_EQ(per.dynamic_joules.value() * 1000,
                   (total.energy->energy - *total.rest).joules());
  EXPECT_DOUBLE_EQ(per.seconds * 1000, seconds(profile.duration()));
  EXPECT_THAT(per_unit_to_text(per, {}), HasSubstr("per token"));
  EXPECT_THAT(per_unit_to_text(per_unit(profile, {1e5, "token"}), {}),
              HasSubstr("for one, 100,000 of them"));

  PerUnit tiny = per;
  tiny.shown_money = 7.6e-8;
  tiny.currency = "EUR";
  EXPECT_THAT(per_unit_to_text(tiny, {}), HasSubstr("costs 0.07600 EUR per million"));

  for (auto& domain : profile.domains) domain.levels = {};
  const PerUnit whole = per_unit(profile, {1000, "token"}, true);
  EXPECT_FALSE(whole.dynamic_joules);
  EXPECT_THAT(per_unit_to_text(whole, {}), HasSubstr("rest included"));

  for (auto& domain : profile.domains) domain.energy.reset();
  EXPECT_THAT(per_unit_to_text(per_unit(profile, {10, "x"}), {}), HasSubstr("no energy is known"));
}

}  // namespace
}  // namespace jouleprof::report
