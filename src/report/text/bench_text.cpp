#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/cells.h"
#include "report/quantity.h"
#include "report/results/bench.h"
#include "report/text/bench_cells.h"
#include "report/text/table.h"
#include "report/text/text_blocks.h"

namespace jouleprof::report {
namespace {

using analysis::BenchEnergy;
using model::BenchCase;

constexpr std::size_t kMostReasonLines = 3;

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
    Table table({""});
    table.add_text({std::string(label), style}, {printable(words, text_.ascii), words_style},
                   kMostReasonLines);
    auto made = table.lines(width(), text_.colour);
    lines_.insert(lines_.end(), made.begin() + 1, made.end());
  }
  void dim(std::string_view label, const std::string& words) { note(label, Style::kDim, words); }
  std::size_t width() const { return static_cast<std::size_t>(std::max(text_.width, 60)); }

  void add(const Table& table) {
    for (auto& line : table.lines(width(), text_.colour)) lines_.push_back(std::move(line));
  }

  void head() {
    std::string device = bench_.device;
    if (!bench_.device_name.empty()) device = bench_.device_name + " (" + device + ")";
    note("bench", Style::kDim,
         fmt::format("{}, {}, batch {}, {} on {}", bench_.workload, bench_.mode, bench_.batch,
                     bench_.dtype, device),
         Style::kBold);
    if (!bench_.inputs.empty()) {
      dim("input", fmt::format("{}: {}", size_text(bench_.input_size), bench_.inputs));
    }
    std::string compared;
    for (const auto& name : bench_.compared) {
      compared += (compared.empty() ? "" : ", ") + (name == "sm_clock_hertz" ? "SM clock" : name);
    }
    const std::string warm_up = fmt::format(
        "{}, {} iterations", seconds_text(bench_.warm_up_seconds), bench_.warm_up_iterations);
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
    if (bench_.parameters) {
      const auto frozen = *bench_.parameters - bench_.trainable_parameters.value_or(0);
      dim("model",
          fmt::format("{} parameters{}", count_text(static_cast<double>(*bench_.parameters)),
                      frozen == 0
                          ? ", all trainable"
                          : fmt::format(", {} trainable", count_text(static_cast<double>(
                                                              *bench_.trainable_parameters)))));
    }
    if (bench_.forward_macs) {
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

}  // namespace

std::string bench_to_text(const std::vector<BenchResult>& results, const BenchOptions& options,
                          const TextOptions& text) {
  std::string all;
  const auto append = [&](const Lines& lines) {
    for (const auto& line : lines) all += line + '\n';
  };
  for (const auto& result : results) {
    if (!all.empty()) all += '\n';
    append(BenchText(result, options, text).lines());
  }
  if (results.size() > 1) {
    all += '\n';
    append(bench_comparison(results, text));
  }
  return all;
}

}  // namespace jouleprof::report
