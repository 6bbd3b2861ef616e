#include "session/sampling/recorder.h"

#include <gtest/gtest.h>

#include <atomic>

#include "session/sampling/recording_sink.h"
#include "session/sampling/sampling_fixture.h"

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

// A disk that takes nothing until it is released.
class HangingSink final : public MemorySink {
 public:
  explicit HangingSink(Gate& gate) : gate_(gate) {}
  Result<void> commit() override {
    hangs_ = true;
    gate_.wait();
    return MemorySink::commit();
  }
  bool hangs() const { return hangs_; }

 private:
  std::atomic<bool> hangs_{false};
  Gate& gate_;
};

TEST(Recorder, AHangingDiskDoesNotFillTheMemory) {
  Gate gate;
  HangingSink sink(gate);
  constexpr std::size_t kMost = 100 * sizeof(model::PowerReading);
  Recorder recorder(&sink, kMost);
  recorder.post(of_power(-1));
  while (!sink.hangs()) std::this_thread::yield();
  Batch batch = of_power(0);
  batch.windows.push_back({});
  for (int i = 0; i < 1000; ++i) recorder.post(Batch(batch));
  EXPECT_TRUE(recorder.is_losing());
  EXPECT_FALSE(recorder.take_loss());  // it is not over
  Batch small;
  small.warnings.push_back({HostTime{}, "kept"});
  recorder.post(std::move(small));
  gate.open();
  while (!recorder.caught_up()) std::this_thread::yield();
  recorder.post(of_power(1));
  EXPECT_FALSE(recorder.is_losing());
  const auto loss = recorder.take_loss();
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->readings, loss->windows);
  EXPECT_FALSE(recorder.take_loss());
  ASSERT_TRUE(recorder.finish());
  const auto& rec = sink.recording;
  EXPECT_LE(rec.readings.powers.size(), 2 * 100 + 2u);
  EXPECT_EQ(rec.readings.powers.size() + loss->readings, 1002u);
  EXPECT_EQ(rec.windows.size() + loss->windows, 1000u);
  ASSERT_EQ(rec.warnings.size(), 1u);
  EXPECT_NE(loss->text().find(std::to_string(loss->readings) + " readings"), std::string::npos);
}

TEST(Recorder, WithoutASinkItDoesNothing) {
  Recorder recorder(nullptr);
  recorder.post(of_power(1));
  EXPECT_TRUE(recorder.finish());
}

}  // namespace
}  // namespace jouleprof::session
