#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "meters/hwmon/board.h"

namespace jouleprof::meters::hwmon {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using ::testing::HasSubstr;

// The kernel's structures as a C compiler lays them out, up to the last field that is read: the
// offsets that the reader uses are checked against them.
struct Header {
  u16 size;
  u8 format, content;
};
struct V1_0 {
  Header header;
  u64 system_clock;
  u16 edge, hotspot, mem, vrgfx, vrsoc, vrmem, gfx, umc, mm, power;
  u32 energy;
  u16 average[7], gfxclk, socclk, uclk, rest[4];
  u32 throttle;
  u16 fan;
  u8 width, speed;
};
struct V1_3 {
  Header header;
  u16 edge, hotspot, mem, vrgfx, vrsoc, vrmem, gfx, umc, mm, power;
  u64 energy, system_clock;
  u16 average[7], gfxclk, socclk, uclk, rest[4];
  u32 throttle;
  u16 fan, width, speed, padding;
  u32 gfx_acc, mem_acc;
  u16 hbm[4];
  u64 firmware;
  u16 voltages[3], padding1;
  u64 throttle2;
};
struct V1_4 {
  Header header;
  u16 hotspot, mem, vrsoc, power, gfx, umc, vcn[4];
  u64 energy, system_clock;
  u32 throttle, lock;
  u16 links[4];
  u32 gfx_acc, mem_acc;
  u64 pcie[5], xgmi[16], firmware;
  u16 gfxclk[8], socclk[4], vclk[4], dclk[4], uclk, padding;
};
struct V1_5 {
  Header header;
  u16 hotspot, mem, vrsoc, power, gfx, umc, vcn[4], jpeg[32];
  u64 energy, system_clock;
  u32 throttle, lock;
  u16 links[4];
  u32 gfx_acc, mem_acc;
  u64 pcie[5];
  u32 nak[2];
  u64 xgmi[16], firmware;
  u16 gfxclk[8], socclk[4], vclk[4], dclk[4], uclk, padding;
};
struct V1_6 {
  Header header;
  u16 hotspot, mem, vrsoc, power, gfx, umc;
  u64 energy, system_clock;
  u32 accumulation[6], lock;
  u16 links[4];
  u32 gfx_acc, mem_acc;
  u64 pcie[5];
  u32 nak[2];
  u64 xgmi[16], firmware;
  u16 gfxclk[8], socclk[4], vclk[4], dclk[4], uclk, partitions;
};
struct V1_8 {
  Header header;
  u16 hotspot, mem, vrsoc, power, gfx, umc;
  u64 bandwidth, energy, system_clock;
  u32 accumulation[6], lock;
  u16 links[4];
  u32 gfx_acc, mem_acc;
  u64 pcie[5];
  u32 nak[2];
  u64 xgmi[16];
  u16 link_status[8], padding;
  u64 firmware;
  u16 gfxclk[8], socclk[4], vclk[4], dclk[4], uclk, partitions;
};
struct V2_0 {
  Header header;
  u64 system_clock;
  u16 temperatures[12], gfx, mm, power, parts[11], average[6], gfxclk, socclk, uclk, rest[13];
};
struct V2_1 {
  Header header;
  u16 temperatures[12], gfx, mm;
  u64 system_clock;
  u16 power, parts[11], average[6], gfxclk, socclk, uclk, rest[13];
};
struct V3_0 {
  Header header;
  u16 gfx_temperature, soc_temperature, cores[16], skin, gfx, vcn, ipu[8], c0[16], dram[4];
  u64 system_clock;
  u32 socket_power;
  u16 ipu_power;
  u32 apu_power, gfx_power, dgpu_power, all_core_power;
  u16 core_power[16], sys_power, limits[2], gfxclk, socclk, vpeclk, ipuclk, fclk, vclk, uclk, mpipu;
  u16 coreclk[16], maxima[2];
  u32 residency[7], alpha;
};

template <typename T>
T empty(u8 format, u8 content) {
  T table;
  std::memset(static_cast<void*>(&table), 0xff, sizeof table);
  table.header = {sizeof table, format, content};
  return table;
}

template <typename T>
std::string bytes(const T& table) {
  return std::string(reinterpret_cast<const char*>(&table), sizeof table);
}

template <typename T>
GpuMetrics parse(const T& table) {
  auto metrics = parse_gpu_metrics(bytes(table));
  if (!metrics) {
    ADD_FAILURE() << metrics.error().message;
    return {};
  }
  return *metrics;
}

// Sets each field that all these versions have, each to another value.
template <typename T>
void fill(T& t) {
  t.power = 745;
  t.energy = 0x12345678;
  t.system_clock = 987654321;
  t.mem = 61;
  t.hotspot = 72;
  t.gfx = 93;
  t.umc = 44;
  t.uclk = 1300;
}

void expect_filled(const GpuMetrics& m, double gfx_clock) {
  EXPECT_EQ(m.socket_power, Power::watts(745)) << m.version();
  EXPECT_EQ(m.energy_count, 0x12345678U) << m.version();
  EXPECT_EQ(m.system_clock, 987654321U) << m.version();
  EXPECT_EQ(m.memory_temperature_celsius, 61) << m.version();
  EXPECT_EQ(m.temperature_celsius, 72) << m.version();
  EXPECT_EQ(m.gfx_utilisation, 0.93) << m.version();
  EXPECT_EQ(m.memory_utilisation, 0.44) << m.version();
  EXPECT_EQ(m.memory_clock_hertz, 1.3e9) << m.version();
  EXPECT_EQ(m.gfx_clock_hertz, gfx_clock) << m.version();
}

TEST(GpuMetrics, BoardsBeforeInstinctMi300) {
  auto oldest = empty<V1_0>(1, 0);
  fill(oldest);
  oldest.gfxclk = 1802;
  expect_filled(parse(oldest), 1.802e9);
  for (const u8 content : {u8{1}, u8{2}, u8{3}}) {
    auto table = empty<V1_3>(1, content);
    fill(table);
    table.gfxclk = 2105;
    table.firmware = 55;
    const auto m = parse(table);
    expect_filled(m, 2.105e9);
    EXPECT_TRUE(m.power_is_average);
    EXPECT_EQ(m.count_unit, CountUnit::kUndocumented);
    EXPECT_EQ(m.count_bits, 32);
    EXPECT_EQ(m.firmware_time, content == 1 ? std::nullopt : std::optional<u64>(55));
    EXPECT_FALSE(m.is_apu());
    table.edge = 50;  // what hwmon shows first
    EXPECT_EQ(parse(table).temperature_celsius, 50);
    table.gfxclk = 0xffff;
    table.average[0] = 500;
    EXPECT_EQ(parse(table).gfx_clock_hertz, 5e8);
  }
}

TEST(GpuMetrics, InstinctMi300CountsInTwoToMinus16Joules) {
  const auto check = [](auto table) {
    fill(table);
    table.firmware = 77;
    table.gfxclk[0] = 1200;
    table.gfxclk[3] = 2100;
    const auto m = parse(table);
    expect_filled(m, 2.1e9);
    EXPECT_FALSE(m.power_is_average);
    EXPECT_EQ(m.count_unit, CountUnit::kTwoToMinus16);
    EXPECT_EQ(m.count_bits, 64);
    EXPECT_EQ(m.firmware_time, 77U);
    EXPECT_EQ(energy_of_counts(*m.energy_count, m.count_unit),
              Energy::microjoules(0x12345678LL * 15625 / 1024));
  };
  check(empty<V1_4>(1, 4));
  check(empty<V1_5>(1, 5));
  check(empty<V1_6>(1, 6));
  check(empty<V1_8>(1, 7));
  check(empty<V1_8>(1, 8));
}

TEST(GpuMetrics, OfAnApuOnlyPowersWithAUnit) {
  auto renoir = empty<V2_0>(2, 0);
  renoir.power = 12;
  renoir.system_clock = 5;
  renoir.gfxclk = 1500;
  EXPECT_EQ(parse(renoir).socket_power, std::nullopt);
  EXPECT_EQ(parse(renoir).gfx_clock_hertz, 1.5e9);
  for (const u8 content : {u8{1}, u8{2}, u8{3}, u8{4}}) {
    auto table = empty<V2_1>(2, content);
    table.power = 3401;
    table.system_clock = 99;
    table.uclk = 800;
    const auto m = parse(table);
    EXPECT_EQ(m.socket_power,
              content == 4 ? std::optional(Power::watts(3401 * 1e-3)) : std::nullopt);
    EXPECT_EQ(m.system_clock, 99U);
    EXPECT_EQ(m.memory_clock_hertz, 8e8);
    EXPECT_EQ(m.energy_count, std::nullopt);
    EXPECT_TRUE(m.is_apu());
  }
  auto strix = empty<V3_0>(3, 0);
  strix.apu_power = 70123;  // more than 16 bits hold
  strix.socket_power = 150000;
  strix.gfx = 31;
  strix.gfxclk = 2800;
  const auto m = parse(strix);
  EXPECT_EQ(m.socket_power, Power::watts(70.123));
  EXPECT_EQ(m.gfx_utilisation, 0.31);
  EXPECT_EQ(m.gfx_clock_hertz, 2.8e9);
  EXPECT_EQ(sizeof(V3_0), 264U);
}

TEST(GpuMetrics, AllBitsSetIsAbsent) {
  const auto expect_nothing = [](const GpuMetrics& m) {
    EXPECT_EQ(m.socket_power, std::nullopt) << m.version();
    EXPECT_EQ(m.energy_count, std::nullopt) << m.version();
    EXPECT_EQ(m.system_clock, std::nullopt) << m.version();
    EXPECT_EQ(m.firmware_time, std::nullopt) << m.version();
    EXPECT_EQ(m.temperature_celsius, std::nullopt) << m.version();
    EXPECT_EQ(m.gfx_utilisation, std::nullopt) << m.version();
    EXPECT_EQ(m.gfx_clock_hertz, std::nullopt) << m.version();
  };
  expect_nothing(parse(empty<V1_0>(1, 0)));
  expect_nothing(parse(empty<V1_3>(1, 3)));
  expect_nothing(parse(empty<V1_8>(1, 8)));
  expect_nothing(parse(empty<V2_1>(2, 4)));
  expect_nothing(parse(empty<V3_0>(3, 0)));
}

TEST(GpuMetrics, UnknownAndShortTablesAreErrors) {
  auto next = empty<V1_8>(1, 9);
  auto parsed = parse_gpu_metrics(bytes(next));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Errc::kUnsupported);
  EXPECT_THAT(parsed.error().message, HasSubstr("v1.9"));
  const std::string whole = bytes(empty<V1_6>(1, 6));
  for (std::size_t length = 0; length < 306; length += 17) {
    parsed = parse_gpu_metrics(whole.substr(0, length));
    ASSERT_FALSE(parsed) << length;
    EXPECT_EQ(parsed.error().code, Errc::kCorrupt);
  }
  auto lies = empty<V1_6>(1, 6);
  lies.header.size = 40;
  EXPECT_FALSE(parse_gpu_metrics(bytes(lies)));
  // Behind the structure /sys may show more.
  EXPECT_TRUE(parse_gpu_metrics(whole + std::string(3000, '\0')));
}

TEST(GpuMetrics, CountsBecomeWholeMicrojoules) {
  EXPECT_EQ(energy_of_counts(65536, CountUnit::kTwoToMinus16), Energy::microjoules(1'000'000));
  EXPECT_EQ(energy_of_counts(1, CountUnit::kTwoToMinus16), Energy::microjoules(15));
  EXPECT_EQ(energy_of_counts(65536ULL * 1'000'000'000, CountUnit::kTwoToMinus16),
            Energy::microjoules(1'000'000'000'000'000));
  EXPECT_EQ(energy_of_counts(std::numeric_limits<u64>::max() - 1, CountUnit::kTwoToMinus16),
            std::nullopt);
  EXPECT_EQ(energy_of_counts(65536, CountUnit::kUndocumented), std::nullopt);
}

}  // namespace
}  // namespace jouleprof::meters::hwmon
