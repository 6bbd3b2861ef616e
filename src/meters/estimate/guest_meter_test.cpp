#include <gtest/gtest.h>

#include "meters/estimate/estimate_meter.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;

class Guest : public testing::Test {
 protected:
  void write(std::int64_t cpu, Duration age = 0s) {
    tree.write("energy",
               model::guest_file_text({now.real - age,
                                       {{model::DomainKind::kCpu, Energy::microjoules(cpu)},
                                        {model::DomainKind::kDram, Energy::joules(7)}}}));
  }
  void pass(Duration time) {
    now.host += time;
    now.real += time;
  }
  std::unique_ptr<GuestMeter> open() {
    auto meter = GuestMeter::open({tree / "energy", [this] { return now; }});
    EXPECT_TRUE(meter) << meter.error().message;
    return meter ? std::move(*meter) : nullptr;
  }
  model::Readings read(GuestMeter& meter) {
    model::Readings out;
    EXPECT_EQ(meter.read(0, out), now.host + 500ms);
    return out;
  }

  TempTree tree;
  ClockPoint now{HostTime{1h}, RealTime{1'795'000'000s}, {}};
};

TEST_F(Guest, PowerIsTheMeanSinceTheReadingBefore) {
  write(1'000'000);
  const auto meter = open();
  ASSERT_TRUE(meter);
  ASSERT_EQ(meter->domains().size(), 2u);
  EXPECT_EQ(meter->domains()[0].kind, model::DomainKind::kCpu);
  EXPECT_EQ(meter->sensors()[0].provenance, model::Provenance::kEstimated);
  EXPECT_TRUE(read(*meter).empty());
  pass(2500ms);
  write(91'000'000, 500ms);
  const auto readings = read(*meter);
  ASSERT_EQ(readings.powers.size(), 2u);
  EXPECT_DOUBLE_EQ(readings.powers[0].power.watts(), 45);
  EXPECT_EQ(readings.powers[0].at, now.host - 500ms);
  EXPECT_EQ(readings.powers[1].power.watts(), 0);
  // The same file again is no reading.
  pass(500ms);
  EXPECT_TRUE(read(*meter).empty());
}

TEST_F(Guest, WhereTheHostBeganAnewThereIsNoReading) {
  write(1'000'000);
  const auto meter = open();
  ASSERT_TRUE(meter);
  pass(1s);
  write(5);
  EXPECT_EQ(read(*meter).powers.size(), 1u);  // of DRAM
  pass(1s);
  write(2'000'005);
  EXPECT_DOUBLE_EQ(read(*meter).powers.at(0).power.watts(), 2);
}

TEST_F(Guest, AFileThatIsOldOrAheadIsAFailure) {
  write(1);
  const auto meter = open();
  ASSERT_TRUE(meter);
  pass(61s);
  ASSERT_EQ(read(*meter).failures.size(), 2u);
  EXPECT_EQ(read(*meter).failures[0].error.code, Errc::kUnavailable);
  write(2, -3s);
  EXPECT_EQ(read(*meter).failures.size(), 2u);
  tree.write("energy", "");
  EXPECT_EQ(read(*meter).failures.at(0).error.code, Errc::kCorrupt);
  write(3);
  EXPECT_TRUE(read(*meter).failures.empty());
}

TEST(GuestFile, IsReadAsItWasWritten) {
  const model::GuestFile file{RealTime{1'795'000'000'123'456'789ns},
                              {{model::DomainKind::kCpu, Energy::microjoules(17)}}};
  EXPECT_EQ(*model::parse_guest_file(model::guest_file_text(file)), file);
  EXPECT_EQ(
      model::parse_guest_file(model::guest_file_text(file) + "gpu 5 measured\nnew 1\n")->energies,
      file.energies);
  for (const char* text : {"", "x", "jouleprof.guest/2\ntime 1\n", "jouleprof.guest/1\ncpu 1\n",
                           "jouleprof.guest/1\ntime -1\n", "jouleprof.guest/1\ntime 1\ncpu x\n",
                           "jouleprof.guest/1\ntime 1\ncpu 1\ncpu 2\n"}) {
    EXPECT_FALSE(model::parse_guest_file(text)) << text;
  }
  const TempTree tree{{"energy", "jouleprof.guest/1\ntime 1\n"}};
  EXPECT_EQ(GuestMeter::open({tree / "energy"}).error().code, Errc::kUnsupported);
  EXPECT_EQ(GuestMeter::open({tree / "none"}).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace jouleprof::meters
