// Sinks that keep the records of an aggregator, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"
#include "spans/cupti/aggregate/activity_aggregator.h"

namespace jouleprof::cupti {

// Keeps all records.
struct MemorySink : model::ActivitySink {
  model::Trace trace;
  int statuses = 0;

  void define(std::uint32_t id, const model::TracedDevice& d) override {
    put(trace.devices, id, d);
  }
  void define(std::uint32_t id, const model::KernelClass& c) override { put(trace.classes, id, c); }
  void define(std::uint32_t id, const model::Layer& l) override { put(trace.layers, id, l); }
  void define(std::uint32_t id, const model::Range& r) override { put(trace.ranges, id, r); }
  void define(std::uint32_t id, const model::Scope& s) override { put(trace.scopes, id, s); }
  void add(const model::ActivityChunk& chunk) override { trace.chunks.push_back(chunk); }
  void status(const model::TraceStatus& status) override {
    trace.status = status;
    ++statuses;
  }

  template <typename T>
  static void put(std::vector<T>& list, std::uint32_t id, const T& value) {
    EXPECT_EQ(id, list.size()) << "identifiers count up";
    list.push_back(value);
  }

  struct Sum {
    std::uint64_t busy = 0;
    std::uint64_t launches = 0;
    bool operator==(const Sum&) const = default;
  };

  template <typename Entry, typename Use>
  void each(model::ChunkKind kind, Use&& use) const {
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != kind) continue;
      EXPECT_LT(chunk.device, trace.devices.size());
      model::ActivityDecoder decoder(chunk.bytes);
      Entry entry;
      while (decoder.next(entry)) use(chunk, entry);
      EXPECT_TRUE(decoder.ok());
    }
  }

  // Busy nanoseconds and launches by bin (from HostTime's epoch) and class.
  std::map<std::pair<std::int64_t, std::uint32_t>, Sum> bins(std::uint32_t device) const {
    std::map<std::pair<std::int64_t, std::uint32_t>, Sum> sums;
    each<model::BinEntry>(model::ChunkKind::kBins, [&](const auto& chunk, const auto& entry) {
      if (chunk.device != device) return;
      const std::int64_t begin = chunk.begin.time_since_epoch().count();
      EXPECT_EQ(begin % trace.bin.count(), 0);
      EXPECT_LT(chunk.begin + entry.bin * trace.bin, chunk.end);
      Sum& sum = sums[{begin / trace.bin.count() + entry.bin, entry.kernel_class}];
      sum.busy += entry.busy_nanoseconds;
      sum.launches += entry.launches;
    });
    return sums;
  }

  Sum total(std::uint32_t device) const {
    Sum all;
    for (const auto& [key, sum] : bins(device)) {
      all.busy += sum.busy;
      all.launches += sum.launches;
    }
    return all;
  }

  Sum of_class(std::uint32_t kernel_class) const {
    Sum all;
    for (std::uint32_t d = 0; d != trace.devices.size(); ++d) {
      for (const auto& [key, sum] : bins(d)) {
        if (key.second != kernel_class) continue;
        all.busy += sum.busy;
        all.launches += sum.launches;
      }
    }
    return all;
  }

  // By class and scope.
  std::map<std::pair<std::uint32_t, std::uint32_t>, Sum> scopes() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, Sum> sums;
    each<model::ScopeEntry>(model::ChunkKind::kScopes, [&](const auto&, const auto& entry) {
      Sum& sum = sums[{entry.kernel_class, entry.scope}];
      sum.busy += entry.busy_nanoseconds;
      sum.launches += entry.launches;
    });
    return sums;
  }

  std::vector<std::pair<std::int64_t, model::EventEntry>> events() const {
    std::vector<std::pair<std::int64_t, model::EventEntry>> all;
    each<model::EventEntry>(model::ChunkKind::kEvents, [&](const auto& chunk, const auto& entry) {
      all.emplace_back(chunk.begin.time_since_epoch().count() + entry.start_nanoseconds, entry);
    });
    return all;
  }
};

// --- The chunks of an aggregator ---

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
