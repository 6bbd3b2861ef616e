#include <algorithm>
#include <initializer_list>

#include "base/text.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/results/bench.h"

namespace jouleprof::report {
namespace {

std::string field(const std::optional<double>& value) {
  return value ? fixed_decimal(*value, 9) : std::string();
}

std::string joined(std::initializer_list<std::string> fields) {
  std::string line;
  for (const auto& text : fields) line += (line.empty() ? "" : ",") + text;
  return line;
}

std::string text_field(std::string_view text) { return csv_field(printable(text)); }

std::string joules(const std::optional<JoulesPer>& j) {
  return j ? fixed_decimal(j->joules, 9) : std::string();
}

std::string active(const std::optional<JoulesPer>& j) {
  if (!j) return ",,,";
  return joined({fixed_decimal(j->joules, 9), fixed_decimal(j->low(), 9),
                 fixed_decimal(j->high(), 9), fixed_decimal(j->repeatability, 9)});
}

std::string figures(const std::optional<JoulesPer>& j) {
  if (!j) return ",,,,";
  return joined({fixed_decimal(j->joules, 9), fixed_decimal(j->low(), 9),
                 fixed_decimal(j->high(), 9), fixed_decimal(j->repeatability, 9),
                 std::string(to_string(j->provenance))});
}

// Power, clock and temperature of the device that does the work, in the case's window.
std::string of_window(const analysis::BenchEnergy& energy) {
  std::string mean;
  std::string peak;
  if (energy.device) {
    const auto& domain = energy.profile.domains[*energy.device];
    if (domain.mean_power) mean = fixed_decimal(domain.mean_power->watts());
    if (domain.peak_power) peak = fixed_decimal(domain.peak_power->watts());
  }
  const auto value = [](const std::optional<analysis::GaugeSummary>& gauge) {
    return gauge ? fixed_decimal(gauge->mean) : std::string();
  };
  return mean + ',' + peak + ',' + value(energy.sm_clock) + ',' + value(energy.temperature);
}

}  // namespace

std::string bench_to_csv(const std::vector<BenchResult>& results) {
  std::string csv =
      "workload,mode,batch,dtype,device,steady,iterations,latency_seconds,mean_seconds,p50_seconds,"
      "p90_seconds,p99_seconds,macs,parameters,phase,unit,count,energy_joules,interval_low_joules,"
      "interval_high_joules,repeatability_joules,provenance,rest_joules,held_joules,active_joules,"
      "active_interval_low_joules,active_interval_high_joules,active_repeatability_joules,"
      "total_joules,total_interval_low_joules,total_interval_high_joules,"
      "total_repeatability_joules,total_provenance,mean_watts,peak_watts,sm_clock_hertz,"
      "temperature_celsius\n";
  for (const auto& result : results) {
    const auto& b = result.bench;
    const auto& l = b.latency;
    const auto number = [](const std::optional<std::uint64_t>& n) {
      return n ? std::to_string(*n) : std::string();
    };
    const std::string head = joined(
        {text_field(b.workload), b.mode, std::to_string(b.batch), b.dtype, b.device,
         b.steady ? "true" : "false", std::to_string(b.iterations), field(l.median), field(l.mean),
         field(l.p50), field(l.p90), field(l.p99), number(b.macs), number(b.parameters)});
    if (!result.energy) {
      csv += head + ",,iteration," + std::to_string(b.iterations) +
             ",,,,,unavailable,,,,,,,,,,,,,,,\n";
      continue;
    }
    const std::string foot = of_window(*result.energy);
    for (const auto& row : bench_rows(b, *result.energy)) {
      csv += joined({head + ',' + text_field(row.phase), text_field(row.unit),
                     fixed_decimal(row.count), figures(row.device), joules(row.rest),
                     joules(row.held), active(row.active), figures(row.total), foot}) +
             '\n';
    }
  }
  return csv;
}

}  // namespace jouleprof::report
