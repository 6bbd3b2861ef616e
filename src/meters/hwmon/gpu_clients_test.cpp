#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include "meters/hwmon/hwmon_meter.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters::hwmon {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

constexpr model::DomainId kFirst{3};
constexpr model::DomainId kSecond{5};
const HostTime kStart{100s};

// A file of a graphics driver that a process has open.
void open_file(const TempTree& tree, int pid, int fd, const std::string& info,
               const std::string& device = "/dev/dri/renderD128") {
  const std::string folder = "proc/" + std::to_string(pid) + "/";
  tree.write(folder + "fdinfo/" + std::to_string(fd), info);
  std::filesystem::create_directories(tree / (folder + "fd"));
  const auto link = tree / (folder + "fd/" + std::to_string(fd));
  std::filesystem::remove(link);
  std::filesystem::create_symlink(device, link);
}

std::string amd(const std::string& address, int client, long long gfx, long long compute,
                int kib = 0) {
  return "pos:\t0\nflags:\t02100002\ndrm-driver:\tamdgpu\ndrm-client-id:\t" +
         std::to_string(client) + "\ndrm-pdev:\t" + address + "\ndrm-memory-vram:\t" +
         std::to_string(kib) + " KiB\ndrm-memory-gtt: \t9000 KiB\ndrm-engine-gfx:\t" +
         std::to_string(gfx) + " ns\ndrm-engine-compute:\t" + std::to_string(compute) +
         " ns\ndrm-engine-dma:\t99999999999 ns\ndrm-engine-dec:\t99999999999 ns\n";
}

TEST(Fdinfo, DriversFields) {
  const auto client = parse_fdinfo(amd("0000:03:00.0", 17, 1000, 500, 2048));
  ASSERT_TRUE(client);
  EXPECT_EQ(client->bus_address, "0000:03:00.0");
  EXPECT_EQ(client->id, 17U);
  EXPECT_EQ(client->busy, 1500U);  // copies and video are other units
  EXPECT_EQ(client->memory_bytes, 2048U * 1024);
  // What is resident goes before what is allotted.
  const auto intel = parse_fdinfo(
      "drm-driver:\ti915\ndrm-client-id:\t1\ndrm-pdev:\t0000:08:00.0\ndrm-total-local0:\t9 MiB\n"
      "drm-resident-local0:\t5 MiB\ndrm-engine-render:\t800 ns\ndrm-engine-compute:\t400 ns\n"
      "drm-engine-capacity-compute:\t4\ndrm-engine-video:\t7 ns\n");
  ASSERT_TRUE(intel);
  EXPECT_EQ(intel->busy, 900U);
  EXPECT_EQ(intel->memory_bytes, 5U << 20);
  const auto xe = parse_fdinfo(
      "drm-driver:\txe\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\ndrm-cycles-rcs:\t40\n"
      "drm-total-cycles-rcs:\t1000\ndrm-cycles-bcs:\t900\ndrm-total-cycles-bcs:\t1000\n");
  ASSERT_TRUE(xe);
  EXPECT_EQ(xe->busy, 40U);
  EXPECT_EQ(xe->total_cycles, 1000U);
  for (const char* other : {"", "pos:\t0\n", "drm-driver:\tamdgpu\ndrm-client-id:\t4\n",
                            "drm-pdev:\t0000:03:00.0\n", "drm-client-id:\tx\ndrm-pdev:\ty\n"}) {
    EXPECT_FALSE(parse_fdinfo(other)) << other;
  }
}

TEST(GpuClients, SharesOfTheTimeSinceTheReadBefore) {
  TempTree tree;
  const auto write = [&](long long first, long long second) {
    open_file(tree, 40, 3, amd("0000:03:00.0", 1, first, 0, 1024));
    // The same client through another file, and as a child inherits it: counted once.
    open_file(tree, 40, 4, amd("0000:03:00.0", 1, first, 0, 1024));
    open_file(tree, 41, 3, amd("0000:03:00.0", 1, first, 0, 1024));
    open_file(tree, 50, 9, amd("0000:03:00.0", 2, 0, second, 512));
    open_file(tree, 50, 10, amd("0000:83:00.0", 3, 0, 0));
    open_file(tree, 50, 11, amd("0000:ff:00.0", 4, second, 0));  // no board of ours
    open_file(tree, 60, 5, amd("0000:03:00.0", 9, 7, 0), "/dev/null");
  };
  GpuClients clients(tree.root(), {{"0000:03:00.0", kFirst}, {"0000:83:00.0", kSecond}});
  EXPECT_FALSE(clients.is_possible());  // without /proc
  write(5'000'000'000, 1'000'000'000);
  ASSERT_TRUE(clients.is_possible());
  auto uses = clients.read(kStart);
  ASSERT_THAT(uses, SizeIs(3));
  EXPECT_EQ(uses[0].pid, 40);
  EXPECT_EQ(uses[0].domain, kFirst);
  EXPECT_EQ(uses[0].memory_bytes, 1024U * 1024);
  EXPECT_EQ(uses[2].domain, kSecond);
  for (const auto& use : uses) EXPECT_FALSE(use.compute_utilisation);

  write(5'500'000'000, 2'500'000'000);
  uses = clients.read(kStart + 2s);
  ASSERT_THAT(uses, SizeIs(3));
  EXPECT_DOUBLE_EQ(uses[0].compute_utilisation.value_or(-1), 0.25);
  EXPECT_DOUBLE_EQ(uses[1].compute_utilisation.value_or(-1), 0.75);
  EXPECT_DOUBLE_EQ(uses[2].compute_utilisation.value_or(-1), 0);
  // One that began since has all of its time in it.
  open_file(tree, 70, 3, amd("0000:03:00.0", 12, 100'000'000, 0));
  std::filesystem::remove_all(tree / "proc/50");
  uses = clients.read(kStart + 3s);
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_DOUBLE_EQ(uses[0].compute_utilisation.value_or(-1), 0);
  EXPECT_EQ(uses[1].pid, 70);
  EXPECT_DOUBLE_EQ(uses[1].compute_utilisation.value_or(-1), 0.1);
}

TEST(GpuClients, RocmsQueuesAreNotTimed) {
  TempTree tree;
  tree.write("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
  tree.write("sys/class/kfd/kfd/topology/nodes/1/gpu_id", "4711\n");
  tree.write("sys/class/kfd/kfd/topology/nodes/1/properties",
             "cpu_cores_count 0\nlocation_id 33536\ndomain 0\n");  // 0x8300
  tree.write("sys/class/kfd/kfd/proc/88/vram_4711", "1073741824\n");
  tree.write("sys/class/kfd/kfd/proc/99/vram_4711", "0\n");
  open_file(tree, 88, 3, amd("0000:83:00.0", 1, 0, 0));
  open_file(tree, 99, 3, amd("0000:83:00.0", 2, 0, 0));
  GpuClients clients(tree.root(), {{"0000:83:00.0", kSecond}});
  clients.read(kStart);
  const auto uses = clients.read(kStart + 1s);
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_EQ(uses[0].pid, 88);
  EXPECT_FALSE(uses[0].compute_utilisation);  // not zero
  EXPECT_EQ(uses[0].memory_bytes, 1073741824U);
  EXPECT_EQ(uses[1].compute_utilisation, 0.0);
}

TEST(GpuClients, FilesThatCannotBeReadAreOtherUsers) {
  TempTree tree;
  open_file(tree, 40, 3, amd("0000:03:00.0", 1, 0, 0));
  std::filesystem::create_directories(tree / "proc/41/fd");
  std::filesystem::permissions(tree / "proc/41/fd", std::filesystem::perms::none);
  std::filesystem::permissions(tree.root(), std::filesystem::perms{0755});
  GpuClients clients(tree.root(), {{"0000:03:00.0", kFirst}});
  const bool is_root = ::geteuid() == 0;  // who reads every file
  ASSERT_TRUE(!is_root || ::seteuid(65534) == 0);
  const auto uses = clients.read(kStart);
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  std::filesystem::permissions(tree / "proc/41/fd", std::filesystem::perms::owner_all);
  ASSERT_THAT(uses, SizeIs(2));
  EXPECT_EQ(uses[1].pid, 0);
  EXPECT_FALSE(uses[1].compute_utilisation);
}

TEST(GpuClients, CyclesAreOfAllCyclesOfTheirEngine) {
  TempTree tree;
  const auto write = [&](int busy, int total) {
    open_file(tree, 7, 3,
              "drm-driver:\txe\ndrm-client-id:\t1\ndrm-pdev:\t0000:03:00.0\ndrm-cycles-ccs:\t" +
                  std::to_string(busy) + "\ndrm-total-cycles-ccs:\t" + std::to_string(total) +
                  "\n");
  };
  GpuClients clients(tree.root(), {{"0000:03:00.0", kFirst}});
  write(100, 1000);
  clients.read(kStart);
  write(700, 2000);
  EXPECT_EQ(clients.read(kStart + 5s).at(0).compute_utilisation, 0.6);
  write(0, 100);  // the board was reset
  EXPECT_FALSE(clients.read(kStart + 6s).at(0).compute_utilisation);
  EXPECT_THAT(GpuClients(tree / "nothing", {{"0000:03:00.0", kFirst}}).read(kStart), IsEmpty());
}

}  // namespace
}  // namespace jouleprof::meters::hwmon
