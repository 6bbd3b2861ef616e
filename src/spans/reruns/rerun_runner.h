// Recorded kernels, run again in isolation: which, for how long each, and how.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "spans/reruns/launch_recorder.h"

namespace jouleprof::reruns {

// --- Which kernels are re-run in isolation, and for how long each ---

// What the trace distinguishes kernels by.
struct Signature {
  std::string name;
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};

  auto operator<=>(const Signature&) const = default;
};

// The trace has one for memsets of 2^n to 2^(n+1) - 1 bytes.
Signature signature_of_memset(std::uint64_t bytes);

// What the program did of a signature.
struct InPlace {
  double busy = 0;  // seconds
  std::uint64_t launches = 0;
};

struct Planned {
  std::string name;
  InPlace in_place;
  std::vector<const RecordedKernel*> kernels;  // of this signature
};

struct Plan {
  // The longest in the program first, then those that read indices, then short ones whose code was
  // unloaded: a fault of one ends the re-runs.
  std::vector<Planned> kernels;
  double busy = 0;  // seconds, of all of the program's
  // What is left out: its share of that time, and why.
  struct LeftOut {
    std::string name;
    double share = 0;
    std::string why;
  };
  std::vector<LeftOut> left_out;
};

// `recorded` outlives it. Kernels of less than 0.1 % of the time are left out without a word.
// `goes_on`: kernels that read indices are left out, because frameworks use the memory of the
// indices for other data meanwhile, and a wrong index ends the program; and so are short ones whose
// code was unloaded.
Plan plan(std::span<const RecordedKernel> recorded, const std::map<Signature, InPlace>& in_place,
          bool goes_on = false);

// How long each kernel runs in a loop, `most` at most, within `left` seconds. `busy`: what each
// takes in the program, the longest first. The error of an energy falls with the square root of the
// loop's length, so that the sum of all errors is least with lengths as busy^(2/3).
std::vector<double> loop_seconds(std::span<const double> busy, double most, double left);

// "a (12.3 %: it waits for other ranks), b (...) and 3 more"; empty: nothing was left out.
std::string described(std::span<const Plan::LeftOut> left_out);

// --- Runs recorded kernels again, each alone and in a loop, on a stream of its own ---

// How loops are observed.
struct RerunMarks {
  std::function<void()> prepared;  // what ran since the last mark was no loop
  // It was the loop of one kernel, in one of its sizes: at this SM clock on average (0: not known),
  // for so many launches of the program.
  std::function<void(double clock, double launches)> looped;
  std::function<bool()> stop;     // asked often: to end early
  std::function<double()> clock;  // the SM clock in hertz; 0: not known
  double program_clock = 0;       // its mean while the program ran
  // Before a kernel runs that has not run in isolation yet, and once it has ended.
  std::function<void(bool active)> risk = [](bool) {};
};

struct RerunOutcome {
  std::size_t kernels = 0;  // that were re-run
  double share = 0;         // of the program's kernel time
  std::vector<Plan::LeftOut> left_out;
  // A kernel that did not end, or one that failed and took the context with it: no later call of
  // CUDA can be trusted to return or to succeed. Empty: all is as before.
  std::string broken;
  bool stuck = false;  // it did not end
};

// Thread safety: one thread, the one that constructed it. Leaves the memory that kernels may have
// written as it was, where there was room for a copy of it.
class RerunRunner {
 public:
  RerunRunner(const DriverApi& driver, RerunMarks marks);
  ~RerunRunner();

  // Copies the memory that the planned kernels' parameters point to. Returns why re-runs change
  // some of it nevertheless; empty: they change none. `exactly`: for a program that goes on: also
  // what lists of addresses in that memory point to.
  std::string save(const Plan& plan, bool exactly = false);
  // All that save() copied is as it was. False: it cannot be known.
  bool restore_all();
  // Loops of `most` seconds each at most, begun before `end`.
  RerunOutcome run(const Plan& plan, double most, HostTime end);

 private:
  struct Loop;
  struct Turn;
  struct Region;
  struct Burst;
  class Graph;
  class MeanClock;
  class Pace;
  using Result = abi::cuda::Result;

  std::string rerun(const Planned& planned, double seconds);
  std::string first_run(const Turn& turn);
  class Risk;
  Result launch_once(const Turn& turn);
  Result make(const std::vector<Turn>& turns, std::size_t rounds, Graph& graph);
  Result time(const std::vector<Turn>& turns, double about, double& seconds);
  Result loop(const std::vector<Turn>& turns, double once, double seconds, double launches);
  Burst burst(const Graph& graph, double length, double burst, bool with_clock);
  Result load(const RecordedKernel& kernel);
  void allow_shared(const RecordedKernel& kernel);
  abi::cuda::Function function_of(const RecordedKernel& kernel) const;
  Result wait(double most);
  Result use(abi::cuda::Context context);
  Result restore(const std::vector<std::size_t>& regions);
  void add_region(abi::cuda::Context context, std::uint64_t word, bool exactly);
  void join_regions();
  void add_pointed();
  std::vector<std::size_t> regions_of(const std::vector<Turn>& turns) const;
  std::string words(Result result) const;
  std::string failure(Result result, bool asynchronous);

  const DriverApi& driver_;
  RerunMarks marks_;
  std::map<abi::cuda::Context, abi::cuda::Stream> streams_;
  abi::cuda::Stream stream_ = nullptr;  // of the current context
  std::vector<Region> regions_;
  bool elsewhere_ = false;  // kernels use memory that is not the device's
  std::map<std::pair<abi::cuda::Context, const std::string*>, abi::cuda::Module> modules_;
  std::map<const RecordedKernel*, abi::cuda::Function> loaded_;  // whose code was unloaded
  HostTime end_{};
  double highest_clock_ = 0;  // hertz, of all that were read
  double slower_there_ = 1;   // ratio of a launch's time in the program to that of a short graph
  double limited_pause_;      // of a burst: that of the last loop at the program's limit
  RerunOutcome outcome_;
};

}  // namespace jouleprof::reruns
