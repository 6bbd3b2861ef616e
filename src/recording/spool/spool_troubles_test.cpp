// Spools with damage, on full disks, in programs that do unexpected things.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording/spool/frame.h"
#include "recording/spool/spool_fixture.h"

namespace jouleprof::spool {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(Spool, DamageIsNamedOnceWithItsPlace) {
  const model::Trace trace = RandomTrace(4, 4).make();
  auto out = writer(trace);
  send(trace, *out);
  out->close();
  const std::string whole = content();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    replace(damaged);
    Collector all;
    SpoolReader reader(tree_.root());
    ASSERT_TRUE(reader.poll(all));
    ASSERT_TRUE(reader.poll(all));
    // A length can come to reach beyond the end: then it looks as if more were to come.
    ASSERT_TRUE(reader.left_over()) << at;
    ASSERT_LE(all.warnings.size(), 1U) << at;
    if (!all.warnings.empty()) {
      ASSERT_THAT(all.warnings[0],
                  AllOf(HasSubstr(only_file().string()), HasSubstr("damaged at byte")));
    }
    if (!all.sinks.empty()) {
      ASSERT_LE(all.trace().chunks.size(), trace.chunks.size());
      ASSERT_FALSE(all.trace() == trace && at + 9 < whole.size()) << at;
    }
  }
}

TEST_F(Spool, WhatANewerLibraryAddsIsPassedOver) {
  const model::Trace trace = RandomTrace(7).make();
  auto out = writer(trace);
  send(trace, *out);
  std::string bytes = content();
  put_frame(bytes, FrameType{200}, "something new");
  put_frame(bytes, FrameType{200}, "and more of it");
  put_frame(bytes, FrameType::kEnd, "with a field that was not there");
  replace(bytes);
  const Collector all = read();
  EXPECT_EQ(all.trace(), trace);
  ASSERT_EQ(all.warnings.size(), 1U);
  EXPECT_THAT(all.warnings[0], AllOf(HasSubstr("type 200"), HasSubstr("newer")));
}

TEST_F(Spool, WhatNamesTheUndefinedIsLeftOut) {
  const model::Trace trace = RandomTrace(8).make();
  auto out = writer(trace);
  send(trace, *out);
  const auto count = static_cast<std::uint32_t>(trace.classes.size());
  out->define(count + 1, trace.classes[0]);  // not the next
  model::Layer own_parent;
  own_parent.parent = 5;
  out->define(5, own_parent);
  model::Scope strange;
  strange.layer = 99;
  out->define(5, strange);
  model::ActivityEncoder encoder;
  encoder.add(model::ScopeEntry{count, 0, 1, 1});
  out->add({model::ChunkKind::kScopes, 0, HostTime{}, HostTime{}, encoder.take()});
  out->add({model::ChunkKind::kScopes, 0, HostTime{}, HostTime{}, "\xFF"});
  out->add({model::ChunkKind::kScopes, 99, HostTime{}, HostTime{}, ""});
  out->add({model::ChunkKind{200}, 0, HostTime{}, HostTime{}, ""});
  out->add({model::ChunkKind::kScopes, 0, HostTime{Duration{2}}, HostTime{Duration{1}}, ""});
  encoder.add(model::BinEntry{4'000'000'000, 0, 1, 1});
  out->add({model::ChunkKind::kBins, 0, HostTime{}, HostTime{}, encoder.take()});
  const Collector all = read();
  EXPECT_EQ(all.trace(), trace);
  EXPECT_THAT(all.warnings,
              ElementsAre(HasSubstr("kernel signature is out of turn"),
                          HasSubstr("layer has a parent"), HasSubstr("scope names a layer"),
                          HasSubstr("names a kernel signature"), HasSubstr("cannot be decoded"),
                          HasSubstr("names a device"), HasSubstr("unknown kind"),
                          HasSubstr("ends before"), HasSubstr("beyond its end")));
}

TEST_F(Spool, OtherFilesAreLeftAlone) {
  tree_.write("notes.txt", "x");
  tree_.write("1-2.spool", "x");
  tree_.write("1-2-0000.spool", "neither is this");
  tree_.write("-1-2-0000.spool", "");
  fs::create_directory(tree_ / "3-4-0000.spool");
  fs::create_symlink("/dev/zero", tree_ / "5-6-0000.spool");
  Collector all;
  SpoolReader reader(tree_.root());
  for (int i = 0; i < 2; ++i) ASSERT_FALSE(reader.poll(all).value());
  reader.remove_taken();
  EXPECT_THAT(all.sinks, IsEmpty());
  EXPECT_EQ(all.warnings.size(), 5U);
  EXPECT_EQ(names().size(), 6U);
}

TEST_F(Spool, NoFolder) {
  EXPECT_EQ(SpoolWriter::open(tree_ / "none", {}).error().code, Errc::kNotFound);
  Collector all;
  EXPECT_EQ(SpoolReader(tree_ / "none").poll(all).error().code, Errc::kNotFound);
}

// Chunks that have no room are counted; what comes later can be read all the same.
TEST_F(Spool, AFullDiskLosesChunksOnly) {
  const model::Trace trace = RandomTrace(9, 50).make();
  auto out = writer(trace);
  send(trace, *out);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{fs::file_size(only_file()) + 5, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 3; ++i) out->add(trace.chunks[0]);
  out->define(5, trace.ranges[0]);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(out->lost(), 3U);
  EXPECT_THAT(out->problem(), HasSubstr(only_file().string()));
  out->define(6, trace.ranges[0]);
  out->add(trace.chunks[1]);
  out->close();
  EXPECT_EQ(out->lost(), 3U);
  model::Trace expected = trace;
  expected.ranges.push_back(trace.ranges[0]);
  expected.ranges.push_back(trace.ranges[0]);
  expected.chunks.push_back(trace.chunks[1]);
  const Collector all = read();
  EXPECT_EQ(all.trace(), expected);
  EXPECT_THAT(all.warnings, IsEmpty());
}

// A program that becomes a daemon closes what it did not open, and opens files of its own.
TEST_F(Spool, ADescriptorClosedUnderItIsNoticed) {
  const model::Trace trace = RandomTrace(10).make();
  auto out = writer(trace);
  const int next = open("/dev/null", O_RDONLY);
  ASSERT_EQ(close(next - 1), 0);
  close(next);
  const int theirs = open((tree_ / "theirs").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(theirs, next - 1);
  send(trace, *out);
  out->close();
  out.reset();
  EXPECT_EQ(write(theirs, "x", 1), 1);
  close(theirs);
  EXPECT_EQ(*read_file(tree_ / "theirs"), "x");
  EXPECT_EQ(read().trace(), trace);
}

TEST_F(Spool, ARemovedFolderEndsTheWriting) {
  const model::Trace trace = RandomTrace(11).make();
  auto out = writer(trace);
  fs::remove_all(tree_.root());
  send(trace, *out);
  EXPECT_THAT(out->problem(), HasSubstr("removed"));
  EXPECT_FALSE(fs::exists(tree_.root()));
}

TEST_F(Spool, AForkedChildWritesNothingInItsParentsFile) {
  const model::Trace trace = RandomTrace(12).make();
  auto out = writer(trace);
  const pid_t child = fork();
  if (child == 0) {
    send(trace, *out);
    out->close();
    out.reset();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  send(trace, *out);
  EXPECT_EQ(read().trace(), trace);
}

}  // namespace
}  // namespace jouleprof::spool
