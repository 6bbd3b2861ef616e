// A hub that records, as that of `jouleprof run`, for tests of a program's end.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/process/local_socket.h"
#include "meters/shared/shared_meter.h"
#include "session/hub/hub_server.h"
#include "session/windows/live_monitor.h"

namespace jouleprof::session {

inline std::int64_t ns(HostTime t) { return t.time_since_epoch().count(); }

// The monitor of a program that finds a hub at `path`.
inline Result<std::unique_ptr<LiveMonitor>> open_under_run(const std::filesystem::path& path,
                                                           DeviceChoice devices,
                                                           Environment environment) {
  using namespace std::chrono_literals;
  auto meter = meters::SharedMeter::open({.path = path,
                                          .hub = "the tool",
                                          .demand = {.shortest_window = 50ms},
                                          .process_period = {},
                                          .can_use = {},
                                          .open_own = {}});
  if (!meter) return forward_error(meter);
  LiveOptions options;
  options.devices = std::move(devices);
  options.environment = std::move(environment);
  options.session = path;
  options.not_measured = (*meter)->not_measured();
  std::vector<std::unique_ptr<meters::Meter>> meters;
  meters.push_back(std::move(*meter));
  return LiveMonitor::open(std::move(options), std::move(meters));
}

// The tool with two GPUs of 100 and 200 W and a third that it does not measure; a thread in the
// engine's place hands it readings.
class UnderRunTest : public testing::Test {
 protected:
  UnderRunTest() {
    using namespace std::chrono_literals;
    for (unsigned i = 0; i < 3; ++i) {
      model::Domain d;
      d.id = model::DomainId{i};
      d.device = "gpu" + std::to_string(i);
      d.uuid = "GPU-" + std::to_string(i);
      if (i == 2) d.unavailable_reason = "the tool does not measure it";
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
  ~UnderRunTest() override { stop(); }

  void start() {
    using namespace std::chrono_literals;
    auto server =
        HubServer::start(*HubSocket::in_session_folder(), {.history = 10s, .records = true},
                         domains_, sensors_, [this] { ++wakes_; });
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    ending_ = false;
    engine_ = std::thread([this] {
      HostTime sampled = HostClock::now() - 1s;
      while (!ending_) {
        const bool is_asked = server_->take_read_request(HostClock::now());
        Sampled now;
        const HostTime end = reads_only_when_asked_ && !is_asked ? sampled : HostClock::now();
        if (is_asked) ++reads_;
        for (; sampled < end; sampled += 5ms) {
          now.readings.powers.push_back({model::SensorId{0}, sampled, Power::watts(100)});
          now.readings.powers.push_back({model::SensorId{1}, sampled, Power::watts(200)});
        }
        server_->append(now);
        if (is_asked) server_->finish_read();
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
    server_->windows().take(windows, warnings);
    recorded_.insert(recorded_.end(), windows.begin(), windows.end());
    warnings_.insert(warnings_.end(), warnings.begin(), warnings.end());
  }

  std::unique_ptr<LiveMonitor> connect(DeviceChoice devices = {}, Environment environment = none) {
    auto monitor = open_under_run(server_->path(), std::move(devices), std::move(environment));
    EXPECT_TRUE(monitor) << monitor.error().message;
    return monitor ? std::move(*monitor) : nullptr;
  }
  static std::optional<std::string> none(const std::string&) { return std::nullopt; }
  static std::vector<std::string> devices(const LiveMonitor& monitor) {
    std::vector<std::string> names;
    for (const auto& d : monitor.domains()) names.push_back(d.device);
    return names;
  }
  int raw_client() { return connect_locally(server_->path(), "").value(); }

  std::vector<meters::OfferedDomain> domains_;
  std::vector<model::Sensor> sensors_;
  std::atomic<int> wakes_{0};
  std::atomic<int> reads_{0};
  std::atomic<bool> ending_{false};
  std::atomic<bool> reads_only_when_asked_{false};
  std::unique_ptr<HubServer> server_;
  std::thread engine_;
  std::vector<model::Window> recorded_;
  std::vector<std::string> warnings_;
};

}  // namespace jouleprof::session
