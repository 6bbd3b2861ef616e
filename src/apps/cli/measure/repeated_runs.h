// `run --repeat`: what several runs of one command have in common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/profile.h"
#include "report/cells.h"
#include "report/costs/costs.h"
#include "report/total.h"

namespace jouleprof::cli {

struct RepeatedRun {
  // Of the command, or of all devices: also where what may be the command's, of no known process,
  // is so much that neither of its ends is its energy. Absent: unknown.
  std::optional<report::Quoted> energy;
  std::optional<report::Quoted> whole;  // of all devices
  bool is_undecided = false;            // `energy` is of all devices for that reason
  double seconds = 0;

  static RepeatedRun of(const model::Profile& profile, bool whole_machine);
};

// "run 2 of 5: 10.31 J, 1.203 s"
std::string progress_text(const RepeatedRun& run, std::size_t number, std::size_t of);

// Mean, standard deviation and range of energy and time; with units and factors, of one unit and in
// money and carbon, by the mean. The interval of the mean energy holds the spread of the runs
// (Student's t) and the error that the sensors have in all of them. Runs whose energy is not known
// are not in its mean, and are counted.
std::string repeats_to_text(const std::vector<RepeatedRun>& runs,
                            const std::optional<report::UnitCount>& unit,
                            const report::CostFactors& factors, const report::TextOptions& text);

}  // namespace jouleprof::cli
