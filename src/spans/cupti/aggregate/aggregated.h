// The chunks of an aggregator, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/aggregate/memory_sink.h"

namespace jouleprof::cupti {

inline constexpr std::int64_t kMs = 1'000'000;
inline constexpr std::int64_t kSecond = 1000 * kMs;
inline constexpr std::int64_t kBegin = 1000 * kSecond;  // a multiple of the bin

using Sum = MemorySink::Sum;

inline Activity kernel(std::int64_t start, std::int64_t end, std::uint32_t kernel_class = 0,
                       std::uint32_t scope = model::kNone, std::uint32_t device = 0) {
  Activity a;
  a.start = kBegin + start;
  a.end = kBegin + end;
  a.kernel_class = kernel_class;
  a.scope = scope;
  a.device = device;
  return a;
}

struct Aggregated {
  MemorySink sink;
  ActivityAggregator aggregator;

  explicit Aggregated(AggregatorOptions options = {}) : aggregator(sink, with_bins(options)) {
    sink.trace.bin = std::chrono::nanoseconds{5 * kMs};
  }
  static AggregatorOptions with_bins(AggregatorOptions options) {
    options.bin = std::chrono::nanoseconds{5 * kMs};
    return options;
  }
  void settle(bool all = false) {
    aggregator.settle(all, false);
    aggregator.send();
  }
  Sum bin(std::int64_t n, std::uint32_t kernel_class = 0) const {
    const auto bins = sink.bins(0);
    const auto found = bins.find({kBegin / (5 * kMs) + n, kernel_class});
    return found == bins.end() ? Sum{} : found->second;
  }
};

}  // namespace jouleprof::cupti
