#include "meters/shared/hub_protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;
using model::SensorId;

HostTime at(std::int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

template <typename T>
T back(const HubMessage& message) {
  auto decoded = decode_hub_message(encode(message));
  EXPECT_TRUE(decoded) << decoded.error().message;
  return std::get<T>(*decoded);
}

TEST(HubProtocol, DomainsAndSensorsArriveUnchanged) {
  model::Domain domain;
  domain.id = model::DomainId{3};
  domain.kind = model::DomainKind::kGpuMemory;
  domain.device = "gpu1";
  domain.name = "NVIDIA \"H100\"";
  domain.uuid = "GPU-1";
  domain.parent = model::DomainId{2};
  domain.unavailable_reason = "why";
  domain.known_levels.rest =
      model::KnownLevel{Power::watts(70.1), Power::watts(0.3), 41.5, RealTime{5ns}};
  const auto offered = back<OfferedDomain>(OfferedDomain{domain, false});
  EXPECT_EQ(offered.domain, domain);
  EXPECT_FALSE(offered.measured);

  model::Sensor sensor;
  sensor.id = SensorId{7};
  sensor.domain = domain.id;
  sensor.kind = model::SensorKind::kPowerRing;
  sensor.name = "nvmlDeviceGetSamples";
  sensor.provenance = model::Provenance::kSimulated;
  sensor.traits.refresh = 20ms;
  sensor.traits.window = 25ms;
  sensor.traits.lag = 3ms;
  sensor.traits.rise = 1ms;
  sensor.traits.read_cost = 51us;
  sensor.traits.wrap = Energy::joules(262143.3);
  sensor.traits.quantum = Energy::microjoules(61);
  sensor.traits.scale = {-0.1 / 3, 0.2 / 3, Power::watts(-0.1), Power::watts(7.7), "a test"};
  sensor.traits.correction = 1.0 / 3;
  EXPECT_EQ(back<model::Sensor>(sensor), sensor);
}

TEST(HubProtocol, DemandsArriveUnchanged) {
  const Hello hello{kHubProtocol, false, {50ms, 20ms, 100ms, 900ms, 250ms}, 900ms};
  const auto decoded = decode_program_message(encode(ProgramMessage(hello)));
  ASSERT_TRUE(decoded);
  const auto& got = std::get<Hello>(*decoded);
  EXPECT_EQ(got.demand.shortest_window, 50ms);
  EXPECT_EQ(got.demand.poll_period, 20ms);
  EXPECT_EQ(got.demand.counter_period, 100ms);
  EXPECT_EQ(got.demand.sample_period, 900ms);
  EXPECT_EQ(got.demand.state_period, 250ms);
  EXPECT_EQ(got.process_period, 900ms);
  EXPECT_FALSE(got.readings);
}

template <typename T>
T sent(const ProgramMessage& message) {
  auto got = decode_program_message(encode(message));
  EXPECT_TRUE(got) << encode(message);
  return std::get<T>(std::move(*got));
}

TEST(HubProtocol, WhatAProgramHandsOverArrives) {
  const auto names = sent<Names>(Names{7, {"", "naïve \"é\"\n", std::string("a\0b", 3)}});
  EXPECT_EQ(names.first, 7U);
  EXPECT_THAT(names.names, testing::ElementsAre("", "naïve \"é\"\n", std::string("a\0b", 3)));
  EXPECT_EQ(sent<Names>(Names{0, {"\xff"}}).names[0], "\xEF\xBF\xBD");  // no UTF-8
  EXPECT_EQ(sent<Lost>(Lost{12}).count, 12U);
  EXPECT_THAT(sent<Devices>(Devices{{model::DomainId{3}}}).domains,
              testing::ElementsAre(model::DomainId{3}));
  EXPECT_THAT(sent<Join>(Join{{model::DomainId{4}}}).visible,
              testing::ElementsAre(model::DomainId{4}));
  sent<Leave>(Leave{});
  const auto joined = back<Joined>(Joined{"a.jprof", {"A=b", "C="}});
  EXPECT_EQ(joined.recording, "a.jprof");
  EXPECT_THAT(joined.variables, testing::ElementsAre("A=b", "C="));
  // Numbers of names beyond the last one there is.
  EXPECT_FALSE(
      decode_program_message(R"({"type": "names", "first": 4294967295, "names": ["a", "b"]})"));
}

TEST(HubProtocol, WindowsAreBinaryAndExact) {
  std::vector<model::WindowRecord> records(kMostWindowsInPacket);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const auto n = static_cast<std::int64_t>(i);
    records[i] = {-n, INT64_MAX - n, static_cast<std::uint32_t>(i), 1};
  }
  const std::string packet = encode_windows(77, 5u, records);
  EXPECT_LE(packet.size(), kLongestPacket);
  const auto got = std::get<Windows>(decode_program_message(packet).value());
  EXPECT_EQ(got.thread, 77);
  EXPECT_EQ(got.ring, 5U);
  ASSERT_EQ(got.windows.size(), records.size());
  EXPECT_EQ(got.windows.back().begin, records.back().begin);
  EXPECT_EQ(got.windows.back().end, records.back().end);
  EXPECT_EQ(got.windows.back().name, records.back().name);
  EXPECT_EQ(got.windows.back().flags, 1U);
  for (const std::string& bad :
       {packet.substr(0, packet.size() - 1), packet + 'x', packet.substr(0, 12), std::string("W"),
        encode_windows(1, {}, std::vector<model::WindowRecord>(2049))}) {
    EXPECT_FALSE(decode_program_message(bad)) << bad.size();
  }
  EXPECT_TRUE(
      std::get<Windows>(decode_program_message(encode_windows(1, {}, {})).value()).windows.empty());
}

TEST(HubProtocol, AnotherVersionIsRecognised) {
  const auto hello = decode_program_message(R"({"type": "hello", "protocol": 6})");
  ASSERT_TRUE(hello);
  EXPECT_EQ(std::get<Hello>(*hello).protocol, 6);
  const auto welcome =
      decode_hub_message(R"({"type": "welcome", "protocol": 6, "domains": "of another form"})");
  ASSERT_TRUE(welcome);
  EXPECT_EQ(std::get<Welcome>(*welcome).protocol, 6);
}

TEST(HubProtocol, AProtocolBeyondAnyIsNoMessage) {
  EXPECT_TRUE(decode_program_message(R"({"type": "hello", "protocol": 1000000})"));
  EXPECT_FALSE(decode_program_message(R"({"type": "hello", "protocol": 2950000000})"));
}

model::Readings many_readings() {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<std::int64_t> any(0, std::int64_t{1} << 60);
  std::uniform_real_distribution<double> real(-1e6, 1e6);
  model::Readings readings;
  for (std::uint32_t i = 0; i < 5000; ++i) {
    const SensorId sensor{i % 7};
    const HostTime t = at(any(random));
    readings.counters.push_back({sensor, t, t + 3us, Energy::microjoules(any(random) - 1000)});
    readings.powers.push_back({sensor, t, Power::watts(real(random))});
    readings.gauges.push_back({sensor, t, real(random)});
  }
  readings.failures.push_back({SensorId{1}, at(5), {Errc::kTimeout, "no answer\nat all"}});
  return readings;
}

TEST(HubProtocol, ReadingsArriveToTheLastBitInPacketsThatFit) {
  const auto sent = many_readings();
  const auto packets = encode_readings(sent);
  EXPECT_GT(packets.size(), 1u);
  model::Readings got;
  for (const auto& packet : packets) {
    EXPECT_LE(packet.size(), kLongestPacket);
    const auto message = decode_hub_message(packet);
    ASSERT_TRUE(message);
    const auto& part = std::get<model::Readings>(*message);
    got.counters.insert(got.counters.end(), part.counters.begin(), part.counters.end());
    got.powers.insert(got.powers.end(), part.powers.begin(), part.powers.end());
    got.gauges.insert(got.gauges.end(), part.gauges.begin(), part.gauges.end());
    got.failures.insert(got.failures.end(), part.failures.begin(), part.failures.end());
  }
  EXPECT_EQ(got, sent);
}

TEST(HubProtocol, UsesArriveUnchanged) {
  const GpuUses uses{{4711, model::DomainId{1}, at(9), 0.25, std::uint64_t{1} << 33},
                     {0, model::DomainId{1}, at(9), std::nullopt, std::nullopt}};
  const auto packets = encode_uses(uses);
  ASSERT_EQ(packets.size(), 1u);
  const auto message = decode_hub_message(packets[0]);
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<GpuUses>(*message), uses);
}

TEST(HubProtocol, GarbageIsAnError) {
  for (const char* packet :
       {"", "{", "[]", "{}", "R\x80", "R\x01", "U\x01\x02", "Rxxxxxxxxxxxxxxx", "\xff",
        R"({"type":"sensor"})", R"({"type":"domain","id":-1})", R"({"type":"done"})",
        R"({"type":"hello","protocol":7})", R"({"type":7})"}) {
    const auto service = decode_hub_message(packet);
    EXPECT_FALSE(service) << packet;
    if (!service) {
      EXPECT_EQ(service.error().code, Errc::kCorrupt);
    }
    EXPECT_FALSE(decode_program_message(packet)) << packet;
  }
}

TEST(HubProtocol, CutAndChangedPacketsAreNoCrash) {
  std::mt19937 random(2);
  auto readings = many_readings();
  readings.counters.resize(50), readings.powers.resize(50), readings.gauges.resize(50);
  const std::string packet = encode_readings(readings).at(0);
  for (int i = 0; i < 5000; ++i) {
    std::string bad = packet.substr(0, 1 + random() % packet.size());
    if (bad.size() > 1) bad[1 + random() % (bad.size() - 1)] ^= 0x55;
    (void)decode_hub_message(bad);
  }
}

TEST(HubProtocol, OfTwoDemandsTheFasterCounts) {
  const Demand usual{5s, {}, {}, 5s, 5s};
  const Demand run{1s, {}, 100ms, {}, 250ms};
  const Demand both = joined_demand(usual, run);
  EXPECT_EQ(both.shortest_window, 1s);
  EXPECT_EQ(both.counter_period, 100ms);
  EXPECT_EQ(both.sample_period, Duration{});  // which is 0.9 s
  EXPECT_EQ(both.state_period, 250ms);
  // A poll period of 10 s is slower than the usual one.
  EXPECT_EQ(joined_demand({5s, 10s}, {5s, {}}).poll_period, Duration{});
  EXPECT_EQ(joined_demand({5s, 20ms}, {5s, {}}).poll_period, 20ms);
}

TEST(HubProtocol, NoPeriodIsBelowTheBound) {
  const Demand bounded = bounded_demand({50ms, 1ms, 10ms, {}, 50ms}, 100ms);
  EXPECT_EQ(bounded.shortest_window, 100ms);
  EXPECT_EQ(bounded.poll_period, 100ms);
  EXPECT_EQ(bounded.counter_period, 100ms);
  EXPECT_EQ(bounded.sample_period, Duration{});
  EXPECT_EQ(bounded.state_period, 100ms);
  // Short windows alone make some meters poll every 10 ms.
  EXPECT_EQ(bounded_demand({50ms}, 100ms).poll_period, 100ms);
  EXPECT_EQ(bounded_demand({50ms}, 10ms).poll_period, Duration{});
}

}  // namespace
}  // namespace jouleprof::meters
