#include "apps/cli/control/sweep_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>

#include "analysis/sweep/recommend.h"
#include "apps/cli/bench/bench_workload.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "base/file.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "session/run/session.h"
#include "session/sweep/output_tap.h"

namespace jouleprof::cli {

using meters::control::BoardState;
using meters::control::Knob;

namespace {

constexpr std::size_t kSpread = 8;
constexpr std::size_t kMostSettings = 50;

Result<std::pair<double, double>> parse_range(const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() == 2) {
    const auto low = parse_number(parts[0]);
    const auto high = parse_number(parts[1]);
    if (low && high && *low > 0 && *low < *high) return std::pair(*low, *high);
  }
  return fail(
      Errc::kInvalidArgument,
      fmt::format("--range {}: give the least and the highest setting, such as 300:700", text));
}

constexpr Duration kSettle = std::chrono::milliseconds{500};

meters::MeterOptions meter_options(const model::SweepPlan& plan) {
  meters::MeterOptions options;
  options.demand.shortest_window = std::chrono::seconds{1};
  // Clocks show a steady state, and limits the time of a change.
  if (!plan.bench.empty() || plan.observe) {
    options.demand.state_period = std::chrono::milliseconds{250};
  }
  return options;
}

void read_bench(const BenchResult& bench, SweepWorkDone& done) {
  const auto document = bench.read();
  if (!document || document->cases.empty()) {
    done.failure = document ? "the workload measured nothing" : document.error().message;
    return;
  }
  const auto& measured = document->cases.front();
  done.report.bench = session::BenchWork{measured.window, measured.iterations};
  if (!measured.steady) done.remark = "not steady: " + measured.not_steady;
}

}  // namespace

Result<double> parse_amount(std::string_view option, std::string_view text, std::string_view unit,
                            const char* example) {
  std::string_view digits = text;
  if (digits.ends_with(unit)) digits.remove_suffix(unit.size());
  const auto number = parse_number(trim(digits));
  if (number && *number >= 0) return *number;
  return fail(
      Errc::kInvalidArgument,
      fmt::format("{} {}: give a number that is not negative, such as {}", option, text, example));
}

void ObjectiveChoice::declare(CLI::App& app) {
  add(app, "--objective", objective);
  add(app, "--eta", eta)->check(within(0, 1));
  add(app, "--max-slowdown", max_slowdown);
  add(app, "--max-power", max_power);
}

Result<void> ObjectiveChoice::set(model::SweepPlan& plan) const {
  if (!objective.empty()) plan.objective = objective;
  if (!analysis::parse_objective(plan.objective)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--objective {}: give energy, edp, ed2p, cost or time", objective));
  }
  plan.eta = eta.value_or(plan.eta);
  if (!max_slowdown.empty()) {
    const auto percent = parse_amount("--max-slowdown", max_slowdown, "%", "5%");
    if (!percent) return forward_error(percent);
    plan.max_slowdown = *percent / 100;
  }
  if (!max_power.empty()) {
    const auto watts = parse_amount("--max-power", max_power, "W", "300");
    if (!watts) return forward_error(watts);
    plan.max_watts = *watts;
  }
  return {};
}

void SweepChoices::declare(CLI::App& app) {
  add(app, "--knob", knob_word);
  auto* list = add(app, "--limits", limits)->delimiter(',');
  auto* between = add(app, "--range", range)->excludes(list);
  add(app, "--step", step)->needs(between)->check(above_zero());
  auto* per = add(app, "--per", window);
  auto* printed = add(app, "--throughput", throughput)->excludes(per);
  auto* benched = add(app, "--bench", bench)->excludes(per)->excludes(printed);
  for (auto* option : workload.declare(app)) option->needs(benched);
  add(app, "--batch", batch)->needs(benched)->check(above_zero());
  add(app, "--observe", observe)->excludes(list)->excludes(between);
  objective.declare(app);
  add(app, "--max-time", max_time);
  add(app, "--tolerance", tolerance);
  add(app, "--min-repeats", fewest_blocks)->check(within(2, 1000));
  add(app, "--repeats", most_blocks)->check(within(2, 1000));
  add(app, "--seed", seed);
  add(app, "--cool-to", most_celsius);
  add(app, "--whole-machine", whole_machine)->excludes(per)->excludes(printed)->excludes(benched);
}

std::optional<std::size_t> SweepChoices::bench_gpu() const {
  if (bench.empty() || workload.device == "cpu") return std::nullopt;
  const auto parts = split(workload.device, ':');
  const auto place = parts.size() == 2 ? parse_integer(parts[1]) : std::nullopt;
  return place && *place >= 0 ? static_cast<std::size_t>(*place) : 0;
}

Result<Knob> SweepChoices::knob() const {
  if (const auto knob = meters::control::parse_knob(knob_word)) return *knob;
  return fail(Errc::kInvalidArgument,
              fmt::format("--knob {}: give power, sm-clock or memory-clock", knob_word));
}

Result<std::vector<double>> SweepChoices::settings(const BoardState& boards, Knob knob) const {
  std::vector<double> wanted = limits;
  const auto& allowed = boards.range;
  for (const double value : wanted) {
    if (value >= allowed.least && value <= allowed.most) continue;
    return fail(Errc::kInvalidArgument,
                fmt::format("--limits {:g}: the board allows {:g} to {:g} {}", value, allowed.least,
                            allowed.most, meters::control::unit_of(knob)));
  }
  if (wanted.empty()) {
    constexpr double kLeastClock = 0.3;  // of the highest: below it, work only gets slower
    double low = knob == Knob::kPowerLimit ? allowed.least
                                           : std::max(allowed.least, kLeastClock * allowed.most);
    double high = allowed.most;
    if (!range.empty()) {
      const auto given = parse_range(range);
      if (!given) return forward_error(given);
      std::tie(low, high) = *given;
    }
    const double by = step.value_or((high - low) / (kSpread - 1));
    if (!(by > 0) || (high - low) / by > kMostSettings) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("--step {:g} gives too many settings; at most {} are measured", by,
                              kMostSettings));
    }
    const double rounding = step || knob != Knob::kPowerLimit || by < 10 ? 0 : 5;
    for (int i = 0; high - i * by > low - by / 2; ++i) {
      const double value = std::max(low, high - i * by);
      wanted.push_back(rounding > 0 ? rounding * std::round(value / rounding) : value);
    }
    if (boards.found) wanted.push_back(*boards.found);
  }
  std::set<double, std::greater<>> chosen;
  for (const double value : wanted) chosen.insert(allowed.nearest(value));
  if (chosen.size() >= 2 && chosen.size() <= kMostSettings)
    return std::vector(chosen.begin(), chosen.end());
  return fail(
      Errc::kInvalidArgument,
      fmt::format("a sweep needs 2 to {} settings between {:g} and {:g} {}, which the board "
                  "allows; these are {}",
                  kMostSettings, allowed.least, allowed.most, meters::control::unit_of(knob),
                  chosen.size()));
}

Result<model::SweepPlan> SweepChoices::common_plan(const std::vector<std::string>& given) const {
  model::SweepPlan plan;
  plan.command = given;
  plan.bench = bench;
  if (!bench.empty()) {
    auto command = workload.command(bench, {batch});
    if (!command) return forward_error(command);
    plan.command = std::move(*command);
    plan.command.emplace_back("--only-work");
  }
  plan.window = window;
  plan.throughput = throughput;
  if (!throughput.empty()) {
    if (auto ok = check_number_expression("--throughput", throughput, "([0-9.]+) tokens/s"); !ok)
      return tl::unexpected(ok.error());
  }
  if (auto set = objective.set(plan); !set) return forward_error(set);
  return plan;
}

Result<model::SweepPlan> SweepChoices::observed_plan(const std::vector<std::string>& uuids,
                                                     const std::vector<std::string>& given) const {
  auto plan = common_plan(given);
  if (!plan) return plan;
  plan->observe = true;
  plan->knob = meters::control::label_of(Knob::kPowerLimit);
  plan->devices = uuids;
  return plan;
}

Result<model::SweepPlan> SweepChoices::plan(const BoardState& boards,
                                            const std::vector<std::string>& given) const {
  const auto chosen = knob();
  if (!chosen) return forward_error(chosen);
  auto values = settings(boards, *chosen);
  if (!values) return forward_error(values);
  auto common = common_plan(given);
  if (!common) return common;
  model::SweepPlan plan = std::move(*common);
  plan.knob = meters::control::label_of(*chosen);
  plan.settings = std::move(*values);
  plan.reference = plan.settings.front();
  plan.found = boards.found;
  plan.devices = boards.uuids;
  if (max_time) plan.max_seconds = seconds(*max_time);
  const auto percent = parse_amount("--tolerance", tolerance, "%", "1%");
  if (!percent) return forward_error(percent);
  plan.tolerance = *percent / 100;
  if (fewest_blocks && most_blocks && *fewest_blocks > *most_blocks) {
    return fail(Errc::kInvalidArgument, "--min-repeats must not exceed --repeats");
  }
  plan.fewest_blocks =
      fewest_blocks.value_or(std::min(kFewestBlocks, most_blocks.value_or(kMostBlocks)));
  plan.most_blocks = most_blocks.value_or(std::max(kMostBlocks, plan.fewest_blocks));
  plan.seed = seed;
  plan.most_celsius = most_celsius;
  return plan;
}

void SweepWork::remove_files() const {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(recording_.string() + suffix, ignored);
  }
}

void SweepWork::remove_recording() {
  if (claim_) remove_files();
  claim_.reset();
  until_removed_.reset();
}

Result<SweepWorkDone> SweepWork::run(const model::SweepPlan& plan) {
  auto meters = meters::open_meters(meter_options(plan));
  if (!meters) return forward_error(meters);
  remove_recording();
  until_removed_.emplace();
  auto claim = recording::Claim::take(sweep_file_, true);
  if (!claim) return forward_error(claim);
  claim_.emplace(std::move(*claim));
  remove_files();  // of a sweep that was killed
  auto destination = Destination::file(recording_, true);
  if (!destination) return forward_error(destination);
  session::SessionOptions options;
  options.command = plan.command;
  std::optional<BenchResult> bench;
  if (!plan.bench.empty()) {
    const auto file = bench.emplace().path();
    if (!file) return forward_error(file);
    options.command.emplace_back("--result");
    options.command.push_back(file->string());
  }
  options.tool_version = JOULEPROF_VERSION;
  options.devices = plan.devices;
  options.idle_before = kSettle;
  options.idle_after = Duration{};
  std::unique_ptr<session::OutputTap> tap;
  if (!bench) {
    auto opened = session::OutputTap::open(plan.throughput);
    if (!opened) return forward_error(opened);
    tap = std::move(*opened);
  }
  auto result = session::run(options, std::move(meters->meters), &destination->sink());
  SweepWorkDone done;
  if (!result) return forward_error(result);
  if (tap) {
    auto printed = tap->finish();
    if (!printed) return forward_error(printed);
    done.report.printed = std::move(printed->numbers);
    done.report.losses = std::move(printed->losses);
  }
  if (result->start_error) return tl::unexpected(*result->start_error);
  done.exit_status = result->exit_status.value_or(kNotStarted);
  if (bench) read_bench(*bench, done);
  return done;
}

}  // namespace jouleprof::cli
