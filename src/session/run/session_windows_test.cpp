// Windows of a program that a session runs.
#include <gmock/gmock.h>
#include <stdlib.h>
#include <unistd.h>

#include <thread>

#include "base/file.h"
#include "session/run/session.h"
#include "session/sampling/recording_sink.h"
#include "session/sampling/sampling_fixture.h"
#include "session/windows/under_run_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;

constexpr double kWatts = 100;

// Its counter and its power agree.
class SteadyMeter final : public FakeMeter {
 public:
  explicit SteadyMeter(std::string device = "gpu0", Duration period = 5ms)
      : FakeMeter(device, "GPU-of-" + device, period) {
    sensors_[0].traits.refresh = 1ms;
    sensors_[1].traits.refresh = sensors_[1].traits.window = 5ms;
  }
  HostTime read(std::size_t index, model::Readings& out) override {
    const HostTime now = HostClock::now();
    if (index == 0) {
      out.counters.push_back({model::SensorId{0}, now, now, Power::watts(kWatts) * (now - begin_)});
    } else {
      out.powers.push_back({model::SensorId{1}, now, Power::watts(kWatts)});
      out.powers.push_back({model::SensorId{2}, now, Power::watts(kWatts / 10)});
    }
    return now + probes_[index].period;
  }

 private:
  HostTime begin_ = HostClock::now() - 1s;
};

class SessionWindowsTest : public testing::Test {
 protected:
  SessionWindowsTest() {
    options_.idle_before = 20ms;
    options_.idle_after = 0ms;
    options_.environment = [](const std::string&) { return std::nullopt; };
  }

  // Runs a shell that waits, and `program` in its place: a monitor finds the session by what the
  // shell has in its environment.
  SessionResult measure(Meters meters, const std::function<void(const std::string&)>& program) {
    const std::string reported = (tree_ / "energies").string();
    const std::string done = (tree_ / "done").string();
    options_.command = {"/bin/sh", "-c",
                        "echo \"$JOULEPROF_SESSION\" > '" + reported + ".new'; mv '" + reported +
                            ".new' '" + reported + "'; while [ ! -e '" + done +
                            "' ]; do sleep 0.01; done"};
    std::thread thread([&] {
      while (!std::filesystem::exists(reported)) std::this_thread::sleep_for(1ms);
      const std::string text = *read_file(reported);
      program(std::string(trim(text)));
      tree_.write("done", "");
    });
    auto result = run(options_, std::move(meters), &sink_);
    thread.join();
    EXPECT_TRUE(result) << result.error().message;
    return std::move(*result);
  }

  SessionOptions options_;
  MemorySink sink_;
  TempTree tree_;
};

TEST_F(SessionWindowsTest, AreAnsweredAndRecorded) {
  std::string folder;
  HostTime begin{};
  HostTime end{};
  measure(meters_of(std::make_unique<SteadyMeter>()), [&](const std::string& socket) {
    folder = std::filesystem::path(socket).parent_path();
    auto connected = open_under_run(socket, {}, options_.environment);
    ASSERT_TRUE(connected) << connected.error().message;
    LiveMonitor& monitor = **connected;
    begin = HostClock::now();
    std::this_thread::sleep_for(50ms);
    end = HostClock::now();
    monitor.add({ns(begin), ns(end), monitor.name("epoch"), 0});
    const auto energies = monitor.energy(begin, end, 20s);
    ASSERT_TRUE(energies) << energies.error().message;
    ASSERT_THAT(*energies, SizeIs(monitor.domains().size()));
    const double truth = kWatts * seconds(end - begin);
    ASSERT_TRUE((*energies)[0]) << (*energies)[0].error().message;
    EXPECT_NEAR((*energies)[0]->energy.joules(), truth, 0.02 * truth);
    const auto total = monitor.total(monitor.name("epoch"), 20s);
    ASSERT_TRUE(total) << total.error().message;
    EXPECT_EQ(total->count, 1U);
    // Not recorded before the program ends.
    monitor.add({ns(end), ns(end), monitor.name("last"), 0});
  });
  ASSERT_THAT(sink_.recording.windows, SizeIs(2));
  const model::Window& first = sink_.recording.windows[0];
  EXPECT_EQ(first.name, "epoch");
  EXPECT_EQ(first.begin, begin);
  EXPECT_EQ(first.end, end);
  EXPECT_EQ(first.pid, getpid());
  EXPECT_EQ(sink_.recording.windows[1].name, "last");
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// The sensors are read when an answer needs it, not when they would be due.
TEST_F(SessionWindowsTest, AQuestionHasTheSensorsRead) {
  measure(meters_of(std::make_unique<SteadyMeter>("gpu0", 1h)), [&](const std::string& socket) {
    auto monitor = open_under_run(socket, {}, options_.environment);
    ASSERT_TRUE(monitor) << monitor.error().message;
    const HostTime end = HostClock::now();
    const auto energies = (*monitor)->energy(end - 10ms, end, 1h);
    ASSERT_TRUE(energies) << energies.error().message;
    ASSERT_TRUE((*energies)[0]) << (*energies)[0].error().message;
    EXPECT_NEAR((*energies)[0]->energy.joules(), 1, (*energies)[0]->error.joules() + 0.02);
  });
}

TEST_F(SessionWindowsTest, DevicesThatTheSessionLeavesOutAreNotOffered) {
  options_.devices = {"gpu1"};
  measure(meters_of(std::make_unique<SteadyMeter>("gpu0"), std::make_unique<SteadyMeter>("gpu1")),
          [&](const std::string& socket) {
            auto monitor = open_under_run(socket, {}, options_.environment);
            ASSERT_TRUE(monitor) << monitor.error().message;
            for (const auto& d : (*monitor)->domains()) EXPECT_EQ(d.device, "gpu1");
            const HostTime end = HostClock::now();
            const auto energies = (*monitor)->energy(end - 10ms, end, 20s);
            ASSERT_TRUE(energies) << energies.error().message;
            EXPECT_TRUE((*energies)[0]) << (*energies)[0].error().message;
          });
}

TEST_F(SessionWindowsTest, ASessionWithinASessionIsItsOwn) {
  setenv(meters::kSessionVariable, "/nowhere/outer", 1);
  measure({}, [&](const std::string& socket) { EXPECT_NE(socket, "/nowhere/outer"); });
  EXPECT_STREQ(getenv(meters::kSessionVariable), "/nowhere/outer");
  unsetenv(meters::kSessionVariable);
}

}  // namespace
}  // namespace jouleprof::session
