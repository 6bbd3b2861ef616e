#include "model/activity/device_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace jouleprof::model {
namespace {

using namespace std::chrono_literals;

struct Collected {
  std::vector<ActivityChunk> chunks;
  ActivityBins::Emit emit() {
    return [this](ActivityChunk chunk) { chunks.push_back(std::move(chunk)); };
  }

  // (begin of the bin in ns, class) -> entry
  std::map<std::pair<std::int64_t, std::uint32_t>, BinEntry> bins(
      Duration bin, ChunkKind kind = ChunkKind::kBins) const {
    std::map<std::pair<std::int64_t, std::uint32_t>, BinEntry> out;
    for (const auto& chunk : chunks) {
      if (chunk.kind != kind) continue;
      ActivityDecoder decoder(chunk.bytes);
      for (BinEntry e; decoder.next(e);) {
        const HostTime at = chunk.begin + e.bin * bin;
        EXPECT_LT(at, chunk.end);
        const auto key = std::pair(at.time_since_epoch().count(), e.kernel_class);
        EXPECT_TRUE(out.emplace(key, e).second) << "a bin came twice";
      }
      EXPECT_TRUE(decoder.ok());
    }
    return out;
  }

  std::map<std::pair<std::uint32_t, std::uint32_t>, ScopeEntry> scopes(
      ChunkKind kind = ChunkKind::kScopes) const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, ScopeEntry> out;
    for (const auto& chunk : chunks) {
      if (chunk.kind != kind) continue;
      ActivityDecoder decoder(chunk.bytes);
      for (ScopeEntry e; decoder.next(e);) {
        auto& sum = out[{e.kernel_class, e.scope}];
        sum.launches += e.launches;
        sum.busy_nanoseconds += e.busy_nanoseconds;
      }
    }
    return out;
  }

  std::vector<std::pair<std::int64_t, EventEntry>> events() const {
    std::vector<std::pair<std::int64_t, EventEntry>> out;
    for (const auto& chunk : chunks) {
      if (chunk.kind != ChunkKind::kEvents) continue;
      ActivityDecoder decoder(chunk.bytes);
      for (EventEntry e; decoder.next(e);) {
        out.emplace_back(chunk.begin.time_since_epoch().count() + e.start_nanoseconds, e);
      }
    }
    return out;
  }
};

HostTime at(Duration time) { return HostTime{time}; }

TEST(ActivityBins, ALaunchIsSpreadOverItsBins) {
  Collected got;
  ActivityBins bins({.bin = 5ms, .events = true}, got.emit());
  bins.add({at(1003ms), at(1012ms), 7, 3, 2});
  bins.finish();
  const auto entries = got.bins(5ms);
  ASSERT_EQ(entries.size(), 3u);
  const auto busy = [&](std::int64_t ms) { return entries.at({ms * 1'000'000, 7u}); };
  EXPECT_EQ(busy(1000).busy_nanoseconds, 2'000'000u);
  EXPECT_EQ(busy(1000).launches, 1u);
  EXPECT_EQ(busy(1005).busy_nanoseconds, 5'000'000u);
  EXPECT_EQ(busy(1005).launches, 0u);
  EXPECT_EQ(busy(1010).busy_nanoseconds, 2'000'000u);
  EXPECT_EQ(got.scopes().at({7, 3}), (ScopeEntry{0, 0, 1, 9'000'000}));
  ASSERT_EQ(got.events().size(), 1u);
  EXPECT_EQ(got.events()[0].first, 1'003'000'000);
  EXPECT_EQ(got.events()[0].second.duration_nanoseconds, 9'000'000u);
  EXPECT_EQ(got.events()[0].second.stream, 2u);
}

// 0-6 alone, 6-9 two of them, 9-10 three, 10-12 two, 12-15 alone.
TEST(ActivityBins, WhatOverlapsSharesEqually) {
  Collected got;
  ActivityBins bins({.bin = 100ms}, got.emit());
  bins.add({at(0ms), at(12ms), 0, 0, 0});
  bins.add({at(6ms), at(10ms), 1, 0, 1});
  bins.add({at(9ms), at(15ms), 2, 0, 2});
  bins.finish();
  const auto scopes = got.scopes();
  EXPECT_EQ(scopes.at({0, 0}).busy_nanoseconds, 6'000'000u + 1'500'000 + 333'334 + 1'000'000);
  EXPECT_NEAR(static_cast<double>(scopes.at({1, 0}).busy_nanoseconds), 1'500'000 + 333'333, 1);
  const auto sum = scopes.at({0, 0}).busy_nanoseconds + scopes.at({1, 0}).busy_nanoseconds +
                   scopes.at({2, 0}).busy_nanoseconds;
  EXPECT_EQ(sum, 15'000'000u);

  const auto overlapped = got.scopes(ChunkKind::kOverlappedScopes);
  EXPECT_EQ(overlapped.at({0, 0}), (ScopeEntry{0, 0, 0, 1'500'000 + 333'334 + 1'000'000}));
  EXPECT_EQ(overlapped.at({1, 0}), (ScopeEntry{0, 0, 0, scopes.at({1, 0}).busy_nanoseconds}));
  EXPECT_EQ(overlapped.at({2, 0}).busy_nanoseconds, scopes.at({2, 0}).busy_nanoseconds - 3'000'000);
  const auto bins_overlapped = got.bins(100ms, ChunkKind::kOverlappedBins);
  EXPECT_EQ(bins_overlapped.at({0, 0}), (BinEntry{0, 0, 1'500'000 + 333'334 + 1'000'000, 0}));
}

TEST(ActivityBins, WhatRunsAloneOverlapsNothing) {
  Collected got;
  ActivityBins bins({.bin = 5ms}, got.emit());
  bins.add({at(0ms), at(12ms), 0, 0, 0});
  bins.add({at(12ms), at(15ms), 1, 0, 1});
  bins.finish();
  EXPECT_EQ(got.scopes().size(), 2u);
  for (const auto& chunk : got.chunks) {
    EXPECT_TRUE(chunk.kind == ChunkKind::kBins || chunk.kind == ChunkKind::kScopes);
  }
}

TEST(ActivityBins, TheSumIsTheUnionOfAllTimesInAnyOrder) {
  std::mt19937 random(5);
  std::vector<Launch> launches;
  for (int i = 0; i < 3000; ++i) {
    const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
    const HostTime begin = at(Duration{below(4'000'000'000)});
    launches.push_back({begin, begin + Duration{below(3'000'000)}, below(5), below(3), below(4)});
  }
  std::sort(launches.begin(), launches.end(),
            [](const Launch& a, const Launch& b) { return a.begin < b.begin; });
  std::uint64_t busy = 0;
  HostTime seen{};
  for (const auto& l : launches) {
    if (l.end > seen) busy += static_cast<std::uint64_t>((l.end - std::max(l.begin, seen)).count());
    seen = std::max(seen, l.end);
  }
  std::map<std::pair<std::int64_t, std::uint32_t>, BinEntry> first;
  for (int round = 0; round < 2; ++round) {
    Collected got;
    ActivityBins bins({.bin = 5ms, .patience = 100ms, .events = true}, got.emit());
    for (const auto& l : launches) bins.add(l);
    bins.finish();
    EXPECT_EQ(bins.late(), 0u);
    EXPECT_EQ(bins.launches(), launches.size());
    EXPECT_EQ(got.events().size(), launches.size());
    const auto entries = got.bins(5ms);
    std::uint64_t in_bins = 0, in_scopes = 0, count = 0;
    std::map<std::int64_t, std::uint64_t> full;
    for (const auto& [key, e] : entries) {
      in_bins += e.busy_nanoseconds;
      count += e.launches;
      full[key.first] += e.busy_nanoseconds;
    }
    for (const auto& [time, sum] : full) EXPECT_LE(sum, 5'000'000u) << time;
    for (const auto& [key, e] : got.scopes()) in_scopes += e.busy_nanoseconds;
    EXPECT_EQ(in_bins, busy);
    EXPECT_EQ(in_scopes, busy);
    EXPECT_EQ(count, launches.size());
    // The second time out of order, within the patience.
    for (std::size_t i = 0; i + 50 < launches.size(); i += 50) {
      std::shuffle(launches.begin() + static_cast<std::ptrdiff_t>(i),
                   launches.begin() + static_cast<std::ptrdiff_t>(i) + 50, random);
    }
  }
}

TEST(ActivityBins, LateOnesCountWithTheirOwnTime) {
  Collected got;
  ActivityBins bins({.bin = 5ms, .patience = 0ms}, got.emit());
  bins.add({at(0ms), at(4ms), 0, 0, 0});
  bins.add({at(20ms), at(24ms), 0, 0, 0});
  bins.add({at(30ms), at(31ms), 0, 0, 0});
  bins.add({at(2ms), at(3ms), 1, 0, 0});
  bins.add({at(10ms), at(22ms), 1, 0, 0});
  bins.finish();
  EXPECT_EQ(bins.late(), 2u);
  EXPECT_EQ(bins.launches(), 5u);
  EXPECT_EQ(got.scopes().at({0, 0}), (ScopeEntry{0, 0, 3, 9'000'000}));
  EXPECT_EQ(got.scopes().at({1, 0}), (ScopeEntry{0, 0, 2, 13'000'000}));
  std::uint64_t busy = 0, launches = 0;
  for (const auto& [key, e] : got.bins(5ms)) {
    busy += e.busy_nanoseconds;
    launches += e.launches;
  }
  EXPECT_EQ(busy, 22'000'000u);
  EXPECT_EQ(launches, 5u);
}

TEST(ActivityBins, IdleTimeTakesNoSpace) {
  Collected got;
  ActivityBins bins({.bin = 5ms}, got.emit());
  bins.add({at(1s), at(1s + 1ms), 0, 0, 0});
  bins.add({at(86400s), at(86400s), 0, 0, 0});  // no time, and yet a launch
  bins.finish();
  std::size_t bytes = 0;
  for (const auto& chunk : got.chunks) bytes += chunk.bytes.size();
  EXPECT_EQ(got.chunks.size(), 4u);
  EXPECT_LT(bytes, 40u);
  EXPECT_EQ(got.scopes().at({0, 0}).launches, 2u);
  EXPECT_EQ(got.scopes().at({0, 0}).busy_nanoseconds, 1'000'000u);
}

TEST(ActivityBins, ALaunchOverChunksHasItsTimeInEach) {
  Collected got;
  ActivityBins bins({.bin = 5ms}, got.emit());
  bins.add({at(400ms), at(2400ms), 0, 9, 0});
  bins.finish();
  std::uint64_t sum = 0;
  HostTime begin = at(400ms);
  for (const auto& chunk : got.chunks) {
    if (chunk.kind != ChunkKind::kScopes) continue;
    EXPECT_EQ(chunk.begin, begin);  // without a gap, to the next edge
    EXPECT_EQ(
        chunk.end,
        std::min(begin - begin.time_since_epoch() % kScopeInterval + kScopeInterval, at(2400ms)));
    begin = chunk.end;
    ActivityDecoder decoder(chunk.bytes);
    for (ScopeEntry e; decoder.next(e);) {
      EXPECT_LE(Duration(e.busy_nanoseconds), chunk.end - chunk.begin);
      sum += e.busy_nanoseconds;
    }
  }
  EXPECT_EQ(begin, at(2400ms));
  EXPECT_EQ(sum, 2'000'000'000u);
}

// Whole bins only: 500 ms are 71 bins of 7 ms.
TEST(ActivityBins, NoBinIsInTwoChunks) {
  Collected got;
  ActivityBins bins({.bin = 7ms}, got.emit());
  bins.add({at(100ms), at(3s), 0, 9, 0});
  bins.finish();
  EXPECT_GT(got.chunks.size(), 10u);
  std::uint64_t sum = 0;
  for (const auto& [key, e] : got.bins(7ms)) sum += e.busy_nanoseconds;
  EXPECT_EQ(sum, 2'900'000'000u);
}

TEST(FlatSums, SumsByKey) {
  FlatSums sums;
  for (int round = 0; round != 3; ++round) {
    for (std::uint64_t i = 0; i != 10'000; ++i) sums.add(i << 32 | i % 7, 1, i);
  }
  ASSERT_EQ(sums.sums().size(), 10'000U);
  EXPECT_EQ(sums.sums()[77].busy, 231U);
  EXPECT_EQ(sums.sums()[77].launches, 3U);
  for (int round = 0; round != 20; ++round) {
    sums.clear();
    EXPECT_TRUE(sums.sums().empty());
    sums.add(5, 1, 1);
    sums.add(6, 1, 1);
    sums.add(5, 1, 1);
    ASSERT_EQ(sums.sums().size(), 2U);
    EXPECT_EQ(sums.sums()[0].launches, 2U);
  }
}

}  // namespace

}  // namespace jouleprof::model
