// What AIPowerMeter keeps next to power_metrics.json: results of an experiment, and its model.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/builder.h"
#include "importers/importer.h"
#include "model/domain.h"
#include "model/provenance.h"

namespace jouleprof::importers {

// The figures of a record of AIPowerMeter.

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

  // The model, and what is left out.
  std::vector<std::string> warnings(const Layout& layout) const;

 private:
  std::string results_path_;
  std::vector<Duration> ends_;                   // calendar times
  std::map<std::string, std::size_t> left_out_;  // names of figures -> epochs that have them
  std::vector<std::string> models_;
};

}  // namespace jouleprof::importers
