// A program's end and the tool's end of the windows' protocol together.
#include "session/run_monitor.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <thread>

#include "session/session_socket.h"
#include "session/window_server.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::int64_t ns(HostTime t) { return t.time_since_epoch().count(); }

// The tool with two GPUs of 100 and 200 W and a third that it does not measure; a thread in the
// engine's place hands it readings.
class RunMonitorTest : public testing::Test {
 protected:
  RunMonitorTest() {
    for (unsigned i = 0; i < 3; ++i) {
      model::Domain d;
      d.id = model::DomainId{i};
      d.device = "gpu" + std::to_string(i);
      d.uuid = "GPU-" + std::to_string(i);
      domains_.push_back({d, i < 2});
      if (i == 2) continue;
      model::Sensor s;
      s.id = model::SensorId{i};
      s.domain = d.id;
      s.kind = model::SensorKind::kPowerInstant;
      s.traits.refresh = s.traits.window = 5ms;
      sensors_.push_back(s);
    }
    start();
  }
  ~RunMonitorTest() override { stop(); }

  void start() {
    auto server = WindowServer::start(domains_, sensors_, [this] { ++wakes_; });
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    ending_ = false;
    engine_ = std::thread([this] {
      HostTime sampled = HostClock::now() - 1s;
      while (!ending_) {
        model::Readings readings;
        for (const HostTime now = HostClock::now(); sampled < now; sampled += 5ms) {
          readings.powers.push_back({model::SensorId{0}, sampled, Power::watts(100)});
          readings.powers.push_back({model::SensorId{1}, sampled, Power::watts(200)});
        }
        server_->append(readings);
        std::this_thread::sleep_for(5ms);
      }
    });
  }
  void stop() {
    if (!server_) return;
    ending_ = true;
    engine_.join();
    server_->stop();
    take();
    server_.reset();
  }
  void take() {
    std::vector<model::Window> windows;
    std::vector<std::string> warnings;
    server_->take(windows, warnings);
    recorded_.insert(recorded_.end(), windows.begin(), windows.end());
    warnings_.insert(warnings_.end(), warnings.begin(), warnings.end());
  }

  std::unique_ptr<RunMonitor> connect(RunMonitorOptions options = {.devices = {},
                                                                   .environment = none}) {
    auto monitor = RunMonitor::connect(server_->path(), std::move(options));
    EXPECT_TRUE(monitor) << monitor.error().message;
    return monitor ? std::move(*monitor) : nullptr;
  }
  static std::optional<std::string> none(const std::string&) { return std::nullopt; }
  static std::vector<std::string> devices(const RunMonitor& monitor) {
    std::vector<std::string> names;
    for (const auto& d : monitor.domains()) names.push_back(d.device);
    return names;
  }
  int raw_client() { return connect_to_session(server_->path()).value(); }

  std::vector<OfferedDomain> domains_;
  std::vector<model::Sensor> sensors_;
  std::atomic<int> wakes_{0};
  std::atomic<bool> ending_{false};
  std::unique_ptr<WindowServer> server_;
  std::thread engine_;
  std::vector<model::Window> recorded_;
  std::vector<std::string> warnings_;
};

TEST_F(RunMonitorTest, AnEnergyIsPowerTimesTime) {
  const auto monitor = connect();
  EXPECT_EQ(monitor->kind(), "run");
  EXPECT_THAT(devices(*monitor), ElementsAre("gpu0", "gpu1"));
  const HostTime begin = HostClock::now();
  std::this_thread::sleep_for(60ms);
  const HostTime end = HostClock::now();
  const auto energies = monitor->energy(begin, end, 20s);
  ASSERT_TRUE(energies) << energies.error().message;
  ASSERT_THAT(*energies, SizeIs(2));
  for (int i = 0; i < 2; ++i) {
    const auto& m = (*energies)[static_cast<std::size_t>(i)];
    ASSERT_TRUE(m) << m.error().message;
    const double truth = 100 * (i + 1) * seconds(end - begin);
    EXPECT_NEAR(m->energy.joules(), truth, m->error.joules());
    EXPECT_NEAR(m->energy.joules(), truth, 0.02 * truth);
  }
  // What was told stays told.
  EXPECT_EQ((*monitor->energy(begin, end, 20s))[0]->energy, (*energies)[0]->energy);
  EXPECT_EQ(monitor->energy(end, begin, 1s).error().code, Errc::kInvalidArgument);
}

TEST_F(RunMonitorTest, AsksTheToolToRead) {
  const auto monitor = connect();
  const HostTime now = HostClock::now();
  ASSERT_TRUE(monitor->energy(now - 10ms, now, 20s));
  EXPECT_GT(wakes_, 0);
  EXPECT_TRUE(server_->take_read_wish());
  EXPECT_FALSE(server_->take_read_wish());
}

TEST_F(RunMonitorTest, WindowsAreRecordedByNameProcessAndThread) {
  constexpr int kThreads = 4;
  constexpr int kEach = 10'000;
  const HostTime begin = HostClock::now();
  {
    const auto monitor = connect();
    EXPECT_EQ(monitor->name(""), 0U);
    const auto epoch = monitor->name("epoch");
    EXPECT_EQ(monitor->name("epoch"), epoch);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto step = monitor->name("step " + std::to_string(t));
        for (int i = 0; i < kEach; ++i) {
          monitor->add({ns(begin) + i, ns(begin) + i + 1, step, 0});
        }
        monitor->add({ns(begin), ns(begin) + kEach, epoch, kDeviceTime});
      });
    }
    for (auto& thread : threads) thread.join();
  }
  stop();
  std::map<std::string, std::map<pid_t, int>> counts;
  for (const auto& w : recorded_) {
    EXPECT_EQ(w.pid, getpid());
    EXPECT_EQ(w.device_time, w.name == "epoch");
    ++counts[w.name][w.thread];
  }
  EXPECT_THAT(counts["epoch"], SizeIs(kThreads));
  for (int t = 0; t < kThreads; ++t) {
    const auto& of_thread = counts["step " + std::to_string(t)];
    ASSERT_THAT(of_thread, SizeIs(1));
    EXPECT_EQ(of_thread.begin()->second, kEach);
    EXPECT_NE(of_thread.begin()->first, getpid());
  }
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

TEST_F(RunMonitorTest, ATotalIsOfTheClientsOwnWindows) {
  const auto one = connect();
  const auto two = connect();
  const auto step = one->name("step");
  const auto other = two->name("other");
  EXPECT_EQ(step, other);  // each numbers its own
  EXPECT_EQ(one->total(step, 10s).error().code, Errc::kNotFound);
  const HostTime begin = HostClock::now() - 400ms;
  one->add({ns(begin), ns(begin + 100ms), step, 0});
  one->add({ns(begin + 200ms), ns(begin + 300ms), step, 0});
  two->add({ns(begin), ns(begin + 300ms), other, 0});
  const auto total = one->total(step, 20s);
  ASSERT_TRUE(total) << total.error().message;
  EXPECT_EQ(total->count, 2U);
  EXPECT_EQ(total->length, 200ms);
  ASSERT_THAT(total->energies, SizeIs(2));
  EXPECT_NEAR(total->energies[0]->energy.joules(), 20, 0.5);
  EXPECT_NEAR(total->energies[1]->energy.joules(), 40, 1);
  EXPECT_NEAR(two->total(other, 20s)->energies[0]->energy.joules(), 30, 0.5);
}

TEST_F(RunMonitorTest, ListsWhatTheProgramCanSeeOrNames) {
  const auto only = [](const std::string& name) -> std::optional<std::string> {
    if (name == "CUDA_VISIBLE_DEVICES") return "GPU-1";
    return std::nullopt;
  };
  EXPECT_THAT(devices(*connect({.devices = {}, .environment = only})), ElementsAre("gpu1"));
  EXPECT_THAT(devices(*connect({.devices = {"gpu0"}, .environment = only})), ElementsAre("gpu0"));
  const auto unmeasured = connect({.devices = {"gpu1", "gpu2"}, .environment = none});
  EXPECT_THAT(devices(*unmeasured), ElementsAre("gpu1", "gpu2"));
  const HostTime now = HostClock::now();
  const auto energies = unmeasured->energy(now - 100ms, now, 20s);
  ASSERT_TRUE(energies);
  EXPECT_NEAR((*energies)[0]->energy.joules(), 20, 0.5);
  EXPECT_THAT((*energies)[1].error().message, HasSubstr("does not measure it"));
  const auto unknown = RunMonitor::connect(server_->path(), {{"gpu9"}, none});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::kInvalidArgument);
}

TEST_F(RunMonitorTest, WithoutTheToolEnergiesAreUnavailable) {
  const auto monitor = connect();
  const auto path = server_->path();
  EXPECT_EQ(std::filesystem::status(path.parent_path()).permissions(),
            std::filesystem::perms::owner_all);
  std::thread asking([&] {
    const auto energies = monitor->energy(HostClock::now(), HostClock::now() + 1h, 2h);
    // Either it was still answered, with nothing, or the tool was gone.
    if (energies) return;
    EXPECT_EQ(energies.error().code, Errc::kUnavailable);
  });
  while (wakes_ == 0) std::this_thread::yield();
  stop();
  asking.join();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
  const HostTime now = HostClock::now();
  const auto energies = monitor->energy(now - 1ms, now, 10s);
  ASSERT_FALSE(energies);
  EXPECT_EQ(energies.error().code, Errc::kUnavailable);
  EXPECT_THAT(energies.error().message, HasSubstr("has ended or was killed"));
  for (int i = 0; i < 20'000; ++i) monitor->add({ns(now), ns(now), 0, 0});
  EXPECT_EQ(monitor->total(0, 1s).error().code, Errc::kUnavailable);
  const auto late = RunMonitor::connect(path);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::kUnavailable);
  EXPECT_THAT(late.error().message, HasSubstr(path.string()));
}

TEST_F(RunMonitorTest, NonsenseHarmsNobodyElse) {
  const auto monitor = connect();
  const std::string long_one(kLongestPacket + 100, '{');
  for (const std::string& packet : {std::string("GET / HTTP/1.1"), std::string("W"), std::string(),
                                    encode(EnergyQuestion{}), encode(Answer{}), long_one}) {
    const int fd = raw_client();
    ::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
    fcntl(fd, F_SETFL, 0);
    char byte = 0;
    EXPECT_LE(::recv(fd, &byte, 1, 0), 0) << packet.substr(0, 40);  // dropped
    ::close(fd);
  }
  const int silent = raw_client();
  ::close(raw_client());
  const int other = raw_client();
  const std::string hello = encode(Hello{kWindowProtocol + 1});
  ::send(other, hello.data(), hello.size(), MSG_NOSIGNAL);
  fcntl(other, F_SETFL, 0);
  std::string answer(1000, '\0');
  const auto size = ::recv(other, answer.data(), answer.size(), 0);
  ASSERT_GT(size, 0);
  EXPECT_THAT(answer, AllOf(HasSubstr("refused"), HasSubstr("version")));
  ::close(other);
  const HostTime now = HostClock::now();
  EXPECT_TRUE(monitor->energy(now - 50ms, now, 20s));
  ::close(silent);
}

TEST_F(RunMonitorTest, AForkedChildMeasuresNothingAndOpensItsOwn) {
  auto monitor = connect();
  const auto name = monitor->name("step");
  const HostTime now = HostClock::now();
  monitor->add({ns(now), ns(now), name, 0});
  const auto path = server_->path();
  const pid_t child = fork();
  if (child == 0) {
    monitor->add({ns(now), ns(now), name, 0});
    int wrong = 0;
    const auto energies = monitor->energy(now - 1ms, now, 1s);
    wrong += energies || energies.error().code != Errc::kUnavailable ? 1 : 0;
    wrong += monitor->total(name, 1s) ? 2 : 0;
    wrong += monitor->name("other") != 0 ? 4 : 0;
    monitor.reset();
    _exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(monitor->energy(now - 50ms, now, 20s));  // the parent goes on
  monitor.reset();
  stop();
  EXPECT_THAT(recorded_, SizeIs(1));
}

// What a program handed in just before it died is not lost.
TEST_F(RunMonitorTest, WindowsOfOneThatHasJustEndedAreTakenIn) {
  const int fd = raw_client();
  const HostTime now = HostClock::now();
  const std::vector<spans::WindowRecord> windows(1000, {ns(now), ns(now), 1, 0});
  for (const std::string& packet :
       {encode(Hello{}), encode(Names{1, {"last"}}), encode_windows(5, windows)}) {
    ASSERT_GT(::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL), 0);
  }
  ::close(fd);
  stop();
  ASSERT_THAT(recorded_, SizeIs(1000));
  EXPECT_EQ(recorded_[999], (model::Window{"last", now, now, getpid(), 5, false}));
}

TEST_F(RunMonitorTest, ManyAskAtOnce) {
  const auto monitor = connect();
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const HostTime end = HostClock::now();
        monitor->add({ns(end - 20ms), ns(end), monitor->name("x"), 0});
        const auto energies = monitor->energy(end - 20ms, end, 20s);
        ASSERT_TRUE(energies) << energies.error().message;
        EXPECT_NEAR((*energies)[0]->energy.joules(), 2, 0.2);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(monitor->total(monitor->name("x"), 20s)->count, 80U);
}

}  // namespace
}  // namespace jouleprof::session
