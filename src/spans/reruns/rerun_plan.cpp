#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "spans/reruns/rerun_runner.h"

namespace jouleprof::reruns {
namespace {

constexpr double kLeastShare = 0.001;  // of the program's time, for a loop
// Of unloaded code: what else it used may be gone, too, and a fault ends all that would follow.
constexpr double kLeastUnloaded = 0.005;
constexpr double kAllBut = 0.02;        // of it: such kernels take no time from the others
constexpr double kLeastSeconds = 0.12;  // of a loop, where time is short
constexpr double kLoopCosts = 0.12;     // seconds that each takes in addition
constexpr std::size_t kMostNamed = 6;
constexpr std::size_t kNameWidth = 60;

// Without template arguments and parameters: an accessor of PyTorch's that checks an index is none.
// Those of CUB and Thrust say in their arguments what they do.
std::string function_words(std::string_view mangled) {
  const std::string name = lower_case(demangle(std::string(mangled)));
  if (name.find("cub::") != std::string::npos || name.find("thrust::") != std::string::npos) {
    return name;
  }
  constexpr std::string_view kNoName = "(anonymous namespace)";
  std::string out;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, kNoName.size(), kNoName) == 0) {
      i += kNoName.size() - 1;
    } else if (name[i] == '(' && depth == 0) {
      break;
    } else if (name[i] == '<') {
      ++depth;
    } else if (name[i] == '>') {
      depth = std::max(depth - 1, 0);
    } else if (depth == 0) {
      out += name[i];
    }
  }
  return out;
}

// By name: indices, offsets and what else becomes an address. Matrix products and convolutions
// compute theirs ("implicit_gemm_indexed"), but for one of cuDNN's that reads those that another
// kernel has computed.
bool reads_indices(const std::string& name) {
  constexpr std::array<std::string_view, 22> kWords{"index",     "gather",      "scatter",
                                                    "embedding", "nll_loss",    "nllcriterion",
                                                    "lookup",    "segment",     "multinomial",
                                                    "assert",    "sparse",      "csr",
                                                    "jagged",    "ragged",      "varlen",
                                                    "paged",     "block_table", "unpool",
                                                    "ctc_loss",  "marginloss",  "repeat_interleave",
                                                    "expert"};
  const std::string text = function_words(name);
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  if (has("precomputed")) return true;
  if (has("gemm")) return false;
  const bool pool = has("pool") && (has("backward") || has("grad"));  // where each maximum was
  return pool || std::ranges::any_of(kWords, has);
}

}  // namespace

Signature signature_of_memset(std::uint64_t bytes) {
  return {kMemset, {static_cast<unsigned>(std::bit_width(bytes)), 0, 0}, {}};
}

Plan plan(std::span<const RecordedKernel> recorded, const std::map<Signature, InPlace>& in_place,
          bool goes_on) {
  std::map<Signature, std::vector<const RecordedKernel*>> by_signature;
  for (const RecordedKernel& kernel : recorded) {
    by_signature[{kernel.name, kernel.shape.grid, kernel.shape.block}].push_back(&kernel);
  }
  Plan out;
  for (const auto& [signature, did] : in_place) out.busy += did.busy;
  const auto is_short_and_unloaded = [&](const RecordedKernel& kernel, const InPlace& did) {
    return kernel.code != nullptr && did.busy < kLeastUnloaded * out.busy;
  };
  for (const auto& [signature, did] : in_place) {
    if (did.busy < kLeastShare * out.busy || did.launches == 0) continue;
    Planned planned{signature.name, did, {}};
    std::string why = "its launches were not seen";
    if (const auto found = by_signature.find(signature); found != by_signature.end()) {
      why = found->second.front()->why_not;
      for (const RecordedKernel* kernel : found->second) {
        if (!kernel->why_not.empty()) continue;
        if (goes_on && reads_indices(signature.name)) {
          why = "it reads indices that may have changed";
        } else if (goes_on && is_short_and_unloaded(*kernel, did)) {
          why = "its code was unloaded, and it ran too shortly";
        } else {
          planned.kernels.push_back(kernel);
        }
      }
    }
    if (planned.kernels.empty()) {
      out.left_out.push_back({signature.name, did.busy / out.busy, std::move(why)});
    } else {
      out.kernels.push_back(std::move(planned));
    }
  }
  const auto rank = [&](const Planned& one) {
    const bool unloaded = std::ranges::any_of(one.kernels, [&](const RecordedKernel* kernel) {
      return is_short_and_unloaded(*kernel, one.in_place);
    });
    return std::tuple(unloaded, reads_indices(one.name), -one.in_place.busy);
  };
  std::ranges::sort(out.kernels, {}, rank);
  return out;
}

std::vector<double> loop_seconds(std::span<const double> busy, double most, double left) {
  double rest = 0;
  for (const double seconds : busy) rest += seconds;
  const double all_but = kAllBut * rest;
  std::size_t counted = 0;
  while (counted < busy.size() && rest > all_but) rest -= busy[counted++];
  left -= static_cast<double>(counted) * kLoopCosts;
  const auto length = [&](double scale, std::size_t i) {
    return std::clamp(scale * std::pow(busy[i], 2.0 / 3), std::min(kLeastSeconds, most), most);
  };
  const auto fits = [&](double scale) {
    double sum = 0;
    for (std::size_t i = 0; i < counted; ++i) sum += length(scale, i);
    return sum <= left;
  };
  double low = 0;
  double high = 0;
  if (!busy.empty() && busy.back() > 0) high = most / std::pow(busy.back(), 2.0 / 3);
  if (fits(high)) {
    low = high;
  } else {
    for (int i = 0; i < 40; ++i) {
      const double middle = (low + high) / 2;
      (fits(middle) ? low : high) = middle;
    }
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < busy.size(); ++i) out.push_back(length(low, i));
  return out;
}

std::string described(std::span<const Plan::LeftOut> left_out) {
  std::vector<Plan::LeftOut> sorted(left_out.begin(), left_out.end());
  std::ranges::stable_sort(sorted, [](const auto& a, const auto& b) { return a.share > b.share; });
  std::string out;
  for (std::size_t i = 0; i < std::min(sorted.size(), kMostNamed); ++i) {
    std::string name = demangle(sorted[i].name);
    if (name.size() > kNameWidth) name = name.substr(0, kNameWidth) + "...";
    out += fmt::format("{}{} ({:.1f} % of the kernels' time: {})", i == 0 ? "" : ", ", name,
                       100 * sorted[i].share, sorted[i].why);
  }
  if (sorted.size() > kMostNamed) out += fmt::format(" and {} more", sorted.size() - kMostNamed);
  return out;
}

}  // namespace jouleprof::reruns
