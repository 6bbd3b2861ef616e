// The tracer's small parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/aggregate/aggregate_fixture.h"
#include "spans/cupti/cupti_api.h"
#include "spans/cupti/record_modes.h"
#include "spans/cupti/records.h"
#include "tests/support/sanitizers.h"

namespace jouleprof::cupti {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(CorrelationTable, TheLatestLaunchTakesThePlace) {
  CorrelationTable table;
  std::uint32_t scope = 0;
  EXPECT_FALSE(table.find(5, scope));
  EXPECT_FALSE(table.find(0, scope));
  table.put(5, 42);
  EXPECT_TRUE(table.find(5, scope));
  EXPECT_EQ(scope, 42U);
  table.put(5 + CorrelationTable::kPlaces, model::kNone);
  EXPECT_FALSE(table.find(5, scope));
  EXPECT_TRUE(table.find(5 + CorrelationTable::kPlaces, scope));
  EXPECT_EQ(scope, model::kNone);
  table.put(0xFFFFFFFF, 7);
  EXPECT_TRUE(table.find(0xFFFFFFFF, scope));
  EXPECT_FALSE(table.find(0xFFFFFFFF % CorrelationTable::kPlaces, scope));
}

TEST(BufferPool, RefusesWhenAllAreInUse) {
  BufferPool pool(2);
  auto* first = pool.take();
  auto* second = pool.take();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.refused(), 1U);
  EXPECT_EQ(pool.outside(), 2U);
  std::uint8_t foreign[8];
  pool.full(foreign, 8);
  pool.full(nullptr, 8);
  EXPECT_EQ(pool.completed(), 0U);
  pool.full(second, 8);
  pool.full(first, 0);  // empty: free at once
  EXPECT_EQ(pool.outside(), 0U);
  EXPECT_EQ(pool.take(), first);
  EXPECT_EQ(pool.next().data, second);
  EXPECT_EQ(pool.next().data, nullptr);
  pool.put_back(second);
  EXPECT_EQ(pool.take(), second);
}

TEST(KernelClasses, AreBounded) {
  MemorySink sink;
  KernelClasses classes(sink, {.shapes = 3, .names = 4});
  const auto of = [&](const char* name, std::uint32_t grid) {
    return classes.kernel(name, {grid, 1, 1}, {32, 1, 1});
  };
  const auto a1 = of("a", 1);
  EXPECT_NE(of("a", 2), a1);
  EXPECT_NE(of("b", 1), a1);
  EXPECT_EQ(of("a", 1), a1);
  const auto a_any = of("a", 3);
  EXPECT_EQ(sink.trace.classes[a_any].grid, (std::array<std::uint32_t, 3>{}));
  EXPECT_EQ(of("a", 4), a_any);
  EXPECT_NE(of("c", 1), a_any);
  EXPECT_NE(of("d", 1), of("c", 1));
  const auto other = of("e", 1);
  EXPECT_EQ(sink.trace.classes[other].name, "other kernels");
  EXPECT_EQ(of("f", 9), other);
  EXPECT_EQ(of(nullptr, 1), other);
}

TEST(KernelClasses, ANameAtAnOldAddressIsANewName) {
  MemorySink sink;
  KernelClasses classes(sink);
  char name[] = "first";
  const auto first = classes.kernel(name, {1, 1, 1}, {1, 1, 1});
  name[0] = 'F';
  classes.renew();
  const auto second = classes.kernel(name, {1, 1, 1}, {1, 1, 1});
  EXPECT_NE(first, second);
  EXPECT_EQ(sink.trace.classes[second].name, "First");
}

TEST(KernelClasses, CopiesAreOfAboutOneSize) {
  MemorySink sink;
  KernelClasses classes(sink);
  EXPECT_EQ(classes.copy(1, 4096), classes.copy(1, 8191));
  EXPECT_NE(classes.copy(1, 4096), classes.copy(1, 8192));
  EXPECT_NE(classes.copy(1, 4096), classes.copy(2, 4096));
  EXPECT_NE(classes.copy(1, 0), classes.copy(1, 1));
  EXPECT_EQ(sink.trace.classes[classes.copy(99, UINT64_MAX)].name, "memcpy");
  EXPECT_EQ(sink.trace.classes[classes.copy(99, UINT64_MAX)].bytes, std::uint64_t{1} << 63);
}

long seconds_until(const GraphSampler& sampler, HostTime now) {
  return std::lround(jouleprof::seconds(*sampler.next() - now));
}

TEST(GraphSampler, LooksAtNodesLessAndLess) {
  GraphSampler sampler;
  const HostTime begin{seconds{100}};
  EXPECT_FALSE(sampler.nodes(begin, {}));
  EXPECT_FALSE(sampler.next());
  GraphSampler::Seen seen{1, 0};
  EXPECT_FALSE(sampler.nodes(begin + seconds{5}, seen));
  EXPECT_EQ(sampler.next(), begin + seconds{5} + milliseconds{20});
  HostTime now = *sampler.next();
  EXPECT_TRUE(sampler.nodes(now, seen));
  ++seen.launches;
  now = *sampler.next();
  EXPECT_FALSE(sampler.nodes(now, seen));
  std::vector<long> waits;
  for (int i = 0; i != 9; ++i) {
    waits.push_back(seconds_until(sampler, now));
    now = *sampler.next();
    EXPECT_TRUE(sampler.nodes(now, seen));
    ++seen.launches;
    now = *sampler.next();
    EXPECT_FALSE(sampler.nodes(now, seen));
  }
  EXPECT_EQ(waits, (std::vector<long>{1, 2, 4, 8, 16, 32, 60, 60, 60}));
  // A graph that was not seen yet: soon.
  seen.unknown_graphs = 1;
  now += seconds{10};
  EXPECT_TRUE(sampler.nodes(now, seen));
  // There are no more launches, so it does not wait.
  now += milliseconds{100};
  EXPECT_FALSE(sampler.nodes(now, seen));
  EXPECT_EQ(sampler.next(), now + seconds{1});
}

TEST(GraphSampler, NeverTwiceWithinASecond) {
  GraphSampler sampler;
  GraphSampler::Seen seen{1, 0};
  HostTime now{seconds{100}};
  std::vector<HostTime> begins;
  bool before = false;
  for (int i = 0; i != 10'000; ++i) {
    now += milliseconds{1};
    ++seen.launches;
    ++seen.unknown_graphs;  // always something new
    const bool nodes = sampler.nodes(now, seen);
    if (nodes && !before) begins.push_back(now);
    before = nodes;
  }
  ASSERT_GE(begins.size(), 5U);
  for (std::size_t i = 1; i != begins.size(); ++i) EXPECT_GE(begins[i] - begins[i - 1], seconds{1});
}

TEST(StampConverter, FollowsTheWallClock) {
  const auto at = [](std::int64_t host, std::int64_t real) {
    return ClockPoint{HostTime{Duration{host}}, RealTime{Duration{real}}, {}};
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kEpoch = 1'700'000'000 * kSecond;
  StampConverter stamps(at(0, kEpoch));
  EXPECT_EQ(stamps.host(kEpoch + 5), 5);
  // The wall clock runs 100 ppm fast.
  stamps.point(at(kSecond, kEpoch + kSecond + 100'000));
  EXPECT_EQ(stamps.host(kEpoch + kSecond + 100'000), kSecond);
  EXPECT_NEAR(static_cast<double>(stamps.host(kEpoch)), 0, 20);
  EXPECT_NEAR(static_cast<double>(stamps.host(kEpoch + 500'050'000)), 0.5e9, 20);
  // It is set forward by a minute.
  StampConverter forward(at(0, kEpoch));
  forward.point(at(kSecond, kEpoch + 61 * kSecond));
  EXPECT_EQ(forward.host(kEpoch + kSecond / 2), kSecond / 2);
  EXPECT_EQ(forward.host(kEpoch + 61 * kSecond - 10), kSecond - 10);
  // And back.
  StampConverter back(at(0, kEpoch));
  back.point(at(kSecond, kEpoch - 59 * kSecond));
  EXPECT_EQ(back.host(kEpoch + kSecond / 2), kSecond / 2);
  EXPECT_EQ(back.host(kEpoch - 59 * kSecond - 10), kSecond - 10);
}

TEST(CuptiApi, TheOneThatIsLoadedComesFirst) {
  const auto found = cupti_candidates({"/usr/lib/libc.so.6", "/opt/x/libcupti.so.2025.3.0"});
  ASSERT_GE(found.size(), 3U);
  EXPECT_EQ(found[0], "/opt/x/libcupti.so.2025.3.0");
  EXPECT_EQ(found[1], "libcupti.so.13");
  EXPECT_EQ(found[2], "libcupti.so.12");
  EXPECT_EQ(cupti_candidates({"/opt/libcudart.so.12"})[0], "libcupti.so.12");
}

TEST(CuptiApi, IsFoundNextToTheLibrariesOfThePackage) {
  const auto root = std::filesystem::path(::testing::TempDir()) / "cupti_places";
  const auto packages = root / "lib/python3.12/site-packages";
  std::filesystem::remove_all(root);
  for (const char* folder : {"nvidia/cu13/lib", "nvidia/cuda_cupti/lib", "torch/lib"}) {
    std::filesystem::create_directories(packages / folder);
  }
  std::filesystem::copy_file("/proc/self/cmdline", packages / "nvidia/cu13/lib/libcupti.so.13");
  std::filesystem::copy_file("/proc/self/cmdline",
                             packages / "nvidia/cuda_cupti/lib/libcupti.so.12");
  const auto found = cupti_candidates({(packages / "torch/lib/libtorch_cuda.so").string()});
  const auto has = [&](const char* path) {
    return std::find(found.begin(), found.end(), (packages / path).string()) != found.end();
  };
  EXPECT_TRUE(has("nvidia/cu13/lib/libcupti.so.13"));
  EXPECT_TRUE(has("nvidia/cuda_cupti/lib/libcupti.so.12"));
}

TEST(CuptiApi, AnOtherLibraryIsNone) {
  const auto api = load_cupti({"/nowhere/libcupti.so.13", "libc.so.6"});
  ASSERT_FALSE(api);
  EXPECT_EQ(api.error().code, Errc::kNotFound);
}

TEST(CuptiApi, LoadsTheRealOne) {
#ifdef JOULEPROF_ADDRESS_SANITIZER
  GTEST_SKIP() << "it leaks memory of its own";
#endif
  const auto api = load_cupti(cupti_candidates(loaded_libraries()));
  if (!api) GTEST_SKIP() << api.error().message;
  EXPECT_NE(api->flush_all, nullptr);
  std::uint32_t version = 0;
  EXPECT_EQ(api->get_version(&version), abi::cupti::Result::kSuccess);
  EXPECT_GE(version, 19U);
  // An empty buffer ends with its known last value.
  std::uint8_t buffer[64] = {};
  abi::cupti::Activity* record = nullptr;
  EXPECT_EQ(api->next_record(buffer, 0, &record), abi::cupti::Result::kMaxLimitReached);
}

TEST(LoadedLibraries, NameThemselves) {
  EXPECT_TRUE(is_loaded(loaded_libraries(), "libc.so"));
  EXPECT_EQ(likely_profiler({"/lib/libc.so.6"}), "another profiler");
  EXPECT_NE(likely_profiler({"/x/libtorch_cuda.so"}).find("torch.profiler"), std::string::npos);
}

TEST(LoadedLibraries, OfXlaMakeCommandBuffersUnlessTheyAreTurnedOff) {
  const std::vector<std::string> jax{"/lib/libc.so.6",
                                     "/x/jax_plugins/xla_cuda13/xla_cuda_plugin.so"};
  EXPECT_TRUE(has_command_buffers(jax, ""));
  EXPECT_TRUE(has_command_buffers(jax, "--xla_gpu_enable_command_buffer=FUSION --xla_a=1"));
  EXPECT_FALSE(has_command_buffers(jax, "--xla_gpu_enable_command_buffer= --xla_a=1"));
  EXPECT_FALSE(has_command_buffers(jax, "--xla_a=1 --xla_gpu_enable_command_buffer="));
  EXPECT_FALSE(has_command_buffers({"/x/libtorch_cuda.so", "/x/libmyxla_.so"}, ""));
}

}  // namespace
}  // namespace jouleprof::cupti
