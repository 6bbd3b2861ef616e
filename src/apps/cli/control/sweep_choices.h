// The options of a sweep, the plan that they make, and one run of its work, measured.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/bench/bench_workload.h"
#include "base/result.h"
#include "meters/control/held_boards.h"
#include "model/sweep.h"
#include "recording/claim.h"
#include "session/run/signals.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::cli {

// A number with a unit that may be left out, such as "5%". Errors: invalid_argument.
Result<double> parse_amount(std::string_view option, std::string_view text, std::string_view unit,
                            const char* example);

// The options --objective, --eta, --max-slowdown and --max-power.
struct ObjectiveChoice {
  void declare(CLI::App& app);
  // Sets in the plan what was given. Errors: invalid_argument.
  Result<void> set(model::SweepPlan& plan) const;

  std::string objective;
  std::optional<double> eta;
  std::string max_slowdown;
  std::string max_power;
};

struct SweepChoices {
  void declare(CLI::App& app);

  // Errors: invalid_argument.
  Result<meters::control::Knob> knob() const;
  // The GPU that a benchmark runs on, as CUDA numbers it; absent for a command, and on the CPU.
  std::optional<std::size_t> bench_gpu() const;
  // `given`: the command, where it is not a benchmark.
  Result<model::SweepPlan> plan(const meters::control::BoardState& boards,
                                const std::vector<std::string>& given) const;
  // The plan of a sweep that changes nothing, on GPUs with these UUIDs.
  Result<model::SweepPlan> observed_plan(const std::vector<std::string>& uuids,
                                         const std::vector<std::string>& given) const;

  std::string knob_word = "power";
  std::vector<double> limits;
  std::string range;
  std::optional<double> step;
  std::string window;
  std::string throughput;
  std::string bench;
  int batch = 1;
  BenchWorkload workload;
  ObjectiveChoice objective;
  std::optional<Duration> max_time;
  std::string tolerance = "1%";
  static constexpr unsigned kFewestBlocks = 3;
  static constexpr unsigned kMostBlocks = 8;
  std::optional<unsigned> fewest_blocks;  // kFewestBlocks, or `most_blocks` where that is less
  std::optional<unsigned> most_blocks;    // kMostBlocks, or `fewest_blocks` where that is more
  std::uint64_t seed = 1;
  std::optional<double> most_celsius;
  bool observe = false;
  bool whole_machine = false;

 private:
  // What both plans have: the work, and what is asked of it.
  Result<model::SweepPlan> common_plan(const std::vector<std::string>& given) const;
  Result<std::vector<double>> settings(const meters::control::BoardState& boards,
                                       meters::control::Knob knob) const;
};

struct SweepWorkDone {
  int exit_status = 0;
  session::WorkReport report;
  std::string failure;  // why the work cannot be measured; empty: it can
  std::string remark;   // on work that can
};

class SweepWork {
 public:
  // The recordings of runs are in a file next to that of the sweep, which goes with this object.
  explicit SweepWork(const std::string& sweep_file)
      : sweep_file_(sweep_file), recording_(sweep_file + ".run") {}
  SweepWork(const SweepWork&) = delete;
  SweepWork& operator=(const SweepWork&) = delete;
  ~SweepWork() { remove_recording(); }

  // No other sweep can use the file until remove_recording(). Errors: of opening meters and files;
  // why the command cannot be started.
  Result<SweepWorkDone> run(const model::SweepPlan& plan);
  // Where the last run was recorded.
  const std::filesystem::path& recording() const { return recording_; }
  void remove_recording();

 private:
  void remove_files() const;

  std::filesystem::path sweep_file_;
  std::filesystem::path recording_;
  std::optional<recording::Claim> claim_;  // without it the recording is another sweep's
  std::optional<session::SignalsLater> until_removed_;
};

}  // namespace jouleprof::cli
