// The tool's end of the windows' protocol, for tests of a program's end.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "session/windows/run_monitor.h"
#include "session/windows/session_socket.h"
#include "session/windows/window_server.h"

namespace jouleprof::session {

inline std::int64_t ns(HostTime t) { return t.time_since_epoch().count(); }

// The tool with two GPUs of 100 and 200 W and a third that it does not measure; a thread in the
// engine's place hands it readings.
class RunMonitorTest : public testing::Test {
 protected:
  RunMonitorTest() {
    using namespace std::chrono_literals;
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
      using namespace std::chrono_literals;
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

}  // namespace jouleprof::session
