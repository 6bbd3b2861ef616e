// What a writer wrote and a reader takes: whole, torn, damaged, while it is being written.
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/file.h"
#include "recording/spool/frame.h"
#include "recording/spool/random_trace.h"
#include "recording/spool/spool_reader.h"
#include "recording/spool/spool_writer.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::spool {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Collector : SpoolConsumer {
  std::vector<std::unique_ptr<TraceSink>> sinks;
  std::vector<std::string> warnings;

  model::ActivitySink& process(const SpoolProcess& p) override {
    auto sink = std::make_unique<TraceSink>();
    sink->trace.pid = p.pid;
    sink->trace.program = p.program;
    sink->trace.bin = p.bin;
    sinks.push_back(std::move(sink));
    return *sinks.back();
  }
  void warn(std::string text) override { warnings.push_back(std::move(text)); }

  // The only process's.
  const model::Trace& trace() const { return sinks.at(0)->trace; }
};

class Spool : public testing::Test {
 protected:
  std::unique_ptr<SpoolWriter> writer(const model::Trace& trace,
                                      std::size_t segment = SpoolWriter::kSegmentBytes) {
    auto made = SpoolWriter::open(tree_.root(), trace, segment);
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }
  std::vector<std::string> names() const { return *list_folder(tree_.root()); }
  fs::path only_file() const { return tree_.root() / names().at(0); }
  std::string content() const { return *read_file(only_file()); }
  // Removed first: some file systems wait for the disk when a file is emptied and written again.
  void replace(const std::string& bytes) {
    const fs::path file = only_file();
    fs::remove(file);
    std::ofstream(file, std::ios::binary) << bytes;
  }
  // What a reader that begins now takes.
  Collector read() {
    Collector all;
    SpoolReader reader(tree_.root());
    EXPECT_TRUE(reader.poll(all));
    return all;
  }

  TempTree tree_;
};

TEST_F(Spool, TellsEverythingAgain) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const model::Trace trace = RandomTrace(seed).make();
    const TempTree tree;
    auto out = SpoolWriter::open(tree.root(), trace).value();
    tell(trace, *out);
    out->close();
    EXPECT_EQ(out->lost(), 0U);
    EXPECT_EQ(out->problem(), "");
    Collector all;
    SpoolReader reader(tree.root());
    EXPECT_TRUE(reader.poll(all).value());
    ASSERT_EQ(all.sinks.size(), 1U);
    EXPECT_EQ(all.trace(), trace) << seed;
    EXPECT_THAT(all.warnings, IsEmpty());
    EXPECT_THAT(reader.open_processes(), IsEmpty());
    EXPECT_FALSE(reader.left_over());
    EXPECT_FALSE(reader.poll(all).value());
  }
}

TEST_F(Spool, TheChecksumIsTheUsualOne) { EXPECT_EQ(crc32("123456789"), 0xCBF43926U); }

TEST_F(Spool, FilesAreNamedByProcessStartAndNumberAndAreTheUsersOwn) {
  model::Trace trace = RandomTrace(1).make();
  trace.pid = 77;
  const HostTime before = HostClock::now();
  const auto out = writer(trace);
  EXPECT_THAT(names(), ElementsAre(testing::MatchesRegex("77-[0-9]+-0000\\.spool")));
  EXPECT_GE(std::stoll(names()[0].substr(3)), before.time_since_epoch().count());
  EXPECT_EQ(fs::status(only_file()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// At any byte it may be that the rest comes later, or never.
TEST_F(Spool, TakesWhatIsWholeAndTheRestWhenItComes) {
  const model::Trace trace = RandomTrace(3, 4).make();
  auto out = writer(trace);
  tell(trace, *out);
  out->close();
  const std::string whole = content();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    replace(whole.substr(0, size));
    Collector all;
    SpoolReader reader(tree_.root());
    ASSERT_TRUE(reader.poll(all));
    ASSERT_THAT(all.warnings, IsEmpty()) << size;
    ASSERT_THAT(reader.open_processes(), ElementsAre(trace.pid));
    replace(whole);
    ASSERT_TRUE(reader.poll(all).value()) << size;
    ASSERT_EQ(all.trace(), trace) << size;
    ASSERT_THAT(all.warnings, IsEmpty()) << size;
  }
}

TEST_F(Spool, DamageIsNamedOnceWithItsPlace) {
  const model::Trace trace = RandomTrace(4, 4).make();
  auto out = writer(trace);
  tell(trace, *out);
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

TEST_F(Spool, FilesFollowOneAnother) {
  const model::Trace trace = RandomTrace(5, 200).make();
  auto out = writer(trace, 2000);
  tell(trace, *out);
  out->close();
  EXPECT_GT(names().size(), 2U);
  EXPECT_EQ(read().trace(), trace);
}

TEST_F(Spool, FinishedFilesAreRemovedOnceTheyAreTaken) {
  const model::Trace trace = RandomTrace(6, 200).make();
  auto out = writer(trace, 2000);
  Collector all;
  SpoolReader reader(tree_.root());
  tell(trace, *out);
  ASSERT_TRUE(reader.poll(all).value());
  EXPECT_GT(names().size(), 2U);  // until its owner says so
  reader.remove_taken();
  EXPECT_EQ(names().size(), 1U);  // the last may still grow
  EXPECT_THAT(reader.open_processes(), ElementsAre(trace.pid));
  out->close();
  ASSERT_TRUE(reader.poll(all).value());
  reader.remove_taken();
  EXPECT_THAT(names(), IsEmpty());
  EXPECT_THAT(reader.open_processes(), IsEmpty());
  EXPECT_EQ(all.trace(), trace);
  EXPECT_FALSE(reader.left_over());
}

// Wherever the first reader stopped, a second one goes on from there, and nothing is there twice.
TEST_F(Spool, AnotherReaderGoesOnWhereTheFirstOneStopped) {
  const model::Trace trace = RandomTrace(14, 40).make();
  for (std::size_t files = 0; files != 2; ++files) {
    for (std::size_t stop = 0; stop < 40; ++stop) {
      const TempTree tree;
      auto out = SpoolWriter::open(tree.root(), trace, files == 0 ? 1 << 20 : 700).value();
      Collector first;
      SpoolReader reader(tree.root());
      std::size_t told = 0;
      const auto interrupt = [&] {
        if (told++ == stop) {
          EXPECT_TRUE(reader.poll(first));
        }
      };
      const auto define = [&](const auto& parts) {
        std::uint32_t id = 0;
        for (const auto& part : parts) {
          out->define(id++, part);
          interrupt();
        }
      };
      define(trace.devices);
      define(trace.classes);
      define(trace.layers);
      define(trace.ranges);
      define(trace.scopes);
      for (const auto& chunk : trace.chunks) {
        out->add(chunk);
        interrupt();
      }
      out->status(trace.status);
      if (first.sinks.empty()) break;  // it stopped where all was told
      if (stop % 2 == 0) reader.remove_taken();
      const auto start = HostTime{Duration{std::stoll(
          list_folder(tree.root())->at(0).substr(list_folder(tree.root())->at(0).find('-') + 1))}};
      first.sinks[0]->trace.position = reader.position({trace.pid, start, {}, {}});
      ASSERT_TRUE(first.sinks[0]->trace.position);

      SpoolReader second(tree.root());
      TraceSink rest;
      rest.trace = first.trace();
      second.resume(first.trace(), rest);
      Collector others;
      ASSERT_TRUE(second.poll(others));
      EXPECT_THAT(others.sinks, IsEmpty());
      EXPECT_THAT(others.warnings, IsEmpty());
      rest.trace.position.reset();
      ASSERT_EQ(rest.trace, trace) << stop;
    }
  }
}

TEST_F(Spool, IsReadWhileItIsWrittenBySeveralProcesses) {
  std::vector<model::Trace> traces;
  std::vector<pid_t> children;
  for (unsigned i = 0; i < 3; ++i) {
    traces.push_back(RandomTrace(i, 50).make());
    traces.back().pid = static_cast<pid_t>(i + 1);
    const pid_t child = fork();
    if (child == 0) {
      auto out = SpoolWriter::open(tree_.root(), traces.back(), 1500).value();
      tell(traces.back(), *out);
      for (int round = 0; round < 300; ++round) {
        for (const auto& chunk : traces.back().chunks) out->add(chunk);
        if (round % 50 == 0) usleep(2000);
      }
      out->close();
      _exit(out->lost() == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  Collector all;
  SpoolReader reader(tree_.root());
  bool running = true;
  while (running) {
    running = false;
    for (auto& child : children) {
      int status = 0;
      if (child != 0 && waitpid(child, &status, WNOHANG) == child) {
        EXPECT_EQ(status, 0);
        child = 0;
      }
      running |= child != 0;
    }
    usleep(300);
    ASSERT_TRUE(reader.poll(all));
    reader.remove_taken();
  }
  ASSERT_TRUE(reader.poll(all));
  reader.remove_taken();
  EXPECT_THAT(all.warnings, IsEmpty());
  EXPECT_THAT(names(), IsEmpty());
  ASSERT_EQ(all.sinks.size(), 3U);
  for (const auto& sink : all.sinks) {
    model::Trace expected = traces.at(static_cast<std::size_t>(sink->trace.pid - 1));
    const auto once = expected.chunks;
    for (int round = 0; round < 300; ++round) {
      expected.chunks.insert(expected.chunks.end(), once.begin(), once.end());
    }
    EXPECT_EQ(sink->trace, expected);
  }
}

TEST_F(Spool, WhatANewerLibraryAddsIsPassedOver) {
  const model::Trace trace = RandomTrace(7).make();
  auto out = writer(trace);
  tell(trace, *out);
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
  tell(trace, *out);
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
  out->add({model::ChunkKind{9}, 0, HostTime{}, HostTime{}, ""});
  out->add({model::ChunkKind::kScopes, 0, HostTime{Duration{2}}, HostTime{Duration{1}}, ""});
  encoder.add(model::BinEntry{4'000'000'000, 0, 1, 1});
  out->add({model::ChunkKind::kBins, 0, HostTime{}, HostTime{}, encoder.take()});
  const Collector all = read();
  EXPECT_EQ(all.trace(), trace);
  EXPECT_THAT(all.warnings,
              ElementsAre(HasSubstr("kernel class is out of turn"), HasSubstr("layer has a parent"),
                          HasSubstr("scope names a layer"), HasSubstr("names a kernel class"),
                          HasSubstr("cannot be decoded"), HasSubstr("names a device"),
                          HasSubstr("unknown kind"), HasSubstr("ends before"),
                          HasSubstr("beyond its end")));
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
  tell(trace, *out);
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
  tell(trace, *out);
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
  tell(trace, *out);
  EXPECT_THAT(out->problem(), HasSubstr("removed"));
  EXPECT_FALSE(fs::exists(tree_.root()));
}

TEST_F(Spool, AForkedChildWritesNothingInItsParentsFile) {
  const model::Trace trace = RandomTrace(12).make();
  auto out = writer(trace);
  const pid_t child = fork();
  if (child == 0) {
    tell(trace, *out);
    out->close();
    out.reset();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  tell(trace, *out);
  EXPECT_EQ(read().trace(), trace);
}

TEST_F(Spool, ADestroyedWriterLeavesTheTraceOpen) {
  const model::Trace trace = RandomTrace(13).make();
  tell(trace, *writer(trace));
  Collector all;
  SpoolReader reader(tree_.root());
  ASSERT_TRUE(reader.poll(all).value());
  EXPECT_EQ(all.trace(), trace);
  EXPECT_THAT(reader.open_processes(), ElementsAre(trace.pid));
  EXPECT_EQ(names().size(), 1U);
}

}  // namespace
}  // namespace jouleprof::spool
