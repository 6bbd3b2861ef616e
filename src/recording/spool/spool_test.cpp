// What a writer wrote and a reader takes: whole, in parts, while it is being written.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "recording/spool/frame.h"
#include "recording/spool/spool_fixture.h"

namespace jouleprof::spool {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(Spool, ReadsEveryRecordThatWasWritten) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const model::Trace trace = RandomTrace(seed).make();
    const TempTree tree;
    auto out = SpoolWriter::open(tree.root(), trace).value();
    send(trace, *out);
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

// The CRC-32 of zlib, over type, length and payload.
TEST_F(Spool, AFrameEndsWithItsChecksum) {
  std::string frame;
  put_frame(frame, FrameType::kEnd, "abc");
  EXPECT_EQ(frame, std::string("\x09\x03\0\0\0abc\x0f"
                               "F\xe0\x81",
                               12));
  EXPECT_EQ(first_frame(frame).state, Frame::State::kWhole);
  frame[6] = 'x';
  EXPECT_EQ(first_frame(frame).state, Frame::State::kDamaged);
}

// As version 0.1 of the library wrote it.
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
  send(trace, *out);
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

TEST_F(Spool, FilesFollowOneAnother) {
  const model::Trace trace = RandomTrace(5, 200).make();
  auto out = writer(trace, 2000);
  send(trace, *out);
  out->close();
  EXPECT_GT(names().size(), 2U);
  EXPECT_EQ(read().trace(), trace);
}

TEST_F(Spool, FinishedFilesAreRemovedOnceTheyAreTaken) {
  const model::Trace trace = RandomTrace(6, 200).make();
  auto out = writer(trace, 2000);
  Collector all;
  SpoolReader reader(tree_.root());
  send(trace, *out);
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
      std::size_t reported = 0;
      const auto interrupt = [&] {
        if (reported++ == stop) {
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
      if (first.sinks.empty()) break;  // it stopped after the last record
      if (stop % 2 == 0) reader.remove_taken();
      const auto start = HostTime{Duration{std::stoll(
          list_folder(tree.root())->at(0).substr(list_folder(tree.root())->at(0).find('-') + 1))}};
      first.sinks[0]->trace.position = reader.position({trace, start});
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
      send(traces.back(), *out);
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

TEST_F(Spool, ADestroyedWriterLeavesTheTraceOpen) {
  const model::Trace trace = RandomTrace(13).make();
  send(trace, *writer(trace));
  Collector all;
  SpoolReader reader(tree_.root());
  ASSERT_TRUE(reader.poll(all).value());
  EXPECT_EQ(all.trace(), trace);
  EXPECT_THAT(reader.open_processes(), ElementsAre(trace.pid));
  EXPECT_EQ(names().size(), 1U);
}

}  // namespace
}  // namespace jouleprof::spool
