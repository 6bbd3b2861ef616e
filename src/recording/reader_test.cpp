#include "recording/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "recording/recording_fixture.h"
#include "recording/tables/rows.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

TEST(Reader, SortsByTimeAndKeepsEqualTimesInOrder) {
  const TempTree tree;
  Writer writer = writer_with_sensor(tree / "x.jprof");
  const auto at = [](int second) { return HostTime{std::chrono::seconds{second}}; };
  const model::SensorId id{0};
  model::Readings r;
  r.powers = {{id, at(3), Power::watts(1)},
              {id, at(1), Power::watts(2)},
              {id, at(3), Power::watts(3)},
              {id, at(2), Power::watts(4)}};
  r.counters = {{id, at(2), at(2), Energy::joules(1)}, {id, at(1), at(5), Energy::joules(2)}};
  ASSERT_TRUE(writer.append(r));
  ASSERT_TRUE(writer.finish());
  const auto read = read_recording(tree / "x.jprof").value().readings;
  EXPECT_THAT(read.powers, ElementsAre(r.powers[1], r.powers[3], r.powers[0], r.powers[2]));
  EXPECT_THAT(read.counters, ElementsAre(r.counters[1], r.counters[0]));
}

TEST(Reader, OpensStrangeNamesAndLinks) {
  const TempTree tree;
  const model::Recording recording = RandomRecording(3).make();
  const fs::path strange = tree / "50%?mode=memory#1 é 'x'.jprof";
  {
    // Left with a write-ahead log's header, so that it is opened by a URI with a query of its own.
    Writer writer = writer_with_sensor(strange);
  }
  EXPECT_TRUE(read_recording(strange));
  fs::create_symlink(strange, tree / "link.jprof");
  EXPECT_TRUE(read_recording(tree / "link.jprof"));
  ASSERT_TRUE(write_recording(strange, recording, {.overwrite = true}));
  expect_equal(read_recording(tree / "link.jprof").value(), recording);
}

// As where there is no shared memory: a rollback journal that a killed writer left has to be played
// back, or the file is torn.
TEST(Reader, PlaysBackARollbackJournal) {
  const TempTree tree;
  model::Recording recording = RandomRecording(4, 3000).make();
  ASSERT_TRUE(write_recording(tree / "x.jprof", recording));
  {
    SQLite::Database db((tree / "x.jprof").string(), SQLite::OPEN_READWRITE);
    db.exec(
        "PRAGMA synchronous = OFF; PRAGMA cache_size = 1; BEGIN; UPDATE power_reading SET "
        "power_watts = 666");
    fs::copy(tree / "x.jprof", tree / "killed.jprof");
    fs::copy(tree / "x.jprof-journal", tree / "killed.jprof-journal");
  }
  const auto read = read_recording(tree / "killed.jprof");
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(*read, recording);
}

TEST(Packed, GivesBackWhatWasPacked) {
  std::mt19937 random(1);
  for (const unsigned length : {0u, 1u, 100u, 70'000u, 3'000'000u}) {
    std::string text(length, 'a');
    for (std::size_t i = 0; i < length; i += 3) text[i] = static_cast<char>(random());
    EXPECT_EQ(unpack(pack(text)), text);
  }
}

TEST(Packed, WhatRepeatsGetsSmaller) {
  std::string text;
  for (int i = 0; i < 10'000; ++i) text += "abcd";
  EXPECT_LT(pack(text).size(), text.size() / 20);
}

TEST(Packed, WhatDoesNotGetSmallerStaysAsItIs) {
  EXPECT_EQ(pack("abc"),
            "\xff\xff\xff\xff"
            "abc");
}

TEST(Packed, DamageIsSeen) {
  const std::string sound = pack(std::string(1000, 'x') + "end");
  EXPECT_EQ(unpack(""), std::nullopt);
  EXPECT_EQ(unpack("abc"), std::nullopt);
  for (std::size_t length = 0; length < sound.size(); ++length) {
    EXPECT_EQ(unpack(sound.substr(0, length)), std::nullopt) << length;
  }
  for (std::size_t i = 4; i < sound.size(); ++i) {
    std::string damaged = sound;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
    const auto got = unpack(damaged);
    EXPECT_TRUE(!got || *got == std::string(1000, 'x') + "end") << i;
  }
}

TEST(Packed, ALengthThatCannotBeTakesNoMemory) {
  std::string lie = pack(std::string(100, 'a'));
  lie[3] = '\x7f';  // two gigabytes
  EXPECT_EQ(unpack(lie), std::nullopt);
}

}  // namespace
}  // namespace jouleprof::recording
