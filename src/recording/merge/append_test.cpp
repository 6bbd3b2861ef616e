#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recording/merge/merged_file.h"
#include "recording/recording_fixture.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Append : public ::testing::Test {
 protected:
  fs::path record(const std::string& name, unsigned seed) {
    auto recording = RandomRecording(seed, 20).make();
    recording.run.host = "node";
    recording.run.boot_id = "boot";
    fs::remove(at(name));
    EXPECT_TRUE(write_recording(at(name), recording));
    return at(name);
  }
  fs::path at(const std::string& name) const { return folder_.root() / name; }
  std::vector<std::string> names(const fs::path& path) const {
    std::vector<std::string> out;
    const auto parts = merged_parts(path);
    if (!parts) return {parts.error().message};
    for (const auto& part : *parts) out.push_back(part.name);
    return out;
  }

  TempTree folder_;
};

TEST_F(Append, ARecordingBecomesTheFirstOfSeveral) {
  const auto file = record("x.jprof", 1);
  const auto first = bytes_of(file);
  const auto second = record("x-2.jprof", 2);
  EXPECT_EQ(append_recording(second, file).value(), 2u);
  EXPECT_THAT(names(file), ElementsAre("x-0001.jprof", "x-0002.jprof"));
  for (unsigned n = 3; n <= 11; ++n) {
    EXPECT_TRUE(check_appendable(file));
    EXPECT_EQ(append_recording(record("next.jprof", n), file).value(), n);
  }
  ASSERT_TRUE(extract_part(file, 1, at("one")));
  EXPECT_EQ(bytes_of(at("one")), first);
  ASSERT_TRUE(extract_part(file, 11, at("eleven")));
  EXPECT_EQ(bytes_of(at("eleven")), bytes_of(at("next.jprof")));
  EXPECT_EQ(bytes_of(second), bytes_of(at("x-2.jprof")));
}

TEST_F(Append, ToAMergedFileWhosePartsHaveNamesOfTheirOwn) {
  ASSERT_TRUE(
      merge_recordings({record("a.jprof", 1), record("m-0003.jprof", 2)}, at("m.jprof"), false));
  EXPECT_EQ(append_recording(record("new.jprof", 3), at("m.jprof")).value(), 3u);
  EXPECT_THAT(names(at("m.jprof")), ElementsAre("a.jprof", "m-0003.jprof", "m-0004.jprof"));
}

TEST_F(Append, WhatCannotBeAppendedToStaysAsItWas) {
  const auto recording = record("new.jprof", 1);
  std::ofstream(at("text")) << "text";
  EXPECT_FALSE(check_appendable(at("text")));
  EXPECT_FALSE(append_recording(recording, at("text")));
  EXPECT_EQ(bytes_of(at("text")), "text");
  EXPECT_EQ(append_recording(recording, at("missing")).error().code, Errc::kNotFound);
  EXPECT_FALSE(fs::exists(at("missing")));
  EXPECT_EQ(check_appendable(at("missing")).error().code, Errc::kNotFound);

  const auto file = record("x.jprof", 2);
  const auto before = bytes_of(file);
  EXPECT_FALSE(append_recording(at("missing"), file));
  EXPECT_FALSE(append_recording(file, file));  // its energy would count twice
  EXPECT_EQ(bytes_of(file), before);
  const Writer writer = writer_with_sensor(at("open.jprof"));
  const auto open = check_appendable(at("open.jprof"));
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, Errc::kUnavailable);
  EXPECT_THAT(open.error().message, HasSubstr("cannot append to"));
}

}  // namespace
}  // namespace jouleprof::recording
