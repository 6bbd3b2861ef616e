#include "meters/vendor/vendor_meter.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/temp_tree.h"

namespace jouleprof::meters {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace std::chrono_literals;

// A copy of the simulated library for each test: one that is loaded keeps its scenario.
class Vendor : public ::testing::Test {
 protected:
  VendorOptions simulate(const std::string& scenario) {
    ::setenv("JOULEPROF_VENDOR_SCENARIO", scenario.c_str(), 1);
    const auto library = folder / "library.so";
    std::filesystem::remove(library);
    std::filesystem::copy_file(JOULEPROF_VENDOR_SIM, library);
    return {library.string(), {}};
  }
  ~Vendor() override { ::unsetenv("JOULEPROF_VENDOR_SCENARIO"); }
  TempTree folder;
};

std::vector<std::string> devices(const Meter& meter) {
  std::vector<std::string> names;
  for (const auto& domain : meter.domains()) names.push_back(domain.device);
  return names;
}

double joules(Meter& meter, std::size_t index) {
  model::Readings out;
  meter.read(index, out);
  EXPECT_THAT(out.counters, SizeIs(1));
  return out.counters.empty() ? -1 : out.counters[0].total.joules();
}

TEST_F(Vendor, PartitionsOfASocketAreOneBoard) {
  std::string scenario;
  for (int function = 0; function < 8; ++function) {  // CPX: each repeats the socket's counter
    scenario += "amd 1 74a1 c0" + std::to_string(function) + " 0 3e80000\n";
  }
  scenario += "amd 2 74a0 2200 0 10000\n";  // MI300A: with CPU cores
  auto meter = VendorMeter::open_amd(simulate(scenario));
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_THAT(devices(**meter), ElementsAre("amdsmi-0", "amdsmi-1"));
  EXPECT_EQ((*meter)->domains()[0].kind, model::DomainKind::kGpu);
  EXPECT_EQ((*meter)->domains()[1].kind, model::DomainKind::kModule);
  EXPECT_EQ((*meter)->domains()[0].name, "AMD GPU at 0000:0c:00");
  ASSERT_THAT((*meter)->sensors(), SizeIs(2));
  EXPECT_EQ((*meter)->sensors()[0].provenance, model::Provenance::kSimulated);
  // 0x3e80000 counts are 1000 J by 2^-16 J, and 1002.7 J by the 15.3 uJ that the library says.
  EXPECT_DOUBLE_EQ(joules(**meter, 0), 1000);
  EXPECT_DOUBLE_EQ(joules(**meter, 1), 1);
  EXPECT_EQ((*meter)->probes()[0].period, 100ms);
}

TEST_F(Vendor, CountersWithoutAValueOrAVerifiedUnitAreAbsent) {
  auto meter = VendorMeter::open_amd(
      simulate("amd 1 740c c100 0 20000\namd 2 740c c600 0 0\namd 3 73bf 300 0 10df422\n"));
  ASSERT_TRUE(meter) << meter.error().message;
  ASSERT_THAT((*meter)->domains(), SizeIs(3));
  EXPECT_THAT((*meter)->domains()[0].unavailable_reason, IsEmpty());
  EXPECT_THAT((*meter)->domains()[1].unavailable_reason, HasSubstr("no value of this die"));
  EXPECT_THAT((*meter)->domains()[2].unavailable_reason, HasSubstr("0x73bf) it is not verified"));
  EXPECT_THAT((*meter)->sensors(), SizeIs(1));
  EXPECT_THAT((*meter)->missing(), SizeIs(2));
}

TEST_F(Vendor, LevelZerosCardOrItsPackageAsALowerBound) {
  auto meter = VendorMeter::open_intel(
      simulate("intel 300 150 120\nintel 800 0 90\nintel b00 -1 80\nintel c00 -1 -1\n"));
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_THAT(devices(**meter), ElementsAre("ze-0", "ze-1-package", "ze-2-package", "ze-3"));
  EXPECT_EQ((*meter)->domains()[0].name, "Intel GPU at 0000:03:00.0");
  EXPECT_THAT((*meter)->domains()[1].name, HasSubstr("a lower bound of the card"));
  EXPECT_THAT((*meter)->domains()[3].unavailable_reason, HasSubstr("no power domain"));
  ASSERT_THAT((*meter)->sensors(), SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) EXPECT_GE(joules(**meter, i), 1);
}

TEST_F(Vendor, AnIntegratedGpuIsInThePackageOfItsProcessor) {
  auto meter = VendorMeter::open_intel(simulate("intel 10 -1 30\nintel 300 150 120\n"));
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_THAT(devices(**meter), ElementsAre("ze-1"));
  ASSERT_THAT((*meter)->missing(), SizeIs(1));
  EXPECT_THAT((*meter)->missing()[0].error.message, HasSubstr("part of the processor"));
  EXPECT_GE(joules(**meter, 0), 1);
}

TEST_F(Vendor, WithoutLibraryOrBoardIsNotFound) {
  EXPECT_EQ(VendorMeter::open_amd({"/nonexistent/library.so", {}}).error().code, Errc::kNotFound);
  EXPECT_EQ(VendorMeter::open_amd(simulate("")).error().code, Errc::kNotFound);
  EXPECT_EQ(VendorMeter::open_intel(simulate("")).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace jouleprof::meters
