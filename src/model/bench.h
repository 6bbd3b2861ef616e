// What a benchmark's workload did: the cases of `jouleprof bench`, without their energies.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace jouleprof::model {

// Something that an iteration does so many of: samples, tokens.
struct BenchUnit {
  std::string name;
  double per_iteration = 0;
};

// A part of each iteration, with windows of its own.
struct BenchPhase {
  std::string name;
  std::string window;
  std::vector<BenchUnit> units;
};

// Times in seconds.
struct BenchLatency {
  double median = 0;  // of blocks, as torch.utils.benchmark has it
  struct Quartiles {
    double lower = 0;
    double upper = 0;
  };
  std::optional<Quartiles> quartiles;  // of the same; absent: the workload did not say
  double mean = 0;
  std::optional<double> mean_error;  // relative, half of its 95 % interval
  double p50 = 0;                    // of iterations
  double p90 = 0;
  double p99 = 0;
  std::uint64_t quantiles_of = 1;  // iterations that are one value of the quantiles
  std::uint64_t blocks = 0;
  std::uint64_t iterations_per_block = 0;
  // Times to the first token of generation; empty otherwise.
  std::optional<double> first_token_p50;
  std::optional<double> first_token_p99;
  std::optional<double> inter_token_p50;
  std::optional<double> inter_token_p99;
};

struct BenchLayer {
  std::string name;  // empty: the model
  std::string type;
  std::vector<std::int64_t> input_size;
  std::vector<std::int64_t> output_size;
  std::uint64_t parameters = 0;
  std::optional<std::uint64_t> macs;
};

// A workload in one mode with one batch size.
struct BenchCase {
  std::string window;  // its name in the recording
  std::string workload;
  std::string mode;
  std::uint64_t batch = 1;
  std::string dtype;
  std::string device;       // as PyTorch names it: "cuda:0", "cpu"
  std::string device_name;  // empty: not known
  // The domain that does the work, by its device ("gpu0"); empty: none is measured.
  std::string energy_device;
  std::int64_t seed = 0;
  std::string inputs;  // their distribution
  std::vector<std::int64_t> input_size;
  std::uint64_t iterations = 0;
  std::vector<BenchUnit> units;
  std::vector<BenchPhase> phases;
  double warm_up_seconds = 0;
  std::uint64_t warm_up_iterations = 0;
  bool steady = false;
  std::string not_steady;  // what still changed
  std::vector<std::string> compared;
  std::optional<bool> reached_target;
  BenchLatency latency;
  std::optional<std::uint64_t> threads;       // of PyTorch on the CPU
  std::optional<double> torch_timer_median;   // seconds
  std::string torch_timer_text;               // as torch.utils.benchmark prints it
  std::string torch_compare_text;             // the same, of all cases up to this one
  std::optional<std::uint64_t> macs;          // multiply-accumulates of an iteration
  std::string macs_reason;                    // why they are absent
  std::optional<std::uint64_t> forward_macs;  // of a forward pass
  std::optional<std::uint64_t> parameters;
  std::optional<std::uint64_t> trainable_parameters;
  std::vector<BenchLayer> layers;
  std::string document;  // all of it, a JSON object
};

struct BenchDocument {
  std::map<std::string, std::string> versions;  // "torch", "python", ...
  std::vector<BenchCase> cases;
};

}  // namespace jouleprof::model
