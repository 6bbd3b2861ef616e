#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/text.h"
#include "model/profile.h"
#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/format/format.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/results/bench.h"
#include "report/text/table.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using analysis::BenchEnergy;
using model::BenchCase;

// Also of less than a microjoule: one token, or 1e9 multiply-accumulates.
std::string joules_text(double joules) {
  if (joules != 0 && std::abs(joules) < 1e-3) {
    return std::abs(joules) < 1e-6 ? number_text(joules * 1e9) + " nJ"
                                   : number_text(joules * 1e6) + " uJ";
  }
  return energy_text(Energy::joules(joules));
}

std::string seconds_text(double s) { return duration_text(duration_of(s)); }

std::string plus_minus(double half, double of, bool ascii) {
  if (!(of > 0)) return "-";
  return (ascii ? "+-" : "±") + percent_text(half / of);
}

// A table with one line for each case.
std::string bench_comparison(const std::vector<BenchResult>& results, const TextOptions& text) {
  Table table({"batch", "latency", "p99", "samples/s", "energy per sample", "95 %", "total", "W"});
  for (const auto& result : results) {
    const auto& bench = result.bench;
    const double samples = static_cast<double>(bench.batch);
    std::vector<Cell> row{{std::to_string(bench.batch), Style::kBold},
                          {seconds_text(bench.latency.median)},
                          {seconds_text(bench.latency.p99)},
                          {number_text(samples / bench.latency.mean)}};
    std::vector<Cell> figures{{"-"}, {"-"}, {"-"}, {"-"}};
    if (result.energy) {
      for (const auto& r : bench_rows(bench, *result.energy)) {
        if (!r.phase.empty() || r.unit != "sample") continue;
        if (r.device) {
          figures[0] = {joules_text(r.device->joules), Style::kBold};
          figures[1] = {plus_minus(r.device->error, r.device->joules, text.ascii)};
        }
        if (r.total) figures[2] = {joules_text(r.total->joules)};
      }
      const auto& energy = *result.energy;
      if (energy.device && energy.profile.domains[*energy.device].mean_power) {
        figures[3] = {number_text(energy.profile.domains[*energy.device].mean_power->watts())};
      }
    }
    row.insert(row.end(), figures.begin(), figures.end());
    table.add(std::move(row));
  }
  TextPage page(text);
  page.add(table);
  return page.joined();
}

constexpr std::size_t kMostReasonLines = 3;
constexpr std::size_t kBriefDomainLines = 4;

std::string count_text(double value) {
  if (value >= 1e9) return number_text(value * 1e-9) + " G";
  if (value >= 1e6) return number_text(value * 1e-6) + " M";
  return fmt::format("{:.0f}", value);
}

std::string size_text(const std::vector<std::int64_t>& size) {
  std::string text;
  for (const auto n : size) text += (text.empty() ? "" : "x") + std::to_string(n);
  return text.empty() ? "-" : text;
}

class BenchText {
 public:
  BenchText(const BenchResult& result, const BenchOptions& options, const TextOptions& text)
      : bench_(result.bench), result_(result), options_(options), page_(text, kMostReasonLines) {}

  std::string write() {
    if (result_.energy && result_.energy->profile.simulated) {
      page_.note("SIMULATED", "These energies come from a simulated device. Nothing was measured.",
                 Style::kAlarm, Style::kAlarm);
    }
    answer();
    head();
    latency();
    if (result_.energy) {
      energies(*result_.energy);
    } else {
      page_.note("energy", "unavailable: " + result_.energy.error().message, Style::kAttention);
    }
    card();
    return page_.joined();
  }

 private:
  // What is read first: time and energy of an iteration, and of what it does several of.
  void answer() {
    std::string words = seconds_text(bench_.latency.median);
    std::string units;
    if (result_.energy) {
      for (const auto& row : bench_rows(bench_, *result_.energy)) {
        const auto& joules = row.total ? row.total : row.device;
        if (!row.phase.empty() || !joules) continue;
        if (row.unit == "iteration") {
          words += fmt::format(" and {} {}", joules_text(joules->joules),
                               plus_minus(joules->error, joules->joules, page_.text.ascii));
          if (joules->provenance != model::Provenance::kMeasured) {
            words += fmt::format(" {}", provenance_word(joules->provenance));
          }
        } else if (row.unit == "sample" || row.unit.ends_with("token")) {
          units += fmt::format("{} {} for one {}", units.empty() ? ";" : ",",
                               joules_text(joules->joules), row.unit);
        }
      }
    }
    words += " for one iteration" + units;
    page_.headline(words, Style::kBold);
  }

  void head() {
    std::string device = bench_.device;
    if (!bench_.device_name.empty()) device = bench_.device_name + " (" + device + ")";
    page_.note("bench",
               fmt::format("{}, {}, batch {}, {} on {}", bench_.workload, bench_.mode, bench_.batch,
                           bench_.dtype, device),
               Style::kDim, Style::kBold);
    if (!bench_.inputs.empty() && !page_.text.is_brief()) {
      page_.note("input", fmt::format("{}: {}", size_text(bench_.input_size), bench_.inputs));
    }
    std::string compared;
    for (const auto& name : bench_.compared) {
      compared += (compared.empty() ? "" : ", ") + (name == "sm_clock_hertz" ? "SM clock" : name);
    }
    const std::string warm_up = fmt::format(
        "{}, {} iterations", seconds_text(bench_.warm_up_seconds), bench_.warm_up_iterations);
    if (bench_.steady && page_.text.is_brief()) return;
    if (bench_.steady) {
      page_.note("warm-up", fmt::format("{}; then steady: {}", warm_up, compared));
    } else {
      page_.note("warm-up", fmt::format("{}; NOT STEADY: {}", warm_up, bench_.not_steady),
                 Style::kAttention, Style::kAttention);
    }
  }

  void latency() {
    const auto& l = bench_.latency;
    std::string words =
        fmt::format("{} median of {} of {}", seconds_text(l.median), counted(l.blocks, "block"),
                    counted(l.iterations_per_block, "iteration"));
    if (l.mean_error) words += fmt::format("; mean {}", with_error(l.mean, *l.mean_error));
    page_.note("latency", words, Style::kDim, Style::kBold);
    std::string spread;
    if (l.quartiles && l.blocks >= model::kFewestForQuartiles) {
      spread =
          fmt::format("IQR {} ({} to {})", seconds_text(l.quartiles->upper - l.quartiles->lower),
                      seconds_text(l.quartiles->lower), seconds_text(l.quartiles->upper));
    }
    if (bench_.threads) {
      spread += fmt::format("{}{}", spread.empty() ? "" : "; ", counted(*bench_.threads, "thread"));
    }
    if (!spread.empty()) page_.note("", spread);
    page_.note("", fmt::format("p50 {}, p90 {}, p99 {}{}", seconds_text(l.p50), seconds_text(l.p90),
                               seconds_text(l.p99),
                               l.quantiles_of > 1
                                   ? fmt::format(" (of means over {} iterations)", l.quantiles_of)
                                   : ""));
    if (l.first_token_p50) {
      page_.note("", fmt::format("first token p50 {}, p99 {}", seconds_text(*l.first_token_p50),
                                 seconds_text(l.first_token_p99.value_or(*l.first_token_p50))));
    }
    if (l.inter_token_p50) {
      page_.note("", fmt::format("between tokens p50 {}, p99 {}", seconds_text(*l.inter_token_p50),
                                 seconds_text(l.inter_token_p99.value_or(*l.inter_token_p50))));
    }
    std::string rate = fmt::format("{} iterations/s", number_text(1 / l.mean));
    for (const auto& unit : bench_.units) {
      rate += fmt::format(", {} {}s/s", number_text(unit.per_iteration / l.mean), unit.name);
    }
    page_.note("rate", rate);
    if (bench_.torch_timer_median) {
      page_.note("timer", fmt::format("{} by torch.utils.benchmark, {:+.2f} % of this median",
                                      seconds_text(*bench_.torch_timer_median),
                                      100 * (*bench_.torch_timer_median / l.median - 1)));
      for (const auto line : split(bench_.torch_timer_text, '\n')) {
        if (!split_blanks(line).empty()) page_.add({"           " + page_.safe(line)});
      }
    }
    if (bench_.reached_target && !*bench_.reached_target) {
      page_.note("target", "not reached within --max-time", Style::kAttention, Style::kAttention);
    }
  }

  std::string with_error(double value, double relative) const {
    return seconds_text(value) + (page_.text.ascii ? " +-" : " ±") + percent_text(relative);
  }

  void energies(const BenchEnergy& energy) {
    const TextContext context(energy.profile, page_.text);
    if (!energy.device) {
      page_.note("energy",
                 fmt::format("unavailable: no sensor of {} was found; list the sensors "
                             "with: jouleprof doctor",
                             bench_.device),
                 Style::kAttention);
    }
    if (page_.text.is_brief()) {
      page_.add(brief_domain_block(context, kBriefDomainLines));
      per_unit(energy);
      if (!energy.profile.warnings.empty()) {
        page_.note("warning", energy.profile.warnings.front(), Style::kAttention);
      }
      page_.note("details", "--details: input, warm-up, repeatability, levels, clocks, warnings");
      return;
    }
    page_.blank();
    page_.note("energy", fmt::format("of {} iterations in {}", bench_.iterations,
                                     duration_text(energy.profile.duration())));
    page_.add(domain_block(context));
    page_.blank();
    per_unit(energy);
    Lines levels = level_block(context);
    if (!levels.empty()) page_.blank();
    page_.add(std::move(levels));
    gauges(energy);
    for (const auto& warning : energy.profile.warnings)
      page_.note("warning", warning, Style::kAttention);
  }

  void per_unit(const BenchEnergy& energy) {
    const std::string device = energy.device ? bench_.energy_device : "device";
    std::vector<std::string> headings{"energy per", device, "95 %", "rest"};
    const bool has_held = energy.device && energy.profile.domains[*energy.device].levels.held;
    if (has_held) headings.emplace_back("held");
    for (const char* heading : {"active", "95 %", "total", "95 %"}) headings.emplace_back(heading);
    Table table(std::move(headings));
    for (const auto& row : bench_rows(bench_, energy)) {
      const auto part = [](const std::optional<JoulesPer>& j) {
        return Cell{j ? joules_text(j->joules) : "-"};
      };
      const std::string unit = row.unit == "million parameters" ? "M parameters" : row.unit;
      std::vector<Cell> cells{{row.phase.empty() ? unit : row.phase + ", " + unit}};
      add_joules(cells, row.device, Style::kBold);
      cells.push_back(part(row.rest));
      if (has_held) cells.push_back(part(row.held));
      add_joules(cells, row.active, Style::kBold);
      add_joules(cells, row.total, Style::kPlain);
      table.add(std::move(cells));
    }
    page_.add(table);
  }

  void add_joules(std::vector<Cell>& cells, const std::optional<JoulesPer>& j, Style style) const {
    if (!j) {
      cells.push_back({"-"});
      cells.push_back({"-"});
      return;
    }
    cells.push_back({joules_text(j->joules), style});
    cells.push_back({plus_minus(j->error, j->joules, page_.text.ascii), style_of(j->provenance)});
  }

  void gauges(const BenchEnergy& energy) {
    std::string words;
    if (energy.sm_clock) {
      words += fmt::format("SM {:.0f} MHz ({:.0f} to {:.0f})", energy.sm_clock->mean * 1e-6,
                           energy.sm_clock->low * 1e-6, energy.sm_clock->high * 1e-6);
    }
    if (energy.temperature) {
      words += fmt::format("{}{:.0f} to {:.0f} C", words.empty() ? "" : ", ",
                           energy.temperature->low, energy.temperature->high);
    }
    if (energy.limits) {
      std::string limits;
      for (const auto& limit : *energy.limits) {
        limits += fmt::format("{}{} in {}", limits.empty() ? "" : ", ", limit.name,
                              percent_text(limit.share));
      }
      words +=
          fmt::format("{}limits: {}", words.empty() ? "" : ", ", limits.empty() ? "none" : limits);
    }
    if (!words.empty()) page_.note("clocks", words);
  }

  void card() {
    if (bench_.parameters && !page_.text.is_brief()) {
      const auto frozen = *bench_.parameters - bench_.trainable_parameters.value_or(0);
      page_.note("model",
                 fmt::format("{} parameters{}", count_text(static_cast<double>(*bench_.parameters)),
                             frozen == 0 ? ", all trainable"
                                         : fmt::format(", {} trainable",
                                                       count_text(static_cast<double>(
                                                           *bench_.trainable_parameters)))));
    }
    if (bench_.forward_macs && !page_.text.is_brief()) {
      page_.note("", fmt::format("{} multiply-accumulates in a forward pass",
                                 count_text(static_cast<double>(*bench_.forward_macs))));
    }
    if (!bench_.macs && !bench_.macs_reason.empty()) {
      page_.note("MACs", fmt::format("no energy per GMAC: {}", bench_.macs_reason));
    }
    if (!options_.card || bench_.layers.empty()) return;
    page_.blank();
    Table table({"layer", "<type", "<input", "<output", "parameters", "MACs"});
    for (const auto& layer : bench_.layers) {
      table.add({{layer.name.empty() ? "(model)" : page_.safe(layer.name)},
                 {layer.type},
                 {size_text(layer.input_size)},
                 {size_text(layer.output_size)},
                 {fmt::format("{}", layer.parameters)},
                 {layer.macs ? fmt::format("{}", *layer.macs) : "-"}});
    }
    page_.add(table);
  }

  const BenchCase& bench_;
  const BenchResult& result_;
  const BenchOptions& options_;
  TextPage page_;
};

std::vector<Cell> row(const char* label, Power median, Power mean, Duration latency, Style style) {
  return {{label},
          {fmt::format("{:.2f}", median.watts())},
          {fmt::format("{:.2f}", mean.watts())},
          {joules_text(median.watts() * seconds(latency)), style}};
}

// "0.0764 EUR, 25.5 g CO2e per million": of so many units that no amount has a row of zeros.
std::string costs_of_some_text(const PerUnit& per) {
  constexpr double kLeast = 1e-3;
  constexpr std::pair<double, const char*> kCounts[] = {
      {1, ""}, {1e3, " per thousand"}, {1e6, " per million"}, {1e9, " per billion"}};
  const auto is_small = [](std::optional<double> amount, double count) {
    return amount && *amount > 0 && *amount * count < kLeast;
  };
  const auto* some = std::begin(kCounts);
  while (some + 1 != std::end(kCounts) &&
         (is_small(per.shown_money, some->first) || is_small(per.shown_grams, some->first))) {
    ++some;
  }
  const auto of = [&](std::optional<double> amount) {
    return amount ? std::optional(*amount * some->first) : std::nullopt;
  };
  const std::string text = amounts_text(of(per.shown_money), per.currency, of(per.shown_grams));
  return text.empty() ? text : text + some->second;
}

}  // namespace

std::string bench_to_text(const std::vector<BenchResult>& results, const BenchOptions& options,
                          const TextOptions& text) {
  std::string all;
  for (const auto& result : results) {
    if (!all.empty()) all += '\n';
    all += BenchText(result, options, text).write();
  }
  if (results.size() > 1) {
    all += '\n';
    all += bench_comparison(results, text);
  }
  // Of torch.utils.benchmark, for who compares with it.
  if (!results.empty() && !results.back().bench.torch_compare_text.empty()) {
    all += '\n';
    for (const auto line : split(results.back().bench.torch_compare_text, '\n')) {
      all += printable(line, text.ascii) + '\n';
    }
  }
  return all;
}

std::string latency_energy_to_text(const std::vector<analysis::DevicePower>& devices,
                                   Duration latency, const TextOptions& text) {
  TextPage page(text);
  for (const auto& d : devices) {
    Table table({page.safe(d.device), "median W", "mean W", "energy of " + duration_text(latency)});
    if (d.rest) table.add(row("idle", d.rest->median, d.rest->mean, latency, Style::kPlain));
    table.add(row("total", d.work.median, d.work.mean, latency, Style::kPlain));
    std::string words = fmt::format("median power of {} rows times the latency", d.work.readings);
    if (d.rest) {
      table.add(row("active", d.work.median - d.rest->median, d.work.mean - d.rest->mean, latency,
                    Style::kBold));
      words += "; active is total minus idle";
    } else {
      table.add_text({"active", Style::kAttention},
                     {"unavailable: the log has no row before the work, so that the idle power is "
                      "not known; start the log earlier",
                      Style::kAttention},
                     2);
    }
    table.add_text({"how", Style::kDim},
                   {words + ". It is an estimate: both are taken at different times. "
                            "`jouleprof bench` divides the energy of a window by its iterations",
                    Style::kPlain},
                   3);
    page.add(table);
  }
  return page.joined();
}

std::string per_unit_to_text(const PerUnit& per, const TextOptions& text) {
  std::string words;
  const bool is_bound = per.joules && !per.is_partial && *per.joules <= per.error_joules;
  if (per.joules) {
    const auto relative = [&](double joules) {
      return (text.ascii ? "+-" : "±") +
             (*per.joules > 0 ? percent_text(joules / *per.joules) : joules_text(joules));
    };
    const char* const whose = per.is_command ? "the command" : "all devices";
    if (!per.has_interval) {
      words = fmt::format("{}{} ({}), reported", per.is_partial ? "at least " : "",
                          joules_text(*per.joules), kNoInterval);
    } else if (is_bound) {
      words =
          fmt::format("at most {}, {}, of {}", joules_text(*per.joules + per.upper_error_joules),
                      provenance_word(per.provenance), whose);
    } else {
      words = fmt::format(
          "{}{} {}{}, {}, of {}", per.is_partial ? "at least " : "", joules_text(*per.joules),
          per.is_partial
              ? lower_interval_text(*per.joules, per.error_joules)
              : interval_text(Energy::joules(*per.joules), Energy::joules(per.error_joules),
                              Energy::joules(per.upper_error_joules), text.ascii),
          text.is_brief() ? ""
                          : fmt::format(" (repeatability {})", relative(per.repeatability_joules)),
          provenance_word(per.provenance), whose);
    }
    if (per.dynamic_joules) {
      words += fmt::format(", {} of it dynamic", joules_text(*per.dynamic_joules));
    } else if (per.has_interval) {
      words += ", at rest included";
    }
  } else {
    words = "no energy is known";
  }
  const std::string costs = costs_of_some_text(per);
  const char* const most = is_bound ? "at most " : per.is_partial ? "at least " : "";
  if (!costs.empty()) words += fmt::format("; costs {}{}", most, costs);
  words += fmt::format("; {} for one, {} of them", duration_text(duration_of(per.seconds)),
                       units_text(per.unit.count));
  TextPage page(text, text.is_brief() ? 2 : 3);
  page.note(page.safe("per " + per.unit.name), words, Style::kBold);
  return page.joined();
}

}  // namespace jouleprof::report
