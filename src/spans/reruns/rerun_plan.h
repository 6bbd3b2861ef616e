// Which kernels are re-run in isolation, and for how long each.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "spans/reruns/launch_recorder.h"

namespace jouleprof::reruns {

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
  // The longest in the program first, then those that read indices.
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
// indices for other data meanwhile, and a wrong index ends the program. Else they come last.
Plan plan(std::span<const RecordedKernel> recorded, const std::map<Signature, InPlace>& in_place,
          bool goes_on = false);

// How long each kernel runs in a loop, `most` at most, within `left` seconds. `busy`: what each
// takes in the program, the longest first. The error of an energy falls with the square root of the
// loop's length, so that the sum of all errors is least with lengths as busy^(2/3).
std::vector<double> loop_seconds(std::span<const double> busy, double most, double left);

// "a (12.3 %: it waits for other ranks), b (...) and 3 more"; empty: nothing was left out.
std::string described(std::span<const Plan::LeftOut> left_out);

}  // namespace jouleprof::reruns
