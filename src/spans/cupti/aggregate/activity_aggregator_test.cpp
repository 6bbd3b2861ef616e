#include "spans/cupti/aggregate/activity_aggregator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "spans/cupti/aggregate/aggregate_fixture.h"

namespace jouleprof::cupti {
namespace {

TEST(ActivityAggregator, PutsTimeIntoBins) {
  Aggregated a;
  a.aggregator.add(kernel(1 * kMs, 2 * kMs));
  a.aggregator.add(kernel(4 * kMs, 11 * kMs));
  a.aggregator.add(kernel(15 * kMs, 20 * kMs));
  a.settle(true);
  EXPECT_EQ(a.bin(0), (Sum{2 * kMs, 2}));
  EXPECT_EQ(a.bin(1), (Sum{5 * kMs, 0}));
  EXPECT_EQ(a.bin(2), (Sum{1 * kMs, 0}));
  EXPECT_EQ(a.bin(3), (Sum{5 * kMs, 1}));
  EXPECT_EQ(a.bin(4), Sum{});
  EXPECT_EQ(a.aggregator.activities(), 3U);
  EXPECT_EQ(a.aggregator.late(), 0U);
}

TEST(ActivityAggregator, SharesWhatOverlaps) {
  Aggregated a;
  // 0-6 alone, 6-9 two, 9-10 three, 10-12 two, 12-20 one
  a.aggregator.add(kernel(0, 20, 0));
  a.aggregator.add(kernel(6, 12, 1));
  a.aggregator.add(kernel(9, 10, 2));
  a.settle(true);
  // 1 ns that 3 share goes to the first.
  EXPECT_EQ(a.sink.of_class(0), (Sum{6 + 2 + 1 + 1 + 8, 1}));
  EXPECT_EQ(a.sink.of_class(1), (Sum{1 + 0 + 1, 1}));
  EXPECT_EQ(a.sink.of_class(2), (Sum{0, 1}));
  EXPECT_EQ(a.sink.total(0).busy, 20U);
}

TEST(ActivityAggregator, TwoAtOnceForTheSameTimeHalveIt) {
  Aggregated a;
  a.aggregator.add(kernel(0, 10 * kMs, 0));
  a.aggregator.add(kernel(0, 10 * kMs, 1));
  a.settle(true);
  EXPECT_EQ(a.bin(0, 0), (Sum{5 * kMs / 2, 1}));
  EXPECT_EQ(a.bin(1, 0), (Sum{5 * kMs / 2, 0}));
  EXPECT_EQ(a.bin(1, 1), (Sum{5 * kMs / 2, 0}));
}

// In order, and the copy's record after those of the kernels.
TEST(ActivityAggregator, ACopyEndsWhenTheNextOfItsStreamBegins) {
  const auto copy = [](std::int64_t start, std::int64_t end, std::uint32_t kind) {
    Activity a = kernel(start, end, kind);
    a.copy = true;
    return a;
  };
  for (const bool late : {false, true}) {
    Aggregated a;
    if (!late) a.aggregator.add(copy(1 * kMs, 30 * kMs, 8));
    a.aggregator.add(kernel(5 * kMs, 8 * kMs, 1));
    a.aggregator.add(kernel(10 * kMs, 14 * kMs, 1));
    Activity elsewhere = kernel(2 * kMs, 3 * kMs, 2);
    elsewhere.stream = 7;
    a.aggregator.add(elsewhere);
    if (late) a.aggregator.add(copy(1 * kMs, 30 * kMs, 8));
    a.aggregator.add(copy(20 * kMs, 24 * kMs, 9));  // the last one of the stream
    a.settle(true);
    EXPECT_EQ(a.sink.of_class(1), (Sum{7 * kMs, 2}));
    EXPECT_EQ(a.sink.of_class(8), (Sum{3 * kMs + kMs / 2, 1}));
    EXPECT_EQ(a.sink.of_class(2), (Sum{kMs / 2, 1}));
    EXPECT_EQ(a.sink.of_class(9), (Sum{4 * kMs, 1}));
  }
}

TEST(ActivityAggregator, NoDurationIsALaunch) {
  Aggregated a;
  a.aggregator.add(kernel(7 * kMs, 7 * kMs, 3, 9));
  a.settle(true);
  EXPECT_EQ(a.bin(1, 3), (Sum{0, 1}));
  EXPECT_EQ(a.sink.scopes().at({3, 9}), (Sum{0, 1}));
}

// Any records, sent in any parts: the shares sum to the time in which anything ran, exactly.
TEST(ActivityAggregator, SharesSumToTheUnion) {
  for (unsigned seed = 0; seed != 20; ++seed) {
    std::mt19937 random(seed);
    const auto pick = [&](int n) { return static_cast<std::int64_t>(random() % unsigned(n)); };
    Aggregated a;
    std::vector<Activity> all;
    for (std::int64_t t = 0; t < 6 * kSecond;) {
      all.push_back(kernel(t, t + pick(20'000'000), static_cast<std::uint32_t>(pick(7)),
                           pick(3) == 0 ? model::kNone : static_cast<std::uint32_t>(pick(5))));
      t += pick(10'000'000);
    }
    std::int64_t busy = 0;
    std::int64_t reached = 0;
    for (const Activity& k : all) {
      busy += std::max<std::int64_t>(0, k.end - std::max(reached, k.start));
      reached = std::max(reached, k.end);
    }
    // Out of order by up to half a second, as buffers of several threads are.
    auto shuffled = all;
    std::stable_sort(shuffled.begin(), shuffled.end(), [&](const Activity& x, const Activity& y) {
      return x.start / (kSecond / 2) < y.start / (kSecond / 2);
    });
    for (std::size_t i = 0; i + 8 < shuffled.size(); i += 8) {
      std::shuffle(shuffled.begin() + static_cast<std::ptrdiff_t>(i),
                   shuffled.begin() + static_cast<std::ptrdiff_t>(i) + 8, random);
    }
    for (std::size_t i = 0; i != shuffled.size(); ++i) {
      a.aggregator.add(shuffled[i]);
      if (i % 100 == 99) a.settle();
    }
    a.settle(true);
    EXPECT_EQ(a.aggregator.late(), 0U);
    EXPECT_EQ(a.sink.total(0), (Sum{static_cast<std::uint64_t>(busy), all.size()}));
    std::map<std::int64_t, std::uint64_t> filled;
    for (const auto& [key, sum] : a.sink.bins(0)) filled[key.first] += sum.busy;
    for (const auto& [bin, sum] : filled) EXPECT_LE(sum, std::uint64_t{5 * kMs});
    std::uint64_t in_scopes = 0;
    for (const auto& [key, sum] : a.sink.scopes()) in_scopes += sum.launches;
    EXPECT_EQ(in_scopes, all.size());  // none is a scope, too
  }
}

TEST(ActivityAggregator, ScopesSumToTheirClasses) {
  Aggregated a;
  a.aggregator.add(kernel(0, 10, 0, 4));
  a.aggregator.add(kernel(5, 15, 0, 5));
  a.aggregator.add(kernel(20, 2 * kSecond, 1, 4));  // sent in two parts
  a.aggregator.add(kernel(2 * kSecond + 500 * kMs, 2 * kSecond + 600 * kMs, 1, 5));
  a.settle();
  // A launch that still runs is in both, with its time so far.
  std::uint64_t in_scopes = 0;
  for (const auto& [key, sum] : a.sink.scopes()) in_scopes += sum.busy;
  EXPECT_EQ(in_scopes, a.sink.total(0).busy);
  EXPECT_GT(in_scopes, std::uint64_t{kSecond});
  a.settle(true);
  const auto scopes = a.sink.scopes();
  EXPECT_EQ(scopes.at({0, 4}), (Sum{8, 1}));
  EXPECT_EQ(scopes.at({0, 5}), (Sum{7, 1}));
  EXPECT_EQ(scopes.at({1, 4}), (Sum{2 * kSecond - 20, 1}));
  EXPECT_EQ(scopes.at({1, 5}), (Sum{100 * kMs, 1}));
}

TEST(ActivityAggregator, WaitsForWhatMayStillCome) {
  Aggregated a;
  a.aggregator.add(kernel(500 * kMs, 600 * kMs));
  a.settle();
  EXPECT_TRUE(a.sink.trace.chunks.empty());
  a.aggregator.add(kernel(100 * kMs, 200 * kMs));
  a.aggregator.add(kernel(2000 * kMs, 2050 * kMs));
  a.settle();
  EXPECT_EQ(a.aggregator.late(), 0U);
  EXPECT_EQ(a.sink.total(0), (Sum{200 * kMs, 2}));
}

TEST(ActivityAggregator, LateIsCountedInFull) {
  Aggregated a({.events = true});
  a.aggregator.add(kernel(0, 2 * kMs, 0));
  a.aggregator.add(kernel(3 * kSecond, 3 * kSecond + kMs, 0));
  a.settle();
  a.aggregator.add(kernel(kMs, 7 * kMs, 1, 6));
  a.settle(true);
  EXPECT_EQ(a.aggregator.late(), 1U);
  EXPECT_EQ(a.bin(0, 0), (Sum{2 * kMs, 1}));
  EXPECT_EQ(a.bin(0, 1), (Sum{4 * kMs, 1}));
  EXPECT_EQ(a.bin(1, 1), (Sum{2 * kMs, 0}));
  EXPECT_EQ(a.sink.scopes().at({1, 6}), (Sum{6 * kMs, 1}));
  EXPECT_EQ(a.sink.events().size(), 3U);
}

TEST(ActivityAggregator, DevicesAreApart) {
  Aggregated a;
  a.aggregator.device({1, "GPU-1", "one"});
  a.aggregator.add(kernel(0, 10, 0, 1, 1));
  a.aggregator.add(kernel(0, 10, 0, 1, 0));
  a.aggregator.add(kernel(0, 10, 0, 1, model::kNone));
  a.settle(true);
  ASSERT_EQ(a.sink.trace.devices.size(), 2U);
  EXPECT_EQ(a.sink.trace.devices[0], (model::TracedDevice{1, "GPU-1", "one"}));
  EXPECT_EQ(a.sink.trace.devices[1], (model::TracedDevice{0, "", ""}));
  EXPECT_EQ(a.sink.total(0), (Sum{10, 1}));
  EXPECT_EQ(a.sink.total(1), (Sum{10, 1}));
  EXPECT_EQ(a.aggregator.unplaced(), 1U);
}

TEST(ActivityAggregator, KeepsEachLaunchIfWanted) {
  Aggregated a({.events = true});
  a.aggregator.add(kernel(2 * kMs, 9 * kMs, 1, 3));
  a.aggregator.add(kernel(3 * kMs, 4 * kMs, 2));
  a.settle(true);
  const auto events = a.sink.events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].first, kBegin + 2 * kMs);
  EXPECT_EQ(events[0].second.duration_nanoseconds, std::uint64_t{7 * kMs});
  EXPECT_EQ(events[0].second.scope, 3U);
  EXPECT_EQ(events[1].first, kBegin + 3 * kMs);
  EXPECT_EQ(events[1].second.scope, model::kNone);
}

TEST(ActivityAggregator, MemoryIsBounded) {
  Aggregated a({.most_waiting = 1000});
  for (int i = 0; i != 1500; ++i) a.aggregator.add(kernel(i * kMs, i * kMs + kMs / 2));
  a.settle();
  EXPECT_EQ(a.sink.total(0).launches, 500U);  // of the half that waits no longer, to the last edge
  a.settle(true);
  EXPECT_EQ(a.sink.total(0), (Sum{1500 * kMs / 2, 1500}));
}

TEST(ActivityAggregator, ScopesAreSummedByHalfSeconds) {
  Aggregated a;
  for (int i = 0; i != 450; ++i) {
    a.aggregator.add(kernel(i * 10 * kMs, i * 10 * kMs + 7 * kMs, 0, i < 230 ? 1 : 2));
    if (i % 97 == 96) a.settle();  // rounds that no edge knows
  }
  a.settle(true);
  std::vector<std::int64_t> ends;
  std::uint64_t busy = 0;
  a.sink.each<model::ScopeEntry>(model::ChunkKind::kScopes,
                                 [&](const auto& chunk, const auto& entry) {
                                   EXPECT_LE(chunk.end - chunk.begin, model::kScopeInterval);
                                   const auto end = chunk.end.time_since_epoch().count() - kBegin;
                                   if (ends.empty() || ends.back() != end) ends.push_back(end);
                                   busy += entry.busy_nanoseconds;
                                 });
  ASSERT_EQ(ends.size(), 9U);
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    EXPECT_EQ(ends[i], static_cast<std::int64_t>(i + 1) * kSecond / 2);
  }
  EXPECT_EQ(busy, std::uint64_t{450 * 7 * kMs});
}

TEST(ActivityAggregator, BinsGetWideInALongProgram) {
  Aggregated a({.fine = std::chrono::seconds{1}});
  for (int i = 0; i < 300; ++i) {
    a.aggregator.add(kernel(i * 10 * kMs, i * 10 * kMs + 3 * kMs));
    if (i % 50 == 49) a.settle();
  }
  a.settle(true);
  std::uint64_t busy = 0;
  std::size_t wide = 0;
  for (const auto& chunk : a.sink.trace.chunks) {
    if (!model::is_bins(chunk.kind)) continue;
    wide += chunk.kind == model::ChunkKind::kWideBins;
    // The first chunk is fine; nothing turns back.
    EXPECT_EQ(wide > 0, chunk.kind == model::ChunkKind::kWideBins);
    const Duration length = model::bin_of(chunk.kind, a.sink.trace.bin);
    model::ActivityDecoder decoder(chunk.bytes);
    for (model::BinEntry e; decoder.next(e);) {
      EXPECT_LE(e.busy_nanoseconds, static_cast<std::uint64_t>(length.count()));
      EXPECT_LT(chunk.begin + e.bin * length, chunk.end);
      busy += e.busy_nanoseconds;
    }
  }
  EXPECT_GE(wide, 2u);
  EXPECT_EQ(busy, 300u * 3 * kMs);
}

}  // namespace
}  // namespace jouleprof::cupti
