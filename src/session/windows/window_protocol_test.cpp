#include "session/windows/window_protocol.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <random>

namespace jouleprof::session {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;

template <typename T>
T sent(const ProgramMessage& message) {
  auto got = decode_program_message(encode(message));
  EXPECT_TRUE(got) << encode(message);
  return std::get<T>(std::move(*got));
}
template <typename T>
T reported(const ToolMessage& message) {
  auto got = decode_tool_message(encode(message));
  EXPECT_TRUE(got) << encode(message);
  return std::get<T>(std::move(*got));
}

TEST(WindowProtocol, WhatAProgramSaysArrives) {
  EXPECT_EQ(sent<Hello>(Hello{}).protocol, kWindowProtocol);
  const auto names = sent<Names>(Names{7, {"", "naïve \"é\"\n", std::string("a\0b", 3)}});
  EXPECT_EQ(names.first, 7U);
  EXPECT_THAT(names.names, ElementsAre("", "naïve \"é\"\n", std::string("a\0b", 3)));
  EXPECT_EQ(sent<Names>(Names{0, {"\xff"}}).names[0], "\xEF\xBF\xBD");  // no UTF-8
  EXPECT_EQ(sent<Lost>(Lost{12}).count, 12U);
  const auto energy = sent<EnergyQuestion>(
      EnergyQuestion{3, HostTime{seconds{1}}, HostTime{seconds{2}}, HostTime::max()});
  EXPECT_EQ(energy.id, 3U);
  EXPECT_EQ(energy.begin, HostTime{seconds{1}});
  EXPECT_EQ(energy.end, HostTime{seconds{2}});
  EXPECT_EQ(energy.deadline, HostTime::max());
  EXPECT_EQ(sent<TotalQuestion>(TotalQuestion{4, 4'000'000'000, {}}).name, 4'000'000'000U);
}

TEST(WindowProtocol, WindowsAreBinaryAndExact) {
  std::vector<spans::WindowRecord> records(kMostWindowsInPacket);
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
  EXPECT_FALSE(decode_program_message(packet.substr(0, packet.size() - 1)));
  EXPECT_FALSE(decode_program_message(packet + 'x'));
  EXPECT_FALSE(decode_program_message(packet.substr(0, 12)));
  EXPECT_TRUE(
      std::get<Windows>(decode_program_message(encode_windows(1, {}, {})).value()).windows.empty());
}

TEST(WindowProtocol, WhatTheToolSaysArrives) {
  model::Domain memory{model::DomainId{1},
                       model::DomainKind::kGpuMemory,
                       "gpu0",
                       "H100",
                       "GPU-1",
                       model::DomainId{0},
                       true,
                       "why"};
  const auto welcome = reported<Welcome>(Welcome{kWindowProtocol, {{memory, false}}});
  ASSERT_EQ(welcome.domains.size(), 1U);
  EXPECT_EQ(welcome.domains[0].domain, memory);
  EXPECT_FALSE(welcome.domains[0].measured);
  EXPECT_EQ(reported<Refused>(Refused{9, "too old"}).message, "too old");

  model::Measurement m{Energy::joules(5),
                       Energy::joules(1),
                       Energy::microjoules(3),
                       model::Provenance::kEstimated,
                       "sensor",
                       "method",
                       0.01,
                       Energy::joules(2)};
  FoundEnergies found{
      {{model::DomainId{0}, m}, {model::DomainId{1}, fail(Errc::kUnsupported, "not here")}},
      3,
      2,
      seconds{4},
      {}};
  const auto answer = reported<Answer>(Answer{11, found});
  EXPECT_EQ(answer.id, 11U);
  ASSERT_TRUE(answer.found);
  EXPECT_EQ(answer.found->count, 3U);
  EXPECT_EQ(answer.found->resolved_count, 2U);
  EXPECT_EQ(answer.found->length, seconds{4});
  const auto& energies = answer.found->energies;
  ASSERT_EQ(energies.size(), 2U);
  EXPECT_EQ(energies[0].energy->energy, m.energy);
  EXPECT_EQ(energies[0].energy->error, m.error);
  EXPECT_EQ(energies[0].energy->repeatability, m.repeatability);
  EXPECT_EQ(energies[0].energy->provenance, m.provenance);
  EXPECT_EQ(energies[0].energy->sensor, "sensor");
  EXPECT_EQ(energies[0].energy->method, "method");
  EXPECT_EQ(energies[0].energy->shift, 0.01);
  EXPECT_EQ(energies[0].energy->offset, m.offset);
  EXPECT_EQ(energies[1].domain, model::DomainId{1});
  EXPECT_EQ(energies[1].energy.error(), (Error{Errc::kUnsupported, "not here"}));
  const auto error = reported<Answer>(Answer{12, fail(Errc::kNotFound, "no window")});
  EXPECT_EQ(error.found.error(), (Error{Errc::kNotFound, "no window"}));
}

TEST(WindowProtocol, ASnapshotArrives) {
  EXPECT_EQ(sent<SnapshotQuestion>(SnapshotQuestion{5, HostTime{seconds{7}}, {}}).since,
            HostTime{seconds{7}});
  model::Snapshot snapshot{RealTime{seconds{1000}}, HostTime{seconds{1}}, seconds{9}, {}};
  snapshot.domains.reserve(2);
  auto& gpu = snapshot.domains.emplace_back();
  gpu.domain.id = model::DomainId{3};
  gpu.provenance = model::Provenance::kEstimated;
  gpu.energy = model::Measurement{
      Energy::joules(9), Energy::joules(1), Energy::joules(0.5), model::Provenance::kEstimated,
      "sensor",          "method"};
  gpu.energy_begin = HostTime{seconds{2}};
  gpu.energy_end = HostTime{seconds{3}};
  gpu.power = Power::watts(0.1);
  gpu.age = seconds{2};
  gpu.gauges = {{"temperature_celsius", 63.5}, {"not finite", NAN}};
  snapshot.domains.emplace_back().reason = "no readings";
  FoundEnergies found;
  found.snapshot = snapshot;
  const auto got = reported<Answer>(Answer{8, found}).found.value().snapshot.value();
  EXPECT_EQ(got.time, snapshot.time);
  EXPECT_EQ(got.begin, snapshot.begin);
  EXPECT_EQ(got.elapsed, snapshot.elapsed);
  ASSERT_EQ(got.domains.size(), 2U);
  const auto& d = got.domains[0];
  EXPECT_EQ(d.domain.id, gpu.domain.id);
  EXPECT_EQ(d.provenance, model::Provenance::kEstimated);
  ASSERT_TRUE(d.energy);
  EXPECT_EQ(d.energy->energy, Energy::joules(9));
  EXPECT_EQ(d.energy->provenance, model::Provenance::kEstimated);
  EXPECT_EQ(d.energy_end - d.energy_begin, seconds{1});
  EXPECT_EQ(d.power, Power::watts(0.1));
  EXPECT_EQ(d.age, seconds{2});
  EXPECT_THAT(d.gauges, ElementsAre(testing::Pair("temperature_celsius", 63.5)));
  EXPECT_FALSE(got.domains[1].energy);
  EXPECT_FALSE(got.domains[1].power);
  EXPECT_EQ(got.domains[1].reason, "no readings");
}

TEST(WindowProtocol, AnotherVersionsWelcomeIsRecognised) {
  const auto got =
      decode_tool_message(R"({"type":"welcome","protocol":999,"domains":{"all":"new"}})");
  ASSERT_TRUE(got);
  EXPECT_EQ(std::get<Welcome>(*got).protocol, 999);
}

TEST(WindowProtocol, NonsenseIsRefused) {
  for (const char* text :
       {"", "{", "null", "[]", "7", "\"energy\"", "{}", R"({"type":1})", R"({"type":"song"})",
        R"({"type":"hello"})", R"({"type":"hello","protocol":"1"})",
        R"({"type":"names","first":-1,"names":[]})", R"({"type":"names","first":0,"names":[1]})",
        R"({"type":"names","first":4294967295,"names":["a","b"]})",
        R"({"type":"names","first":0,"names":{"a":1}})", R"({"type":"lost","count":1e300})",
        R"({"type":"energy","id":1,"begin":0,"end":1.5,"deadline":2})",
        R"({"type":"energy","id":1,"begin":0,"end":99999999999999999999,"deadline":2})",
        R"({"type":"total","id":1,"name":4294967296,"deadline":0})"}) {
    const auto got = decode_program_message(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error().code, Errc::kCorrupt);
  }
  const auto welcome =
      fmt::format(R"({{"type":"welcome","protocol":{},"domains":[{{}}]}})", kWindowProtocol);
  for (const char* text :
       {"", "{}", welcome.c_str(), R"({"type":"answer","id":1})",
        R"({"type":"answer","id":1,"code":99,"message":""})",
        R"({"type":"answer","id":1,"energies":[{"domain":0}],"count":0,"resolved":0,)"
        R"("nanoseconds":0})"}) {
    EXPECT_FALSE(decode_tool_message(text)) << text;
  }
}

TEST(WindowProtocol, NoBytesDoHarm) {
  const std::string seeds[] = {
      encode(Hello{}), encode(Names{0, {"a", "b"}}), encode(EnergyQuestion{1, {}, {}, {}}),
      encode_windows(1, {}, std::vector<spans::WindowRecord>(3)),
      encode(Answer{1, FoundEnergies{{{model::DomainId{}, model::Measurement{}}}, 1, 1, {}, {}}})};
  std::mt19937 random(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = seeds[static_cast<std::size_t>(round) % std::size(seeds)];
    for (int n = round % 5; n >= 0; --n)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (round % 7 == 0) bytes.resize(random() % bytes.size());
    (void)decode_program_message(bytes);
    (void)decode_tool_message(bytes);
  }
}

}  // namespace
}  // namespace jouleprof::session
