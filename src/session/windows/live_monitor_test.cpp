#include "session/windows/live_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "session/sampling/recording_sink.h"
#include "session/sampling/sampling_fixture.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// A GPU that draws 250 W: a counter renewed every 100 ms.
class SteadyMeter final : public FakeMeter {
 public:
  explicit SteadyMeter(std::string device = "gpu0", std::string uuid = "GPU-0")
      : FakeMeter(std::move(device), std::move(uuid), 20ms) {
    sensors_[0].traits.refresh = 100ms;
    sensors_.resize(1);
    probes_.resize(1);
  }
  HostTime read(std::size_t, model::Readings& out) override {
    const HostTime before = HostClock::now();
    const auto updates = before.time_since_epoch() / 100ms;
    const HostTime after = HostClock::now();
    out.counters.push_back(
        {model::SensorId{0}, before, after, Energy::millijoules(25'000 * updates)});
    return after + 20ms;
  }
};

LiveOptions options() {
  LiveOptions o;
  o.environment = [](const std::string&) { return std::nullopt; };
  return o;
}

std::unique_ptr<LiveMonitor> open_steady(LiveOptions with = options()) {
  auto monitor = LiveMonitor::open(std::move(with), meters_of(std::make_unique<SteadyMeter>()));
  EXPECT_TRUE(monitor) << monitor.error().message;
  return std::move(*monitor);
}

spans::WindowRecord window_of(EnergySource& source, std::string_view name, Duration length) {
  const HostTime begin = HostClock::now();
  std::this_thread::sleep_for(length);
  const spans::WindowRecord w{begin.time_since_epoch().count(),
                              HostClock::now().time_since_epoch().count(), source.name(name), 0};
  source.add(w);
  return w;
}

HostTime host(std::int64_t ns) { return HostTime{Duration{ns}}; }

TEST(LiveMonitorTest, GivesTheEnergyOfAWindow) {
  const auto monitor = open_steady();
  const auto w = window_of(*monitor, "step", 300ms);
  const auto energies = monitor->energy(host(w.begin), host(w.end), 5s);
  ASSERT_TRUE(energies) << energies.error().message;
  ASSERT_EQ(energies->size(), monitor->domains().size());
  const auto& gpu = energies->front();
  ASSERT_TRUE(gpu) << gpu.error().message;
  const double truth = 250e-9 * static_cast<double>(w.end - w.begin);
  EXPECT_NEAR(gpu->energy.joules(), truth, gpu->repeatability.joules() + 1);
  // Asked again, the same.
  EXPECT_EQ(monitor->energy(host(w.begin), host(w.end), 5s)->front()->energy, gpu->energy);
}

TEST(LiveMonitorTest, NestedWindowsFit) {
  const auto monitor = open_steady();
  const auto first = window_of(*monitor, "a", 50ms);
  const auto second = window_of(*monitor, "b", 50ms);
  const auto energy = [&](std::int64_t begin, std::int64_t end) {
    return monitor->energy(host(begin), host(end), 5s)->front()->energy;
  };
  const Energy a = energy(first.begin, first.end);
  const Energy b = energy(second.begin, second.end);
  const Energy between = energy(first.end, second.begin);
  EXPECT_EQ(energy(first.begin, second.end), a + b + between);
  EXPECT_GT(a, Energy{});
}

TEST(LiveMonitorTest, TotalsAreByName) {
  const auto monitor = open_steady();
  for (int i = 0; i < 3; ++i) window_of(*monitor, "step", 120ms);
  const auto other = window_of(*monitor, "other", 120ms);
  const auto total = monitor->total(monitor->name("step"), 5s);
  ASSERT_TRUE(total) << total.error().message;
  EXPECT_EQ(total->count, 3u);
  EXPECT_EQ(total->resolved_count, 3u);
  ASSERT_TRUE(total->energies.front());
  EXPECT_NEAR(total->energies.front()->energy.joules(), 250 * seconds(total->length), 20);
  EXPECT_EQ(monitor->total(other.name, 5s)->count, 1u);
  const auto none = monitor->total(monitor->name("never"), 1s);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kNotFound);
  EXPECT_THAT(none.error().message, HasSubstr("'never'"));
}

TEST(LiveMonitorTest, SixteenThreads) {
  const auto monitor = open_steady();
  const std::uint32_t name = monitor->name("work");
  std::atomic<int> answers = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 16; ++i) {
      threads.emplace_back([&] {
        const HostTime first = HostClock::now();
        for (int k = 0; k < 5000; ++k) {
          const auto now = HostClock::now().time_since_epoch().count();
          monitor->add({now, now + 1000, name, 0});
        }
        const auto e = monitor->energy(first, HostClock::now(), 5s);
        if (e && e->front()) ++answers;
      });
    }
  }
  EXPECT_EQ(answers, 16);
  const auto total = monitor->total(name, 5s);
  ASSERT_TRUE(total);
  EXPECT_EQ(total->count, 16u * 5000);
}

TEST(LiveMonitorTest, AForkedChildGetsAnError) {
  const auto monitor = open_steady();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(10);
    const HostTime now = HostClock::now();
    monitor->add({1, 2, monitor->name("x"), 0});
    const auto e = monitor->energy(now, now + 1ms, 1s);
    _exit(!e && e.error().code == Errc::kUnavailable && !monitor->total(0, 1s) ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  const auto w = window_of(*monitor, "after", 20ms);
  EXPECT_TRUE(monitor->energy(host(w.begin), host(w.end), 5s)->front());
}

TEST(LiveMonitorTest, OnlyWhatTheProgramSees) {
  auto with = options();
  with.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES") return "GPU-1";
    return std::nullopt;
  };
  auto monitor =
      LiveMonitor::open(std::move(with), meters_of(std::make_unique<SteadyMeter>("gpu0", "GPU-0"),
                                                   std::make_unique<SteadyMeter>("gpu1", "GPU-1")));
  ASSERT_TRUE(monitor);
  for (const auto& domain : (*monitor)->domains()) EXPECT_EQ(domain.device, "gpu1");
  auto unknown = options();
  unknown.devices.words = {"gpu9"};
  const auto none = LiveMonitor::open(std::move(unknown),
                                      meters_of(std::make_unique<SteadyMeter>("gpu0", "GPU-0")));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kInvalidArgument);
}

TEST(LiveMonitorTest, GpusAreChosenAsTheProgramCountsThem) {
  const auto opened = [](std::vector<int> indices) {
    auto with = options();
    with.environment = [](const std::string& name) -> std::optional<std::string> {
      if (name == "CUDA_VISIBLE_DEVICES") return "1,0";
      return std::nullopt;
    };
    with.devices.gpus = DeviceChoice::Gpus{std::move(indices)};
    return LiveMonitor::open(std::move(with),
                             meters_of(std::make_unique<SteadyMeter>("gpu0", "GPU-0"),
                                       std::make_unique<SteadyMeter>("gpu1", "GPU-1")));
  };
  const auto first = opened({0});
  ASSERT_TRUE(first) << first.error().message;
  for (const auto& domain : (*first)->domains()) EXPECT_EQ(domain.device, "gpu1");
  const auto missing = opened({0, 2});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(missing.error().message, HasSubstr("shows 2 GPUs"));
}

// They went into the log alone, and vanished without one.
TEST(LiveMonitorTest, WarningsAreKeptWithoutALog) {
  auto with = options();
  with.environment = [](const std::string& name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES") return "MIG-1234";
    return std::nullopt;
  };
  const auto monitor =
      LiveMonitor::open(std::move(with), meters_of(std::make_unique<SteadyMeter>("gpu0", "GPU-0"),
                                                   std::make_unique<SteadyMeter>("gpu1", "GPU-1")));
  ASSERT_TRUE(monitor) << monitor.error().message;
  EXPECT_THAT((*monitor)->warnings(), testing::ElementsAre(HasSubstr("MIG-1234")));
  EXPECT_THAT(open_steady()->warnings(), testing::IsEmpty());
}

TEST(LiveMonitorTest, ASnapshotHasPowerAndEnergySoFar) {
  const auto monitor = open_steady();
  std::this_thread::sleep_for(800ms);
  const auto snapshot = monitor->snapshot();
  ASSERT_TRUE(snapshot);
  ASSERT_EQ(snapshot->domains.size(), monitor->domains().size());
  const auto& gpu = snapshot->domains[0];
  EXPECT_EQ(gpu.domain.device, "gpu0");
  ASSERT_TRUE(gpu.energy) << gpu.reason;
  EXPECT_NEAR(gpu.energy->energy.joules(), 250 * seconds(gpu.energy_end - gpu.energy_begin),
              gpu.energy->error.joules() + 1);
  EXPECT_EQ(gpu.provenance, model::Provenance::kMeasured);
  EXPECT_GE(snapshot->elapsed, 800ms);
}

// An existing log was lost when the devices did not exist.
TEST(LiveMonitorTest, ALogIsOpenedOnlyWhenSomethingCanBeMeasured) {
  bool opened = false;
  auto with = options();
  with.devices.gpus = DeviceChoice::Gpus{{7}};
  with.open_sink = [&]() -> Result<std::unique_ptr<Sink>> {
    opened = true;
    return std::make_unique<MemorySink>();
  };
  EXPECT_FALSE(LiveMonitor::open(std::move(with), meters_of(std::make_unique<SteadyMeter>())));
  EXPECT_FALSE(opened);
}

TEST(LiveMonitorTest, WithoutAnySensorItSaysWhy) {
  const auto none = LiveMonitor::open(options(), {});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Errc::kUnavailable);
  EXPECT_THAT(none.error().message, HasSubstr("jouleprof doctor"));
}

TEST(LiveMonitorTest, RecordsReadingsAndWindows) {
  MemorySink memory;
  {
    auto with = options();
    with.open_sink = [&memory]() -> Result<std::unique_ptr<Sink>> {
      return std::make_unique<SinkReference>(memory);
    };
    const auto monitor = open_steady(std::move(with));
    window_of(*monitor, "epoch", 60ms);
  }
  const auto& r = memory.recording;
  EXPECT_TRUE(r.run.complete);
  EXPECT_EQ(r.run.source, "library");
  ASSERT_FALSE(r.run.command.empty());
  EXPECT_THAT(r.run.command.front(), testing::EndsWith("session_test"));
  EXPECT_TRUE(r.run.work_begin && r.run.work_end);
  EXPECT_FALSE(r.readings.counters.empty());
  ASSERT_EQ(r.windows.size(), 1u);
  EXPECT_EQ(r.windows[0].name, "epoch");
  EXPECT_EQ(r.windows[0].pid, getpid());
  EXPECT_GE(r.windows[0].end - r.windows[0].begin, 60ms);
  // The process split of a report: this process, with what it used up to the end.
  ASSERT_FALSE(r.processes.empty());
  EXPECT_EQ(r.processes[0].pid, getpid());
  EXPECT_TRUE(r.processes[0].in_tree);
  ASSERT_FALSE(r.process_readings.processes.empty());
  EXPECT_GE(r.process_readings.processes.back().at, r.windows[0].end);
  EXPECT_FALSE(r.process_readings.machine.empty());
}

// A sink that keeps what the recording would say if the program died now.
struct StateSink : MemorySink {
  explicit StateSink(std::atomic<int>& most) : most_open(most) {}
  Result<void> append(const Batch& batch) override {
    if (batch.run) {
      most_open = std::max<int>(most_open, static_cast<int>(batch.run->open_windows.size()));
    }
    return MemorySink::append(batch);
  }
  std::atomic<int>& most_open;
};

TEST(LiveMonitorTest, RecordsWhichWindowsAreOpen) {
  std::atomic<int> most_open{0};
  StateSink sink(most_open);
  {
    auto with = options();
    with.open_sink = [&sink]() -> Result<std::unique_ptr<Sink>> {
      return std::make_unique<SinkReference>(sink);
    };
    const auto monitor = open_steady(std::move(with));
    const std::int64_t now = HostClock::now().time_since_epoch().count();
    monitor->begin({now, monitor->name("train")});
    monitor->begin({now, monitor->name("step")});
    while (most_open < 2) std::this_thread::sleep_for(5ms);
    monitor->forget({now, monitor->name("step")});
  }
  const auto& r = sink.recording;
  EXPECT_TRUE(r.run.open_windows.empty());
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_THAT(r.warnings[0].text, HasSubstr("window 'train' of process"));
  EXPECT_THAT(r.warnings[0].text, HasSubstr("its monitor was closed"));
}

}  // namespace
}  // namespace jouleprof::session
