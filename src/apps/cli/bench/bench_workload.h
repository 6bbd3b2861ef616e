// The workload of a benchmark: of `bench`, and of a sweep over one.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "model/bench.h"

namespace jouleprof::cli {

// A folder for the workload's result; it goes with this object.
class BenchResult {
 public:
  // Errors: where no temporary folder can be made.
  Result<std::filesystem::path> path() const;
  // What the workload wrote. Errors: unavailable where it wrote nothing; as parse_bench_document.
  Result<model::BenchDocument> read() const;

 private:
  Result<TemporaryFolder> folder_ = TemporaryFolder::create();
};

// The options that a workload has under each verb, and the command that they make.
struct BenchWorkload {
  // Returns the options that were declared.
  std::vector<CLI::Option*> declare(CLI::App& app);

  // The program that runs `word` once with each batch size. The caller appends --result FILE.
  // Errors: invalid_argument.
  Result<std::vector<std::string>> command(const std::string& word,
                                           const std::vector<int>& batches) const;
  // How short the windows are whose energy is asked for.
  Duration shortest_window() const;

  std::optional<int> length;
  std::string mode = "eager";
  int new_tokens = 128;
  std::string dtype = "auto";
  std::string device = "auto";
  Duration min_time = std::chrono::seconds{3};
  Duration max_warm_up = std::chrono::seconds{15};
  std::string python = "python3";
};

// A time as the workload's program reads it. Errors: invalid_argument.
Result<std::string> seconds_of(const char* option, Duration time);

// The file in which a benchmark's workload says what it did.
// Reads what python/jouleprof/bench/__main__.py wrote. Errors: corrupt; unsupported, another
// version of the Python package wrote it.
Result<model::BenchDocument> parse_bench_document(std::string_view text);

}  // namespace jouleprof::cli
