#include "session/windows/shared_log.h"

#include <gtest/gtest.h>

#include "session/sampling/recording_sink.h"

namespace jouleprof::session {
namespace {

struct Logged {
  MemorySink* file = nullptr;
  std::shared_ptr<SharedLog> log;

  Logged() {
    auto sink = std::make_unique<MemorySink>();
    file = sink.get();
    log = std::make_shared<SharedLog>(std::move(sink));
  }
  static void add_board(Sink& sink, const char* device) {
    Batch batch;
    model::Domain domain;
    domain.device = device;
    batch.domains.push_back(domain);
    model::Domain memory;
    memory.id = model::DomainId{1};
    memory.parent = domain.id;
    batch.domains.push_back(memory);
    model::Sensor sensor;
    sensor.domain = memory.id;
    batch.sensors.push_back(sensor);
    batch.readings.powers.push_back({sensor.id, {}, Power::watts(10)});
    batch.readings.gauges.push_back({sensor.id, {}, 1});
    ASSERT_TRUE(sink.append(batch));
  }
};

TEST(SharedLog, LaterSensorsHaveNumbersOfTheirOwn) {
  Logged logged;
  auto first = logged.log->first();
  logged.add_board(*first, "gpu0");
  auto second = logged.log->later();
  logged.add_board(*second, "gpu1");
  auto third = logged.log->later();
  logged.add_board(*third, "gpu2");
  const auto& r = logged.file->recording;
  ASSERT_EQ(r.domains.size(), 6u);
  ASSERT_EQ(r.sensors.size(), 3u);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(r.domains[i].id, model::DomainId{i});
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(r.domains[2 * i + 1].parent, r.domains[2 * i].id);
    EXPECT_EQ(r.sensors[i].domain, r.domains[2 * i + 1].id);
    EXPECT_EQ(r.readings.powers[i].sensor, r.sensors[i].id);
    EXPECT_EQ(r.readings.gauges[i].sensor, r.sensors[i].id);
  }
}

TEST(SharedLog, TheRunItsProcessesAndItsEndAreTheFirstOnes) {
  Logged logged;
  auto first = logged.log->first();
  Batch batch;
  batch.run.emplace().pid = 1;
  ASSERT_TRUE(first->append(batch));
  auto later = logged.log->later();
  batch.run->pid = 2;
  batch.processes.emplace_back();
  batch.windows.emplace_back();
  ASSERT_TRUE(later->append(batch));
  ASSERT_TRUE(later->finish());
  const auto& r = logged.file->recording;
  EXPECT_EQ(r.run.pid, 1);
  EXPECT_FALSE(r.run.complete);
  EXPECT_TRUE(r.processes.empty());
  EXPECT_TRUE(r.windows.empty());
  ASSERT_TRUE(first->finish());
  EXPECT_TRUE(r.run.complete);
  logged.add_board(*later, "gpu1");
  EXPECT_TRUE(r.domains.empty());
}

}  // namespace
}  // namespace jouleprof::session
