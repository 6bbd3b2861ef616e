#include "model/activity/activity_codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace jouleprof::model {
namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kLastIndex = kNone - 1;

template <class Entry>
std::vector<Entry> decoded(const std::string& bytes, bool fine = true) {
  std::vector<Entry> entries;
  ActivityDecoder decoder(bytes);
  for (Entry entry; decoder.next(entry);) entries.push_back(entry);
  EXPECT_EQ(decoder.ok(), fine);
  Entry another;
  EXPECT_FALSE(decoder.next(another)) << "goes on after the end";
  return entries;
}

template <class Entry>
std::string encoded(const std::vector<Entry>& entries) {
  ActivityEncoder encoder;
  for (const auto& entry : entries) encoder.add(entry);
  EXPECT_EQ(encoder.empty(), entries.empty());
  return encoder.take();
}

// The same entries come back; a part of the bytes gives the first of them, and never others.
template <class Entry>
void expect_round_trip(const std::vector<Entry>& entries) {
  const std::string bytes = encoded(entries);
  EXPECT_EQ(decoded<Entry>(bytes), entries);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    std::vector<Entry> part;
    ActivityDecoder decoder(std::string_view(bytes).substr(0, size));
    for (Entry entry; decoder.next(entry);) part.push_back(entry);
    ASSERT_LT(part.size(), entries.size());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), entries.begin()));
  }
}

TEST(ActivityCodec, BinsComeBack) {
  expect_round_trip<BinEntry>({{0, 0, 0, 0},
                               {0, 1, 5'000'000, 3},
                               {7, 300, 1, 1},
                               {kLastIndex, kLastIndex, kLargest, kLargest}});
}

TEST(ActivityCodec, ScopesComeBack) {
  expect_round_trip<ScopeEntry>({{0, 0, 0, 0},
                                 {3, kNone, 1, 1},
                                 {kLastIndex, kLastIndex, kLargest, kLargest},
                                 {1, 128, 2, 3}});
}

TEST(ActivityCodec, EventsComeBackInAnyOrder) {
  constexpr auto kFirst = std::numeric_limits<std::int64_t>::min() / 2;
  expect_round_trip<EventEntry>({{0, 0, 0, kNone, 0},
                                 {100, 50, 1, 0, 7},
                                 {-20, kLargest, kLastIndex, kLastIndex, kLastIndex},
                                 {kFirst, 1, 1, 1, 1},
                                 {-kFirst - 1, 1, 1, 1, 1}});
}

TEST(ActivityCodec, LayersComeBack) {
  expect_round_trip<LayerEntry>({{0, Phase::kNone, 0, 0, 0},
                                 {9, Phase::kOptimizer, 1, kLargest, kLargest},
                                 {1, Phase::kBackward, 2, 3, 4}});
}

TEST(ActivityCodec, ReRunsComeBack) {
  expect_round_trip<KernelRerun>({{0, 0}, {kLargest, kLargest}, {1, 2}});
}

TEST(ActivityCodec, TheBytesAreThese) {
  EXPECT_EQ(encoded<BinEntry>({{2, 300, 1, 0}, {3, 0, 127, 128}}),
            std::string("\x02\xAC\x02\x01\x00\x01\x00\x7F\x80\x01", 10));
  EXPECT_EQ(encoded<EventEntry>({{-1, 1, 0, kNone, 0}, {1, 1, 0, 0, 0}}),
            std::string("\x01\x01\x00\x00\x00\x04\x01\x00\x01\x00", 10));
}

TEST(ActivityCodec, TakingStartsAnew) {
  ActivityEncoder encoder;
  encoder.add(BinEntry{5, 1, 1, 1});
  const std::string first = encoder.take();
  EXPECT_TRUE(encoder.empty());
  EXPECT_EQ(encoder.size(), 0U);
  encoder.add(BinEntry{5, 1, 1, 1});
  EXPECT_EQ(encoder.take(), first);
  encoder.add(EventEntry{5, 1, 1, 1, 1});
  const std::string event = encoder.take();
  encoder.add(EventEntry{5, 1, 1, 1, 1});
  EXPECT_EQ(encoder.take(), event);
}

TEST(ActivityCodec, NumbersThatCannotBeAreDamage) {
  const std::string eleven(11, '\xFF');
  decoded<BinEntry>(eleven, false);
  decoded<LayerEntry>(eleven, false);
  // 2^64 and more in ten bytes.
  decoded<ScopeEntry>(
      std::string("\0\0", 2) + std::string(9, '\x80') + "\x02" + std::string(1, '\0'), false);
  // Indices have 32 bits, and the last one means "none".
  decoded<ScopeEntry>(std::string("\xFF\xFF\xFF\xFF\x0F\0\0\0", 8), false);
  // A bin beyond the last, a phase that there is not, a scope beyond the last.
  decoded<BinEntry>(std::string("\xFE\xFF\xFF\xFF\x0F\0\0\0\x05\0\0\0", 12), false);
  decoded<LayerEntry>(std::string("\0\x04\0\0\0", 5), false);
  decoded<EventEntry>(std::string("\0\0\0\x80\x80\x80\x80\x10\0", 9), false);
  // Starts that run over.
  const std::string far =
      encoded<EventEntry>({{std::numeric_limits<std::int64_t>::max(), 0, 0, 0, 0}});
  decoded<EventEntry>(far + encoded<EventEntry>({{1, 0, 0, 0, 0}}), false);
}

TEST(ActivityCodec, AnyBytesCanBeRead) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    const auto read = [&bytes](auto entry) {
      ActivityDecoder decoder(bytes);
      std::size_t entries = 0;
      while (decoder.next(entry)) ++entries;
      EXPECT_LE(entries, bytes.size());
    };
    read(BinEntry{});
    read(ScopeEntry{});
    read(EventEntry{});
    read(LayerEntry{});
    read(KernelRerun{});
  }
}

}  // namespace
}  // namespace jouleprof::model
