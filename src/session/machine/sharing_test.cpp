// A service and programs that measure with its sensors.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "analysis/timeline/timeline.h"
#include "base/process/local_socket.h"
#include "base/process/threads.h"
#include "meters/shared/shared_meter.h"
#include "session/machine/machine_service.h"
#include "session/sampling/recording_sink.h"
#include "session/sampling/sampling_fixture.h"
#include "session/sampling/visible_devices.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using meters::SharedMeter;

// A service in a thread, until stop().
class Service {
 public:
  explicit Service(Meters meters, Duration fastest = 10ms, std::vector<std::string> devices = {}) {
    ServiceOptions options;
    options.tick = 200ms;
    options.devices = std::move(devices);
    options.sink = &sink;
    options.share = ShareOptions{{path(), 0600, {}}, fastest, "/"};
    service_ = *MachineService::open(std::move(options), std::move(meters));
    const auto shared = service_->start_sharing();
    EXPECT_TRUE(shared) << shared.error().message;
    thread_ = std::thread([this, token = stop_.get_token()] { service_->run(token); });
  }
  ~Service() { stop(); }
  void stop() {
    if (!thread_.joinable()) return;
    stop_.request_stop();
    thread_.join();
  }
  std::filesystem::path path() const { return folder_.root() / "sampler.sock"; }

  MemorySink sink;

 private:
  const TempTree folder_{};
  std::unique_ptr<MachineService> service_;
  std::stop_source stop_;
  std::thread thread_;
};

meters::SharedOptions at(const std::filesystem::path& path) {
  return {.path = path,
          .hub = "the service that shared its sensors",
          .demand = {.shortest_window = 100ms},
          .process_period = 100ms,
          .can_use = {},
          .open_own = {}};
}

std::unique_ptr<SharedMeter> open(meters::SharedOptions options) {
  auto meter = SharedMeter::open(std::move(options));
  EXPECT_TRUE(meter) << meter.error().message;
  return meter ? std::move(*meter) : nullptr;
}

// Reads what the service sends and what it reads now, until `done`.
model::Readings readings_of(SharedMeter& meter, const std::function<bool(model::Readings&)>& done) {
  model::Readings out;
  const HostTime deadline = HostClock::now() + 20s;
  do {
    meter.read(0, out);
    meter.read(1, out);
  } while (!done(out) && HostClock::now() < deadline);
  return out;
}

Energy energy_of(const model::Domain& domain, const model::Readings& readings, HostTime begin,
                 HostTime end) {
  const FakeMeter direct;
  const auto sensors =
      analysis::choose_sensors(direct.sensors(), domain.id, std::vector<bool>(3, true));
  analysis::EnergyTimeline timeline(*sensors);
  timeline.append(readings);
  const auto energy = timeline.energy(begin, end);
  EXPECT_TRUE(energy) << energy.error().message;
  return energy ? energy->energy : Energy{};
}

// Those of the service from the program's first reading to its last.
model::Readings part_of(const model::Readings& all, const model::Readings& program) {
  model::Readings part;
  for (const auto& r : all.counters) {
    if (r.before >= program.counters.front().before && r.after <= program.counters.back().after) {
      part.counters.push_back(r);
    }
  }
  for (const auto& r : all.powers) {
    if (r.at >= program.powers.front().at && r.at <= program.powers.back().at) {
      part.powers.push_back(r);
    }
  }
  return part;
}

TEST(Sharing, AProgramHasTheServicesSensorsAndEveryReading) {
  Service service(meters_of(std::make_unique<FakeMeter>()));
  const FakeMeter direct;
  auto meter = open(at(service.path()));
  ASSERT_TRUE(meter);
  EXPECT_EQ(meter->domains(), direct.domains());
  EXPECT_EQ(meter->sensors(), direct.sensors());
  const auto got = readings_of(*meter, [](const auto& r) { return r.counters.size() > 40; });
  meter.reset();
  service.stop();
  const auto all = part_of(service.sink.recording.readings, got);
  EXPECT_EQ(got.counters, all.counters);
  EXPECT_EQ(got.powers, all.powers);
  // To the microjoule.
  const auto& gpu = direct.domains()[0];
  const HostTime begin = got.counters.at(5).after;
  const HostTime end = got.counters.at(35).after;
  EXPECT_GT(energy_of(gpu, got, begin, end), Energy{});
  EXPECT_EQ(energy_of(gpu, got, begin, end),
            energy_of(gpu, service.sink.recording.readings, begin, end));
}

TEST(Sharing, AReadThatIsAskedForIsNew) {
  // Its own probes are due once an hour.
  Service service(meters_of(std::make_unique<FakeMeter>("gpu0", "GPU-0", 1h)));
  auto meter = open(at(service.path()));
  ASSERT_TRUE(meter);
  for (int i = 0; i < 3; ++i) {
    model::Readings out;
    const HostTime asked = HostClock::now();
    meter->read(1, out);
    ASSERT_FALSE(out.counters.empty());
    EXPECT_GE(out.counters.back().before, asked);
    EXPECT_LE(out.counters.back().after, HostClock::now());
  }
}

TEST(Sharing, DevicesThatTheServiceDoesNotMeasureAreListedWithAReason) {
  Service service(meters_of(std::make_unique<FakeMeter>("gpu0", "GPU-0"),
                            std::make_unique<FakeMeter>("gpu1", "GPU-1")),
                  10ms, {"gpu1"});
  auto meter = open(at(service.path()));
  ASSERT_TRUE(meter);
  ASSERT_EQ(meter->domains().size(), 4u);
  EXPECT_NE(meter->domains()[0].unavailable_reason, "");
  EXPECT_EQ(meter->domains()[2].unavailable_reason, "");
  ASSERT_EQ(meter->sensors().size(), 3u);
  const auto got = readings_of(*meter, [](const auto& r) { return r.counters.size() > 3; });
  for (const auto& sensor : meter->sensors()) {
    EXPECT_GE(static_cast<std::uint32_t>(sensor.domain), 2u);
  }
  for (const auto& r : got.counters) EXPECT_EQ(r.sensor, model::SensorId{0});
}

TEST(Sharing, GpusThatTheProgramCannotUseAreNotVisible) {
  Service service(meters_of(std::make_unique<FakeMeter>("gpu0", "GPU-0"),
                            std::make_unique<FakeMeter>("gpu1", "GPU-1")));
  auto options = at(service.path());
  options.can_use = [](const model::Domain& d) { return d.uuid == "GPU-1"; };
  auto meter = open(std::move(options));
  ASSERT_TRUE(meter);
  auto domains = meter->domains();
  EXPECT_FALSE(domains[0].visible);
  EXPECT_TRUE(domains[2].visible);
  // The runtime numbers what the program can use: 0 is the machine's second board.
  const auto visibility = apply_visibility(domains, [](const std::string& name) {
    return name == "CUDA_VISIBLE_DEVICES" ? std::optional<std::string>("0") : std::nullopt;
  });
  EXPECT_EQ(visibility.order, std::vector{model::DomainId{2}});
  EXPECT_FALSE(domains[0].visible);
  EXPECT_TRUE(domains[2].visible);
  EXPECT_EQ(*select_devices(domains, {"0"}), (std::vector{false, false, true, true}));
}

TEST(Sharing, WhenTheServiceStopsTheMachinesSensorsGoOnAndTheGapIsNamed) {
  auto service = std::make_unique<Service>(meters_of(std::make_unique<FakeMeter>()));
  auto options = at(service->path());
  options.open_own = [] {
    auto own = std::make_unique<FakeMeter>();
    // It has one sensor fewer than the service.
    const_cast<std::vector<model::Sensor>&>(own->sensors()).pop_back();
    return meters_of(std::move(own));
  };
  auto meter = open(std::move(options));
  ASSERT_TRUE(meter);
  readings_of(*meter, [](const auto& r) { return r.counters.size() > 3; });
  EXPECT_TRUE(meter->take_notices().empty());
  service.reset();

  model::Readings out;
  meter->read(0, out);
  const auto notices = meter->take_notices();
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_NE(notices[0].find("has stopped"), std::string::npos) << notices[0];
  EXPECT_NE(notices[0].find("s without readings"), std::string::npos) << notices[0];
  ASSERT_EQ(out.failures.size(), 1u);
  EXPECT_EQ(out.failures[0].sensor, model::SensorId{2});
  EXPECT_NE(out.failures[0].error.message.find("cannot read this sensor"), std::string::npos);
  for (int i = 0; i < 3; ++i) {
    const auto before = out.counters.size();
    meter->read(1, out);
    EXPECT_GT(out.counters.size(), before);
    EXPECT_EQ(out.counters.back().sensor, model::SensorId{0});
  }
  EXPECT_TRUE(meter->take_notices().empty());
}

TEST(Sharing, AProgramSeesUsesOfGpus) {
  const model::GpuProcessUse mine{::getpid(), model::DomainId{0}, {}, 0.5, 100};
  Service service(meters_of(std::make_unique<ProcessMeter>(
      [mine]() -> Result<std::vector<model::GpuProcessUse>> { return std::vector{mine}; })));
  auto meter = open(at(service.path()));
  ASSERT_TRUE(meter);
  std::vector<model::GpuProcessUse> uses;
  readings_of(*meter, [&](auto&) {
    model::Readings ignored;
    uses = **meter->read_processes(ignored);
    return !uses.empty();
  });
  ASSERT_FALSE(uses.empty());
  EXPECT_EQ(uses.front(), mine);
}

TEST(Sharing, AServiceThatIsBusyOrOfAnotherVersionRefuses) {
  Service service(meters_of(std::make_unique<FakeMeter>()));
  std::vector<std::unique_ptr<SharedMeter>> programs;
  for (int i = 0; i < 16; ++i) programs.push_back(open(at(service.path())));
  const auto one_more = SharedMeter::open(at(service.path()));
  ASSERT_FALSE(one_more);
  EXPECT_NE(one_more.error().message.find("as many programs as it can"), std::string::npos)
      << one_more.error().message;
  programs.clear();
}

TEST(Sharing, NonsenseEndsAConnectionAndDisturbsNoOther) {
  Service service(meters_of(std::make_unique<FakeMeter>()));
  auto meter = open(at(service.path()));
  ASSERT_TRUE(meter);
  const std::string hello = meters::encode(meters::ProgramMessage(meters::Hello{}));
  for (const std::string& bad :
       {std::string("garbage"), std::string(70'000, 'x'),
        std::string("{\"type\":\"read\",\"id\":1}"),
        std::string("{\"type\":\"hello\",\"protocol\":99}"), std::string(1, '\0')}) {
    const auto fd = connect_locally(service.path(), "");
    ASSERT_TRUE(fd);
    ASSERT_GE(::send(*fd, bad.data(), bad.size(), 0), 0);
    std::array<char, 256> answer{};
    ssize_t n = 0;
    const HostTime deadline = HostClock::now() + 20s;
    // At most a welcome, then the end.
    while ((n = ::recv(*fd, answer.data(), answer.size(), MSG_DONTWAIT)) != 0 &&
           HostClock::now() < deadline) {
      if (n < 0 && errno == ECONNRESET) n = 0;
      if (n == 0) break;
    }
    EXPECT_EQ(n, 0) << bad.substr(0, 40);
    ::close(*fd);
  }
  const auto got = readings_of(*meter, [](const auto& r) { return r.counters.size() > 3; });
  EXPECT_GT(got.counters.size(), 3u);
  EXPECT_TRUE(meter->take_notices().empty());
}

std::string welcome(int protocol, HostTime now) {
  return meters::encode(meters::HubMessage(meters::Welcome{protocol, now, 10ms}));
}

// What a program says of a service that answers so.
std::string error_with(const std::vector<std::string>& answers) {
  const TempTree folder;
  const auto path = folder.root() / "s";
  const int socket = *listen_locally(path);
  std::thread service([&] {
    int fd = -1;
    while ((fd = ::accept(socket, nullptr, nullptr)) < 0) std::this_thread::yield();
    for (const auto& answer : answers) (void)::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(fd);
  });
  const auto meter = SharedMeter::open(at(path));
  service.join();
  ::close(socket);
  return meter ? "none" : meter.error().message;
}

TEST(Sharing, AServiceThatTalksNonsenseIsAClearError) {
  const auto expect = [](const std::vector<std::string>& answers, const std::string& what) {
    const std::string error = error_with(answers);
    EXPECT_NE(error.find(what), std::string::npos) << error;
  };
  const std::string usual = welcome(meters::kHubProtocol, HostClock::now());
  expect({}, "has stopped");
  expect({"garbage"}, "unknown form");
  expect({std::string(70'000, 'x')}, "too long");
  expect({usual, "R\x80"}, "cannot be decoded");
  expect({welcome(99, HostClock::now())}, "speaks version 99");
  expect({welcome(meters::kHubProtocol, HostClock::now() + 1h)}, "clock");
  model::Sensor of_no_domain;
  expect({usual, meters::encode(meters::HubMessage(of_no_domain))}, "list of sensors");
  model::Domain domain;
  domain.parent = model::DomainId{4};
  expect({usual, meters::encode(meters::HubMessage(meters::OfferedDomain{domain, true})),
          meters::encode(meters::HubMessage(meters::Ready{}))},
         "part of one that does not exist");
}

TEST(Sharing, TheSocketHasTheModeThatWasAskedForAndReplacesOneThatWasLeft) {
  const TempTree folder;
  const auto path = folder.root() / "new" / "s";
  {
    const auto socket = HubSocket::create({path, 0640, ::getegid()});
    ASSERT_TRUE(socket) << socket.error().message;
    struct stat about {};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 07777, 0640u);
    const auto second = HubSocket::create({path, 0640, {}});
    ASSERT_FALSE(second);
    EXPECT_NE(second.error().message.find("another service listens"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  ::close(*listen_locally(path));  // a killed service leaves it so
  EXPECT_TRUE(HubSocket::create({path, 0600, {}}));
  folder.write("file", "x");
  EXPECT_FALSE(HubSocket::create({folder.root() / "file", 0600, {}}));
}

}  // namespace
}  // namespace jouleprof::session
