// What a killed tool left in its spool, as readers of its recording find it.
#include <gmock/gmock.h>

#include "recording/reader.h"
#include "recording/recording_fixture.h"
#include "recording/spool/spool_reader.h"
#include "recording/spool/spool_writer.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

struct Taken : spool::SpoolConsumer {
  spool::TraceSink sink;
  spool::SpoolProcess about;
  model::ActivitySink& process(const spool::SpoolProcess& process) override {
    about = process;
    return sink;
  }
  void warn(std::string text) override { ADD_FAILURE() << text; }
};

// A process that wrote a trace, and a recording that has the first part of it.
class LeftOver : public testing::Test {
 protected:
  LeftOver() {
    fs::create_directory(folder_);
    trace_.status.activities = 1000;
    out_ = spool::SpoolWriter::open(folder_, trace_).value();
    spool::send(trace_, *out_);
    spool::SpoolReader reader(folder_);
    EXPECT_TRUE(reader.poll(taken_));
    recording_.run.trace_folder = folder_.string();
    recording_.traces = {taken_.sink.trace};
    recording_.traces[0].pid = trace_.pid;
    recording_.traces[0].program = trace_.program;
    recording_.traces[0].bin = trace_.bin;
    recording_.traces[0].position = reader.position(taken_.about);
  }

  model::Recording read(const fs::path& path) {
    EXPECT_TRUE(write_recording(path, recording_));
    auto read = read_recording(path);
    EXPECT_TRUE(read) << read.error().message;
    return read.value_or(model::Recording{});
  }
  void write_more() {
    out_->define(static_cast<std::uint32_t>(trace_.ranges.size()), model::Range{"later", 0});
    out_->add(trace_.chunks[0]);
    model::TraceStatus status = trace_.status;
    status.activities = 1234;
    out_->status(status);
  }
  void expect_more(const model::Recording& read) {
    ASSERT_EQ(read.traces.size(), 1U);
    EXPECT_EQ(read.traces[0].ranges.size(), trace_.ranges.size() + 1);
    EXPECT_EQ(read.traces[0].chunks.size(), trace_.chunks.size() + 1);
    EXPECT_EQ(read.traces[0].status.activities, 1234U);
    ASSERT_EQ(read.warnings.size(), 1U);
    EXPECT_THAT(read.warnings[0].text, AllOf(HasSubstr("(234 launches)"), HasSubstr(".spool")));
  }

  TempTree tree_;
  fs::path folder_ = tree_ / "x.jprof.spool";
  model::Trace trace_ = spool::RandomTrace(1).make();
  std::unique_ptr<spool::SpoolWriter> out_;
  Taken taken_;
  model::Recording recording_;
};

TEST_F(LeftOver, IsReadOnceAndLeftAsItIs) {
  write_more();
  const auto names = names_in(folder_);
  expect_more(read(tree_ / "x.jprof"));
  EXPECT_EQ(names_in(folder_), names);
  expect_more(*read_recording(tree_ / "x.jprof"));
}

TEST_F(LeftOver, NothingMoreIsNothingToSay) {
  const auto read = this->read(tree_ / "x.jprof");
  EXPECT_THAT(read.warnings, IsEmpty());
  EXPECT_EQ(read.traces, recording_.traces);
}

TEST_F(LeftOver, AProcessThatBeganLaterIsThereToo) {
  model::Trace another = spool::RandomTrace(2).make();
  another.pid = trace_.pid + 1;
  auto out = spool::SpoolWriter::open(folder_, another).value();
  spool::send(another, *out);
  const auto read = this->read(tree_ / "x.jprof");
  ASSERT_EQ(read.traces.size(), 2U);
  EXPECT_EQ(read.traces[0], recording_.traces[0]);
  EXPECT_EQ(read.traces[1], another);
}

TEST_F(LeftOver, NoOtherReaderReadsWhileTheToolDoes) {
  write_more();
  {
    const auto tool = spool::FolderLock::of_reader(folder_);
    EXPECT_EQ(read(tree_ / "x.jprof").traces, recording_.traces);
  }
  const auto another = spool::FolderLock::of_visitor(folder_);
  EXPECT_FALSE(another.busy());
  expect_more(*read_recording(tree_ / "x.jprof"));
}

TEST_F(LeftOver, ACompleteRecordingHasNone) {
  write_more();
  recording_.run.complete = true;
  EXPECT_EQ(read(tree_ / "x.jprof").traces, recording_.traces);
}

TEST_F(LeftOver, IsFoundNextToARecordingThatMoved) {
  write_more();
  fs::create_directory(tree_ / "archive");
  fs::rename(folder_, tree_ / "archive/x.jprof.spool");
  expect_more(read(tree_ / "archive/x.jprof"));
  const auto apart = read(tree_ / "y.jprof");
  EXPECT_EQ(apart.traces, recording_.traces);
  ASSERT_EQ(apart.warnings.size(), 1U);
  EXPECT_THAT(apart.warnings[0].text,
              AllOf(HasSubstr("is missing"), HasSubstr(folder_.string()), HasSubstr("put it")));
}

TEST_F(LeftOver, DamageIsSaid) {
  write_more();
  std::ofstream(folder_ / names_in(folder_)[0], std::ios::app) << std::string(100, '\1');
  const auto read = this->read(tree_ / "x.jprof");
  EXPECT_EQ(read.traces[0].chunks.size(), trace_.chunks.size() + 1);
  ASSERT_EQ(read.warnings.size(), 2U);
  EXPECT_THAT(read.warnings[0].text, HasSubstr("damaged"));
}

}  // namespace
}  // namespace jouleprof::recording
