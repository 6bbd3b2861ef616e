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
std::vector<std::string> bench_comparison(const std::vector<BenchResult>& results,
                                          const TextOptions& text) {
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
  return table.lines(static_cast<std::size_t>(std::max(text.width, 60)), text.colour);
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
      : bench_(result.bench), result_(result), options_(options), text_(text) {}

  Lines lines() {
    if (result_.energy && result_.energy->profile.simulated) {
      note("SIMULATED", Style::kAlarm,
           "These energies come from a simulated device. Nothing was measured.", Style::kAlarm);
    }
    answer();
    head();
    latency();
    if (result_.energy) {
      energies(*result_.energy);
    } else {
      note("energy", Style::kAttention, "unavailable: " + result_.energy.error().message);
    }
    card();
    return std::move(lines_);
  }

 private:
  void note(std::string_view label, Style style, const std::string& words,
            Style words_style = Style::kPlain) {
    add_note(lines_, {std::string(label), style}, {printable(words, text_.ascii), words_style},
             kMostReasonLines, width(), text_.colour);
  }
  void dim(std::string_view label, const std::string& words) { note(label, Style::kDim, words); }
  std::size_t width() const { return static_cast<std::size_t>(std::max(text_.width, 60)); }

  void add(const Table& table) {
    for (auto& line : table.lines(width(), text_.colour)) lines_.push_back(std::move(line));
  }

  // Whether what explains the figures is left out: on a terminal, without --details.
  bool is_brief() const { return text_.height && !text_.details; }

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
                               plus_minus(joules->error, joules->joules, text_.ascii));
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
    for (const auto& line : wrap(words, width())) {
      lines_.push_back(paint(line, Style::kBold, text_.colour));
    }
  }

  void head() {
    std::string device = bench_.device;
    if (!bench_.device_name.empty()) device = bench_.device_name + " (" + device + ")";
    note("bench", Style::kDim,
         fmt::format("{}, {}, batch {}, {} on {}", bench_.workload, bench_.mode, bench_.batch,
                     bench_.dtype, device),
         Style::kBold);
    if (!bench_.inputs.empty() && !is_brief()) {
      dim("input", fmt::format("{}: {}", size_text(bench_.input_size), bench_.inputs));
    }
    std::string compared;
    for (const auto& name : bench_.compared) {
      compared += (compared.empty() ? "" : ", ") + (name == "sm_clock_hertz" ? "SM clock" : name);
    }
    const std::string warm_up = fmt::format(
        "{}, {} iterations", seconds_text(bench_.warm_up_seconds), bench_.warm_up_iterations);
    if (bench_.steady && is_brief()) return;
    if (bench_.steady) {
      dim("warm-up", fmt::format("{}; then steady: {}", warm_up, compared));
    } else {
      note("warm-up", Style::kAttention,
           fmt::format("{}; NOT STEADY: {}", warm_up, bench_.not_steady), Style::kAttention);
    }
  }

  void latency() {
    const auto& l = bench_.latency;
    std::string words =
        fmt::format("{} median of {} blocks of {} iteration{}", seconds_text(l.median), l.blocks,
                    l.iterations_per_block, l.iterations_per_block == 1 ? "" : "s");
    if (l.mean_error) words += fmt::format("; mean {}", with_error(l.mean, *l.mean_error));
    note("latency", Style::kDim, words, Style::kBold);
    std::string spread;
    if (l.quartiles && l.blocks >= model::kFewestForQuartiles) {
      spread =
          fmt::format("IQR {} ({} to {})", seconds_text(l.quartiles->upper - l.quartiles->lower),
                      seconds_text(l.quartiles->lower), seconds_text(l.quartiles->upper));
    }
    if (bench_.threads) {
      spread += fmt::format("{}{} thread{}", spread.empty() ? "" : "; ", *bench_.threads,
                            *bench_.threads == 1 ? "" : "s");
    }
    if (!spread.empty()) dim("", spread);
    dim("", fmt::format("p50 {}, p90 {}, p99 {}{}", seconds_text(l.p50), seconds_text(l.p90),
                        seconds_text(l.p99),
                        l.quantiles_of > 1
                            ? fmt::format(" (of means over {} iterations)", l.quantiles_of)
                            : ""));
    if (l.first_token_p50) {
      dim("", fmt::format("first token p50 {}, p99 {}", seconds_text(*l.first_token_p50),
                          seconds_text(l.first_token_p99.value_or(*l.first_token_p50))));
    }
    if (l.inter_token_p50) {
      dim("", fmt::format("between tokens p50 {}, p99 {}", seconds_text(*l.inter_token_p50),
                          seconds_text(l.inter_token_p99.value_or(*l.inter_token_p50))));
    }
    std::string rate = fmt::format("{} iterations/s", number_text(1 / l.mean));
    for (const auto& unit : bench_.units) {
      rate += fmt::format(", {} {}s/s", number_text(unit.per_iteration / l.mean), unit.name);
    }
    dim("rate", rate);
    if (bench_.torch_timer_median) {
      dim("timer", fmt::format("{} by torch.utils.benchmark, {:+.2f} % of this median",
                               seconds_text(*bench_.torch_timer_median),
                               100 * (*bench_.torch_timer_median / l.median - 1)));
      for (const auto line : split(bench_.torch_timer_text, '\n')) {
        if (!split_blanks(line).empty())
          lines_.push_back("           " + printable(line, text_.ascii));
      }
    }
    if (bench_.reached_target && !*bench_.reached_target) {
      note("target", Style::kAttention, "not reached within --max-time", Style::kAttention);
    }
  }

  std::string with_error(double value, double relative) const {
    return seconds_text(value) + (text_.ascii ? " +-" : " ±") + percent_text(relative);
  }

  void energies(const BenchEnergy& energy) {
    const TextContext context(energy.profile, text_);
    if (is_brief()) {
      for (auto& line : brief_domain_block(context, kBriefDomainLines)) {
        lines_.push_back(std::move(line));
      }
      per_unit(energy);
      if (!energy.profile.warnings.empty()) {
        note("warning", Style::kAttention, energy.profile.warnings.front());
      }
      dim("details", "--details: input, warm-up, repeatability, levels, clocks, warnings");
      return;
    }
    lines_.emplace_back();
    dim("energy", fmt::format("of {} iterations in {}", bench_.iterations,
                              duration_text(energy.profile.duration())));
    for (auto& line : domain_block(context)) lines_.push_back(std::move(line));
    lines_.emplace_back();
    per_unit(energy);
    const Lines levels = level_block(context);
    if (!levels.empty()) lines_.emplace_back();
    lines_.insert(lines_.end(), levels.begin(), levels.end());
    gauges(energy);
    for (const auto& warning : energy.profile.warnings) note("warning", Style::kAttention, warning);
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
    add(table);
  }

  void add_joules(std::vector<Cell>& cells, const std::optional<JoulesPer>& j, Style style) const {
    if (!j) {
      cells.push_back({"-"});
      cells.push_back({"-"});
      return;
    }
    cells.push_back({joules_text(j->joules), style});
    cells.push_back({plus_minus(j->error, j->joules, text_.ascii), style_of(j->provenance)});
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
    if (!words.empty()) dim("clocks", words);
  }

  void card() {
    if (bench_.parameters && !is_brief()) {
      const auto frozen = *bench_.parameters - bench_.trainable_parameters.value_or(0);
      dim("model",
          fmt::format("{} parameters{}", count_text(static_cast<double>(*bench_.parameters)),
                      frozen == 0
                          ? ", all trainable"
                          : fmt::format(", {} trainable", count_text(static_cast<double>(
                                                              *bench_.trainable_parameters)))));
    }
    if (bench_.forward_macs && !is_brief()) {
      dim("", fmt::format("{} multiply-accumulates in a forward pass",
                          count_text(static_cast<double>(*bench_.forward_macs))));
    }
    if (!bench_.macs && !bench_.macs_reason.empty()) {
      dim("MACs", fmt::format("no energy per GMAC: {}", bench_.macs_reason));
    }
    if (!options_.card || bench_.layers.empty()) return;
    lines_.emplace_back();
    Table table({"layer", "<type", "<input", "<output", "parameters", "MACs"});
    for (const auto& layer : bench_.layers) {
      table.add({{layer.name.empty() ? "(model)" : printable(layer.name, text_.ascii)},
                 {layer.type},
                 {size_text(layer.input_size)},
                 {size_text(layer.output_size)},
                 {fmt::format("{}", layer.parameters)},
                 {layer.macs ? fmt::format("{}", *layer.macs) : "-"}});
    }
    add(table);
  }

  const BenchCase& bench_;
  const BenchResult& result_;
  const BenchOptions& options_;
  const TextOptions& text_;
  Lines lines_;
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
  const auto append = [&](const Lines& lines) { all += joined_lines(lines); };
  for (const auto& result : results) {
    if (!all.empty()) all += '\n';
    append(BenchText(result, options, text).lines());
  }
  if (results.size() > 1) {
    all += '\n';
    append(bench_comparison(results, text));
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
  const auto width = static_cast<std::size_t>(std::max(text.width, 60));
  std::string all;
  for (const auto& d : devices) {
    Table table({printable(d.device, text.ascii), "median W", "mean W",
                 "energy of " + duration_text(latency)});
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
    for (const auto& line : table.lines(width, text.colour)) all += line + '\n';
  }
  return all;
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
      words = fmt::format("{} ({}), reported", joules_text(*per.joules), kNoInterval);
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
  Table table({""});
  table.add_text({printable("per " + per.unit.name, text.ascii), Style::kBold},
                 {printable(words, text.ascii)}, text.is_brief() ? 2 : 3);
  const auto lines = table.lines(static_cast<std::size_t>(std::max(text.width, 60)), text.colour);
  std::string all;
  for (std::size_t i = 1; i < lines.size(); ++i) all += lines[i] + '\n';
  return all;
}

}  // namespace jouleprof::report
