// What AIPowerMeter keeps next to power_metrics.json: results of an experiment, and its model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "importers/builder.h"
#include "importers/import.h"
#include "model/domain.h"
#include "model/recording.h"

namespace jouleprof::importers {

// A figure of a record of AIPowerMeter.
struct PowerField {
  std::string_view key;
  model::DomainKind kind;
  std::string_view device;
  std::string_view name;
};

// RAPL, summed over the packages.
inline constexpr std::array<PowerField, 5> kCpuFields{
    {{"intel_power", model::DomainKind::kCpu, "cpu", "CPU packages"},
     {"total_dram_power", model::DomainKind::kDram, "dram", "DRAM"},
     {"total_cpu_power", model::DomainKind::kCpuCores, "cores", "CPU cores"},
     {"uncore_power", model::DomainKind::kCpuUncore, "uncore", "CPU uncore"},
     {"psys_power", model::DomainKind::kPlatform, "psys", "Platform"}}};

// Whether the importer reads the figure, or it follows from those that it reads.
bool is_known_figure(std::string_view key);

// The member of an object; null where it has none, or is no object.
const nlohmann::json* member(const nlohmann::json& object, std::string_view key);
// A number, or the one number of a list (how uncore_power is written).
std::optional<double> number_of(const nlohmann::json* value);
bool is_pid(std::string_view text);

// What a line that jouleprof exported says of its section "cpu" or "gpu"; measured otherwise.
model::Provenance provenance_of(const nlohmann::json& line, std::string_view section);

// Whether the text is a results_exp.json or a model_summary.json.
bool is_experiment_file(std::string_view text);

class ExperimentFiles {
 public:
  // results_exp.json: a list or an object of {"end_training_epoch": DATE, figures}, or a line
  // {"date": DATE, "metrics": {figures}} each. model_summary.json: counts of a model.
  // Errors: corrupt for another content, and for dates that cannot be read.
  Result<void> add(const SourceText& source);

  // One window "epoch" for each end of an epoch, from the end before, or from the begin of the
  // recording. An end outside of the recorded time gives no window, and a warning.
  std::vector<model::Window> epochs(const Layout& layout) const;

  std::vector<Stamp>& ends() { return ends_; }

  // The model, and what is left out.
  std::vector<std::string> warnings(const Layout& layout) const;

 private:
  std::string results_path_;
  std::vector<Stamp> ends_;                      // of epochs
  std::map<std::string, std::size_t> left_out_;  // names of figures -> epochs that have them
  std::vector<std::string> models_;
};

// What AIPowerMeter charged to each process: powers, shares of the CPU's time, memory.
// Adds up the records of one experiment. Energies are integrals by the trapezoidal rule within
// segments, as AIPowerMeter's own reader computes them: a process that a record does not list drew
// nothing then.
class ProcessShares {
 public:
  // `process` names a window: "process 16809", "processes of the experiment".
  void add_power(const std::string& process, model::DomainId domain, HostTime at, double watts);
  // Every process of the record at `at` has been added: those that are not among them drew nothing.
  void end_record(model::DomainId domain, HostTime at);
  void add_cpu_share(const std::string& process, double share);
  void add_memory(const std::string& process, double bytes);
  // Powers before and after are not joined.
  void end_segment();

  // One window a process, over all of `begin` to `end`; labels where there are figures.
  std::vector<model::ImportedWindow> windows(HostTime begin, HostTime end) const;

 private:
  struct Integral {
    std::optional<std::pair<HostTime, double>> last;  // within the segment
    double joules = 0;
    bool any = false;  // two values of one segment
  };
  struct Shares {
    std::map<model::DomainId, Integral> energies;
    double cpu_share_sum = 0;
    std::size_t cpu_shares = 0;
    std::optional<double> most_bytes;
  };
  std::map<std::string, Shares> processes_;
  std::map<model::DomainId, HostTime> last_records_;  // within the segment
};

}  // namespace jouleprof::importers
