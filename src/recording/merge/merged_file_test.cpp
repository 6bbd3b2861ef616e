#include "recording/merge/merged_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "recording/recording_fixture.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Merge : public ::testing::Test {
 protected:
  fs::path record(const std::string& name, unsigned seed, const std::string& host,
                  const std::string& boot) {
    auto recording = RandomRecording(seed, 20).make();
    recording.run.host = host;
    recording.run.boot_id = boot;
    const fs::path path = folder_.root() / name;
    EXPECT_TRUE(write_recording(path, recording));
    recordings_[name] = std::move(recording);
    return path;
  }
  fs::path at(const std::string& name) const { return folder_.root() / name; }

  // By the names of the parts, in the file's order.
  std::vector<std::vector<std::string>> machines(const fs::path& path) {
    std::vector<std::vector<std::string>> all;
    const auto read = read_merged(path, [&](OfOneHost of_host) -> Result<void> {
      all.emplace_back();
      for (const auto& [part, recording] : of_host) {
        all.back().push_back(part.name);
        expect_equal(recording, recordings_.at(part.name));
      }
      return {};
    });
    EXPECT_TRUE(read) << read.error().message;
    return all;
  }

  TempTree folder_;
  std::map<std::string, model::Recording> recordings_;
};

TEST_F(Merge, KeepsEveryRecordingInAnyOrderOfMerges) {
  const auto a = record("a.jprof", 1, "node1", "boot1");
  const auto b = record("b.jprof", 2, "node2", "boot2");
  const auto c = record("c.jprof", 3, "node1", "boot1");
  EXPECT_EQ(merge_recordings({a, b}, at("ab"), false), 2u);
  EXPECT_EQ(merge_recordings({at("ab"), c}, at("ab-c"), false), 3u);
  EXPECT_EQ(merge_recordings({c, b}, at("cb"), false), 2u);
  EXPECT_EQ(merge_recordings({a, at("cb")}, at("a-cb"), false), 3u);
  const std::vector<std::vector<std::string>> expected{{"a.jprof", "c.jprof"}, {"b.jprof"}};
  EXPECT_EQ(machines(at("ab-c")), expected);
  EXPECT_EQ(machines(at("a-cb")), expected);
  EXPECT_EQ(merged_parts(at("ab-c")), merged_parts(at("a-cb")));
  EXPECT_TRUE(is_merged_file(at("cb")));
  EXPECT_FALSE(is_merged_file(a));
}

TEST_F(Merge, RefusesTheSameRecordingTwice) {
  const auto a = record("a.jprof", 1, "node1", "boot1");
  const auto b = record("b.jprof", 2, "node1", "boot1");
  fs::copy_file(a, at("copy.jprof"));
  ASSERT_TRUE(merge_recordings({a, b}, at("ab"), false));
  for (const auto& twice : {std::vector{a, a}, std::vector{a, at("copy.jprof")},
                            std::vector{at("ab"), at("copy.jprof")}}) {
    const auto merged = merge_recordings(twice, at("out"), false);
    ASSERT_FALSE(merged);
    EXPECT_EQ(merged.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(merged.error().message, HasSubstr("(a.jprof)"));
    EXPECT_FALSE(fs::exists(at("out")));
    EXPECT_FALSE(fs::exists(at("out.part")));
  }
}

TEST_F(Merge, ContainersOfOneBootAreOneMachine) {
  EXPECT_TRUE(is_one_machine({"", "a", "boot"}, {"", "b", "boot"}));
  EXPECT_FALSE(is_one_machine({"", "a", "boot1"}, {"", "a", "boot2"}));
  EXPECT_TRUE(is_one_machine({"", "a", ""}, {"", "a", ""}));
  EXPECT_FALSE(is_one_machine({"", "a", ""}, {"", "b", ""}));
  EXPECT_FALSE(is_one_machine({"", "", ""}, {"", "", ""}));
}

TEST_F(Merge, LeavesFilesThatItMayNotReplace) {
  const auto a = record("a.jprof", 1, "node1", "boot1");
  std::ofstream(at("taken")) << "text";
  EXPECT_EQ(merge_recordings({a}, at("taken"), false).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(merge_recordings({a}, a, true).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(bytes_of(at("taken")), "text");
  EXPECT_TRUE(merge_recordings({a}, at("taken"), true));
  EXPECT_TRUE(is_merged_file(at("taken")));
}

TEST_F(Merge, RejectsWhatIsNoRecording) {
  std::ofstream(at("text")) << "text";
  EXPECT_FALSE(merge_recordings({at("text")}, at("out"), false));
  EXPECT_EQ(merge_recordings({at("missing")}, at("out"), false).error().code, Errc::kNotFound);
  EXPECT_FALSE(fs::exists(at("out")));
  EXPECT_EQ(merged_parts(at("text")).error().code, Errc::kUnsupported);
}

TEST_F(Merge, NamesADamagedPartAndANewerVersion) {
  const auto a = record("a.jprof", 1, "node1", "boot1");
  ASSERT_TRUE(merge_recordings({a}, at("m"), false));
  run_sql(at("m"), "UPDATE part SET recording = x'0102030405'");
  const auto read = read_merged(at("m"), [](OfOneHost) { return Result<void>{}; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("a.jprof is damaged"));
  run_sql(at("m"), "PRAGMA user_version = 99");
  EXPECT_EQ(merged_parts(at("m")).error().code, Errc::kUnsupported);
}

TEST_F(Merge, NamesDamageThatSqliteDoesNotUnderstand) {
  ASSERT_TRUE(merge_recordings({record("a.jprof", 1, "node1", "boot1")}, at("m"), false));
  run_sql(at("m"), "DROP TABLE part");
  const auto parts = merged_parts(at("m"));
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().code, Errc::kCorrupt);
  EXPECT_THAT(parts.error().message, HasSubstr("the file is damaged"));
}

// The damage was said to be that of the file that was written.
TEST_F(Merge, NamesTheInputThatIsDamaged) {
  const auto other = record("b.jprof", 2, "node2", "boot2");
  ASSERT_TRUE(merge_recordings({record("a.jprof", 1, "node1", "boot1")}, at("m"), false));
  run_sql(at("m"), "DROP TABLE part");
  const auto merged = merge_recordings({at("m"), other}, at("out"), false);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, Errc::kCorrupt);
  EXPECT_THAT(merged.error().message, HasSubstr("cannot read " + at("m").string()));
}

// What is left of a merged file or a sweep is damaged, and not a file of another tool.
TEST_F(Merge, AMergedFileThatIsCutOffIsDamaged) {
  ASSERT_TRUE(merge_recordings({record("a.jprof", 1, "node1", "boot1")}, at("m"), false));
  const auto whole = read_recording(at("m"));
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().message, HasSubstr("is a merged recording, not a recording"));
  fs::resize_file(at("m"), 4096);
  const auto cut = read_recording(at("m"));
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::kCorrupt);
  EXPECT_THAT(cut.error().message, HasSubstr("the file is damaged"));
}

TEST_F(Merge, ExtractsARecordingByItsNumber) {
  const auto a = record("a.jprof", 1, "node1", "boot1");
  const auto b = record("b.jprof", 2, "node2", "boot2");
  ASSERT_TRUE(merge_recordings({b, a}, at("m"), false));
  EXPECT_TRUE(extract_part(at("m"), 1, at("first")));
  EXPECT_TRUE(extract_part(at("m"), 2, at("second")));
  EXPECT_EQ(bytes_of(at("first")), bytes_of(a));
  EXPECT_EQ(bytes_of(at("second")), bytes_of(b));
  for (const unsigned none : {0U, 3U}) {
    EXPECT_EQ(extract_part(at("m"), none, at("none")).error().code, Errc::kNotFound);
  }
}

// What was committed is in the write-ahead log only.
TEST_F(Merge, TakesARecordingWhoseWriterWasKilled) {
  const pid_t writer = ::fork();
  if (writer == 0) {
    Writer open = writer_with_sensor(at("killed.jprof"));
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(writer, nullptr, 0);
  ASSERT_TRUE(fs::exists(at("killed.jprof-wal")));
  recordings_["killed.jprof"] = *read_recording(at("killed.jprof"));
  ASSERT_FALSE(recordings_["killed.jprof"].sensors.empty());
  const auto merged = merge_recordings({at("killed.jprof")}, at("m"), false);
  ASSERT_TRUE(merged) << merged.error().message;
  EXPECT_EQ(machines(at("m")), (std::vector<std::vector<std::string>>{{"killed.jprof"}}));
}

TEST_F(Merge, RefusesARecordingThatIsStillWritten) {
  const Writer writer = writer_with_sensor(at("open.jprof"));
  const auto merged = merge_recordings({at("open.jprof")}, at("out"), false);
  ASSERT_FALSE(merged);
  EXPECT_THAT(merged.error().message, HasSubstr("still written to"));
}

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
