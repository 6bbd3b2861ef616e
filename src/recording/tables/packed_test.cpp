#include "recording/tables/packed.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace jouleprof::recording {
namespace {

TEST(Packed, GivesBackWhatWasPacked) {
  std::mt19937 random(1);
  for (const std::size_t length : {0, 1, 100, 70'000, 3'000'000}) {
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
