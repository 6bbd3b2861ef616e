// What AIPowerMeter keeps next to power_metrics.json: results of an experiment, and its model.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "importers/importer.h"
#include "importers/timeline.h"

namespace jouleprof::importers {

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
