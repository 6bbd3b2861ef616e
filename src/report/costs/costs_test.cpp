#include "report/costs/costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "analysis/recorded_run_test.h"
#include "report/format/format.h"
#include "report/total.h"

namespace jouleprof::report {
namespace {

using analysis::simulated::Recorded;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kHead =
    "Datetime (UTC),Country,Zone name,Zone id,Carbon intensity gCO2eq/kWh (direct),Carbon "
    "intensity gCO2eq/kWh (Life cycle),Data source,Data estimated\n";

// Ten seconds from 1 700 000 003 s on: 2023-11-14 22:13:23 UTC. 5 kJ of a GPU.
analysis::Run worked() {
  Recorded run;
  run.read_gpu();
  run.recording.domains.resize(1);
  run.recording.sensors.resize(2);
  return analysis::Run(run.recording);
}

Costs costs(const CostFactors& factors) {
  auto made = costs_of(worked(), {}, factors);
  EXPECT_TRUE(made) << made.error().message;
  return made ? std::move(*made) : Costs{};
}

TEST(Price, KeepsTheCurrency) {
  const auto price = [](std::string_view text) {
    const auto parsed = parse_price(text);
    return parsed ? std::pair(parsed->per_kilowatt_hour, parsed->currency)
                  : std::pair(-1.0, std::string());
  };
  EXPECT_EQ(price("0.30/kWh"), (std::pair(0.3, std::string())));
  EXPECT_EQ(price("0.30"), (std::pair(0.3, std::string())));
  EXPECT_EQ(price("0.30 EUR/kWh"), (std::pair(0.3, std::string("EUR"))));
  EXPECT_EQ(price("€0.30/kWh"), (std::pair(0.3, std::string("€"))));
  EXPECT_EQ(price("$ 2 /kWh"), (std::pair(2.0, std::string("$"))));
  for (const char* bad :
       {"", "EUR", "-1", "-1/kWh", "1 EUR 2", "$1EUR", "1/MWh/kWh", "300 EUR/MWh", "0.3/Wh"}) {
    EXPECT_EQ(parse_price(bad).error().code, Errc::kInvalidArgument) << bad;
  }
}

TEST(Costs, MultiplyTheTotalAndLeaveTheEnergy) {
  CostFactors factors;
  factors.price = Price{0.30, "EUR"};
  factors.grams = 230;
  factors.pue = 1.2;
  const auto c = costs(factors);
  const double kilowatt_hours = c.energy.joules() / 3.6e6;
  EXPECT_NEAR(c.energy.joules(), 5000, 10);
  EXPECT_DOUBLE_EQ(*c.money, kilowatt_hours * 1.2 * 0.30);
  EXPECT_DOUBLE_EQ(*c.carbon_grams, kilowatt_hours * 1.2 * 230);
  EXPECT_EQ(c.mean_grams, 230);
  EXPECT_NEAR(c.error.joules(), 0.05 * 5000, 5);
  factors.pue.reset();
  EXPECT_DOUBLE_EQ(*costs(factors).money, kilowatt_hours * 0.30);
}

// A command that hardly used anything: never "0.00", and no interval around it.
TEST(Costs, OfWhatCannotBeDistinguishedFromNothingAreAtMostSoMuch) {
  Costs costs;
  costs.factors.price = Price{0.30, "EUR"};
  costs.factors.grams = 100;
  costs.is_command = true;
  costs.upper_error = costs.error = Energy::joules(36);
  costs.money = costs.carbon_grams = 0;
  costs.mean_grams = 100;
  costs.domains = {"package-0"};
  const auto lines = cost_lines(costs, false);
  EXPECT_EQ(lines[0].words,
            "at most 0.000003000 EUR: at most 36.00 J of the command x 0.3 EUR/kWh (--price)");
  EXPECT_EQ(lines[1].words,
            "at most 0.001000 g CO2e: at most 36.00 J of the command x 100 g/kWh (--carbon)");
  PerUnit per;
  per.unit = {10, "sample"};
  per.joules = 0;
  per.error_joules = per.upper_error_joules = 3.6;
  per.is_command = true;
  per.provenance = model::Provenance::kEstimated;
  add_costs(per, costs);
  EXPECT_EQ(per.money, 0);
  EXPECT_THAT(per_unit_to_text(per, {}),
              AllOf(HasSubstr("at most 3.600 J, ESTIMATED, of the command"),
                    HasSubstr("at most 0.3000 EUR, 100.00 g CO2e per million")));
}

TEST(Costs, AreOfTheCommandUnlessTheMachineIsAskedFor) {
  analysis::simulated::Recorded shared;
  shared.read_gpu();
  shared.read_cpu();
  shared.add_processes();
  const analysis::Run run(shared.recording);
  const auto& profile = run.profile();
  ASSERT_TRUE(profile);
  const Total total = total_of(*profile);
  ASSERT_TRUE(total.command);
  CostFactors factors;
  factors.price = Price{0.30, "EUR"};
  factors.grams = 230;
  const auto own = costs_of(run, {}, factors);
  const auto all = costs_of(run, {}, factors, true);
  ASSERT_TRUE(own && all);
  EXPECT_TRUE(own->is_command);
  EXPECT_FALSE(all->is_command);
  EXPECT_EQ(own->energy, total.command->energy.energy);
  EXPECT_EQ(all->energy, total.energy->energy);
  EXPECT_EQ(own->energy + own->upper_error, total.command->high());
  EXPECT_NEAR(*own->money / *all->money, own->energy.joules() / all->energy.joules(), 1e-9);
  EXPECT_NEAR(*own->carbon_grams, own->energy.joules() / 3.6e6 * 230, 1e-9);
  // A series of one value is that value.
  factors.grams.reset();
  factors.series = CarbonSeries{"", "", "x.csv", std::chrono::hours{1}, {}};
  factors.series->steps = {{profile->start_time - std::chrono::minutes{1}, 230, false}};
  EXPECT_NEAR(*costs_of(run, {}, factors)->carbon_grams, *own->carbon_grams, 1e-6);
}

TEST(Costs, WithoutAFactorThereIsNoFigure) {
  CostFactors factors;
  factors.price = Price{0.30, ""};
  const auto c = costs(factors);
  EXPECT_FALSE(c.carbon_grams);
  EXPECT_FALSE(c.mean_grams);
}

TEST(Costs, ASeriesIsAppliedToEachOfItsTimes) {
  CostFactors factors;
  const RealTime begin{std::chrono::seconds{1'700'000'000}};
  factors.series = CarbonSeries{"DE", "life cycle", "de.csv", std::chrono::seconds{8}, {}};
  factors.series->steps = {{begin, 100, false}, {begin + std::chrono::seconds{8}, 400, true}};
  const auto c = costs(factors);
  // 5 s at 100 g/kWh and 5 s at 400 g/kWh, of constant power.
  EXPECT_NEAR(*c.mean_grams, 250, 1);
  EXPECT_NEAR(*c.carbon_grams, 5000 / 3.6e6 * 250, 0.002);
  EXPECT_EQ(c.steps, 2u);
  EXPECT_EQ(c.estimated_steps, 1u);
  factors.pue = 2;
  EXPECT_NEAR(*costs(factors).carbon_grams, 2 * *c.carbon_grams, 1e-12);
}

std::string page(const CostFactors& factors, bool redact = false) {
  std::ostringstream out;
  FormatOptions options;
  options.costs = factors;
  options.redact = redact;
  const auto written = find_format("html")->write(worked(), {}, options, out);
  EXPECT_TRUE(written) << written.error().message;
  return out.str();
}

// Failures must not print the page.
bool has(const std::string& html, std::string_view text) {
  return html.find(text) != std::string::npos;
}

TEST(Costs, AreOnThePageAndInItsData) {
  CostFactors factors;
  factors.price = Price{0.30, "<EUR>"};
  factors.grams = 230;
  const std::string html = page(factors);
  EXPECT_TRUE(has(html, "cost: 0.000416"));  // 5 kJ within 0.1 %
  EXPECT_TRUE(has(html, " &lt;EUR&gt; "));
  EXPECT_TRUE(has(html, "230 g/kWh (--carbon)"));
  EXPECT_TRUE(has(html, R"("price_per_kilowatt_hour":0.3)"));
  const std::string without = page({});
  EXPECT_TRUE(has(without, R"("costs":null)"));
  EXPECT_FALSE(has(without, "CO2e"));
}

TEST(Costs, ARedactedPageLeavesOutTheFileOfTheIntensity) {
  CostFactors factors;
  const RealTime begin{std::chrono::seconds{1'700'000'000}};
  factors.series = CarbonSeries{
      "DE", "direct", "/home/ada/de.csv", std::chrono::hours{1}, {{begin, 100, false}}};
  EXPECT_TRUE(has(page(factors), "ada/de.csv"));
  EXPECT_FALSE(has(page(factors, true), "de.csv"));
}

TEST(Costs, AMissingTimeIsAnErrorAndNoGuess) {
  CostFactors factors;
  const RealTime begin{std::chrono::seconds{1'700'000'000}};
  factors.series = CarbonSeries{"", "", "de.csv", std::chrono::seconds{8}, {{begin, 100, false}}};
  const auto none = costs_of(worked(), {}, factors);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("de.csv has no carbon intensity for 2023-11-14"));
}

TEST(CarbonSeries, ReadsElectricityMapsFiles) {
  const auto series =
      parse_carbon_series(std::string(kHead) +
                              "2023-11-14 23:00:00,Germany,Germany,DE,300.5,350.25,a,true\r\n"
                              "2023-11-14 22:00:00,Germany,Germany,DE,300,350,a,false\r\n"
                              "2023-11-15 00:00:00,Germany,Germany,DE,300,,a,false\r\n",
                          "de.csv");
  ASSERT_TRUE(series) << series.error().message;
  EXPECT_EQ(series->zone, "Germany");
  EXPECT_EQ(series->column, "life cycle");
  EXPECT_EQ(series->length, std::chrono::hours{1});
  ASSERT_EQ(series->steps.size(), 2u);
  EXPECT_EQ(series->steps[0].grams, 350);
  EXPECT_EQ(series->steps[0].begin, RealTime{std::chrono::seconds{1'699'999'200}});
  EXPECT_FALSE(series->steps[0].estimated);
  EXPECT_TRUE(series->steps[1].estimated);
}

TEST(CarbonSeries, RejectsOtherFiles) {
  const std::string head = kHead;
  for (const std::string& bad :
       {std::string(), std::string("a,b\n1,2\n"), head, head + "yesterday,G,G,DE,1,2,a,false\n",
        head + "2023-11-14 22:00:00,G,G,DE,1,-2,a,false\n",
        head + "2023-11-14 22:00:00,G,G,DE,1,x,a,false\n", head + "2023-11-14 22:00:00,G\n",
        head + "2023-13-14 22:00:00,G,G,DE,1,2,a,false\n",
        head + "2023-11-14 22:00:00+02:00,G,G,DE,1,2,a,false\n",
        head + "2023-11-14 22:00:00,G,G,DE,1,2,a,f\n2023-11-14 22:00:00,G,G,DE,1,2,a,f\n",
        head + "2023-11-14 22:00:00,G,G,DE,1,2,a,f\n2023-11-14 23:00:00,F,F,FR,1,2,a,f\n"}) {
    const auto series = parse_carbon_series(bad, "x.csv");
    ASSERT_FALSE(series) << bad;
    EXPECT_EQ(series.error().code, Errc::kCorrupt) << bad;
  }
}

TEST(Costs, AreInTextAndJsonWithTheirSources) {
  FormatOptions options;
  options.costs.price = Price{0.30, "EUR"};
  options.costs.grams = 230;
  options.costs.pue = 1.2;
  std::ostringstream text;
  ASSERT_TRUE(find_format("text")->write(worked(), {}, options, text));
  EXPECT_THAT(text.str(), AllOf(AnyOf(HasSubstr("0.0004999 EUR ±"), HasSubstr("0.0005000 EUR ±")),
                                HasSubstr("(--price)"), HasSubstr("g CO2e"),
                                HasSubstr("x PUE 1.2 (--pue)"), HasSubstr("not of fans")));
  std::ostringstream json;
  ASSERT_TRUE(find_format("json")->write(worked(), {}, options, json));
  const auto j = Json::parse(json.str());
  EXPECT_NEAR(j["costs"]["money"].get<double>(), 5000 / 3.6e6 * 1.2 * 0.3, 2e-6);
  EXPECT_EQ(j["costs"]["currency"], "EUR");
  EXPECT_EQ(j["costs"]["pue"], 1.2);
  EXPECT_EQ(j["costs"]["carbon_source"]["option"], "--carbon");
  EXPECT_NEAR(j["total"]["energy_joules"].get<double>(), 5000, 10);
  std::ostringstream without;
  ASSERT_TRUE(find_format("json")->write(worked(), {}, {}, without));
  EXPECT_TRUE(Json::parse(without.str())["costs"].is_null());
}

}  // namespace
}  // namespace jouleprof::report
