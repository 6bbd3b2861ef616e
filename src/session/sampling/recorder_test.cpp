#include "session/sampling/recorder.h"

#include <gtest/gtest.h>

#include "session/sampling/failing_sink.h"
#include "session/sampling/memory_sink.h"

namespace jouleprof::session {
namespace {

Batch of_power(double watts) {
  Batch batch;
  batch.readings.powers.push_back({model::SensorId{0}, HostTime{}, Power::watts(watts)});
  return batch;
}

TEST(Recorder, WritesAllInOrderAndFinishes) {
  MemorySink sink;
  Recorder recorder(&sink);
  for (int i = 0; i < 100; ++i) recorder.post(of_power(i));
  ASSERT_TRUE(recorder.finish());
  ASSERT_EQ(sink.recording.readings.powers.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(sink.recording.readings.powers[static_cast<std::size_t>(i)].power, Power::watts(i));
  }
  EXPECT_TRUE(sink.recording.run.complete);
}

TEST(Recorder, WindowsAreWrittenToo) {
  MemorySink sink;
  Recorder recorder(&sink);
  for (const char* name : {"a", "b"}) {
    Batch batch;
    batch.windows.push_back({name, {}, {}, 1, 2, false});
    recorder.post(std::move(batch));
  }
  ASSERT_TRUE(recorder.finish());
  ASSERT_EQ(sink.recording.windows.size(), 2u);
  EXPECT_EQ(sink.recording.windows[0].name, "a");
  EXPECT_EQ(sink.recording.windows[1].name, "b");
}

TEST(Recorder, ADestroyedOneLeavesTheRecordingIncomplete) {
  MemorySink sink;
  { Recorder(&sink).post(of_power(1)); }
  EXPECT_EQ(sink.recording.readings.powers.size(), 1u);
  EXPECT_FALSE(sink.recording.run.complete);
}

TEST(Recorder, StopsAtTheFirstError) {
  FailingSink sink(1);
  Recorder recorder(&sink);
  recorder.post(of_power(1));
  while (sink.commits() == 0) std::this_thread::yield();
  recorder.post(of_power(2));
  while (!recorder.error()) std::this_thread::yield();
  recorder.post(of_power(3));
  const auto finished = recorder.finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().message, "disk full");
  EXPECT_EQ(sink.commits(), 1);
}

TEST(Recorder, WithoutASinkItDoesNothing) {
  Recorder recorder(nullptr);
  recorder.post(of_power(1));
  EXPECT_TRUE(recorder.finish());
}

}  // namespace
}  // namespace jouleprof::session
