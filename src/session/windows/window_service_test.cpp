#include "session/windows/window_service.h"

#include <gmock/gmock.h>

#include "session/windows/energy_source.h"
#include "session/windows/name_table.h"

namespace jouleprof::session {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr HostTime kStart{hours{10}};

constexpr HostTime at(int ms) { return kStart + milliseconds{ms}; }

spans::WindowRecord window(int begin, int end, std::uint32_t name, std::uint32_t flags = 0) {
  return {at(begin).time_since_epoch().count(), at(end).time_since_epoch().count(), name, flags};
}

// A GPU of 100 W with power samples every 20 ms, and one that is not measured.
class WindowServiceTest : public testing::Test {
 protected:
  WindowServiceTest() : service_({{domain(0), true}, {domain(1), false}}, {sensor()}) {}

  static model::Domain domain(unsigned id) {
    model::Domain d;
    d.id = model::DomainId{id};
    d.device = "gpu" + std::to_string(id);
    return d;
  }
  static model::Sensor sensor() {
    model::Sensor s;
    s.kind = model::SensorKind::kPowerRing;
    s.name = "ring";
    s.traits.refresh = milliseconds{20};
    s.traits.window = milliseconds{20};
    return s;
  }
  // The sensors report [from, to).
  void measure(int from, int to) {
    model::Readings readings;
    for (int ms = from; ms < to; ms += 20) {
      readings.powers.push_back({model::SensorId{0}, at(ms), Power::watts(100)});
    }
    service_.append(readings);
  }
  void connect(WindowService::ClientId client, pid_t pid) {
    service_.add_client(client, pid, at(0));
    EXPECT_TRUE(service_.take(client, Hello{}, at(0)));
    ASSERT_THAT(service_.take_replies(), SizeIs(1));
    EXPECT_TRUE(service_.take_read_request());
  }
  Answer only_answer() {
    const auto replies = service_.take_replies();
    EXPECT_THAT(replies, SizeIs(1));
    return replies.empty() ? Answer{0, fail(Errc::kInternal, "")}
                           : std::get<Answer>(replies[0].message);
  }

  WindowService service_;
};

// A library has no number for further names; one that had would not grow the service either.
TEST_F(WindowServiceTest, NamesOfAProgramAreBoundedAndItIsSaid) {
  connect(1, 10);
  measure(0, 2000);
  constexpr auto kMost = static_cast<std::uint32_t>(NameTable::kMost);
  for (std::uint32_t first = 0; first < kMost; first += 100) {
    EXPECT_THAT(service_.take_warnings(), IsEmpty());
    std::vector<std::string> names;
    for (std::uint32_t i = first; i != first + 100; ++i) names.push_back("n" + std::to_string(i));
    ASSERT_TRUE(service_.take(1, Names{first, names}, at(2000)));
  }
  EXPECT_THAT(service_.take_warnings(),
              ElementsAre(AllOf(HasSubstr("process 10"), HasSubstr("10,000 names"))));
  ASSERT_TRUE(service_.take(1, Names{kMost, {"more"}}, at(2000)));
  ASSERT_TRUE(
      service_.take(1, Windows{10, {}, {window(0, 100, 5), window(0, 100, kMost)}}, at(2000)));
  const auto windows = service_.take_windows();
  ASSERT_THAT(windows, SizeIs(2));
  EXPECT_EQ(windows[0].name, "n5");
  EXPECT_EQ(windows[1].name, "");
  EXPECT_THAT(service_.take_warnings(), IsEmpty());
}

TEST_F(WindowServiceTest, AnEnergyIsPowerTimesTime) {
  connect(1, 10);
  measure(0, 2000);
  ASSERT_TRUE(service_.take(1, EnergyQuestion{5, at(500), at(1500), at(9000)}, at(2000)));
  service_.look(at(2000));
  const Answer answer = only_answer();
  EXPECT_EQ(answer.id, 5U);
  ASSERT_TRUE(answer.found);
  ASSERT_THAT(answer.found->energies, SizeIs(1));  // of what is measured
  const auto& energy = answer.found->energies[0];
  EXPECT_EQ(energy.domain, model::DomainId{0});
  ASSERT_TRUE(energy.energy) << energy.energy.error().message;
  EXPECT_NEAR(energy.energy->energy.joules(), 100, 0.5);
  EXPECT_GT(energy.energy->error, Energy{});
}

TEST_F(WindowServiceTest, AQuestionWaitsForTheSensors) {
  connect(1, 10);
  measure(0, 1000);
  ASSERT_TRUE(service_.take(1, EnergyQuestion{5, at(500), at(1500), at(9000)}, at(1500)));
  service_.look(at(1500));
  EXPECT_THAT(service_.take_replies(), IsEmpty());
  EXPECT_FALSE(service_.is_waiting());  // nothing can be known yet
  EXPECT_EQ(service_.next_look(), at(1530));
  service_.look(at(1530));
  EXPECT_TRUE(service_.is_waiting());
  EXPECT_TRUE(service_.take_read_request());
  service_.look(at(1540));
  EXPECT_FALSE(service_.take_read_request());  // it was just made
  measure(1000, 1600);
  service_.look(at(1600));
  EXPECT_NEAR(only_answer().found->energies[0].energy->energy.joules(), 100, 0.5);
  EXPECT_FALSE(service_.is_waiting());
}

TEST_F(WindowServiceTest, AtTheDeadlineItAnswersWithWhatIsKnown) {
  connect(1, 10);
  measure(0, 1000);
  ASSERT_TRUE(service_.take(1, EnergyQuestion{5, at(500), at(5000), at(1700)}, at(1600)));
  service_.look(at(1650));
  EXPECT_THAT(service_.take_replies(), IsEmpty());
  EXPECT_LE(service_.next_look(), at(1700));
  service_.look(at(1700));
  EXPECT_FALSE(only_answer().found->energies[0].energy);
}

TEST_F(WindowServiceTest, WindowsAreRecordedWithAllThatIsKnown) {
  connect(1, 10);
  connect(2, 20);
  ASSERT_TRUE(service_.take(1, Names{0, {"", "epoch"}}, at(0)));
  ASSERT_TRUE(service_.take(2, Names{0, {"", "step"}}, at(0)));
  ASSERT_TRUE(
      service_.take(1, Windows{11, {}, {window(1, 2, 1), window(2, 3, 0, kDeviceTime)}}, at(10)));
  ASSERT_TRUE(service_.take(2, Windows{22, {}, {window(3, 4, 1)}}, at(10)));
  EXPECT_THAT(service_.take_windows(),
              ElementsAre(model::Window{"epoch", at(1), at(2), 10, 11, false},
                          model::Window{"", at(2), at(3), 10, 11, true},
                          model::Window{"step", at(3), at(4), 20, 22, false}));
  EXPECT_THAT(service_.take_windows(), IsEmpty());
}

TEST_F(WindowServiceTest, ImpossibleWindowsAreLeftOut) {
  connect(1, 10);
  const spans::WindowRecord ancient{INT64_MIN, INT64_MAX, 0, 0};
  const spans::WindowRecord negative{-5, 5, 0, 0};
  ASSERT_TRUE(service_.take(
      1, Windows{11, {}, {ancient, negative, window(5, 4, 0), window(0, 60'000, 0)}}, at(10)));
  EXPECT_THAT(service_.take_windows(), IsEmpty());
}

TEST_F(WindowServiceTest, ATotalIsOfOneProgramsWindows) {
  connect(1, 10);
  connect(2, 20);
  measure(0, 3000);
  for (const int client : {1, 2}) {
    const auto id = static_cast<WindowService::ClientId>(client);
    ASSERT_TRUE(service_.take(id, Names{0, {"", "step"}}, at(0)));
    ASSERT_TRUE(service_.take(id, TotalQuestion{1, 1, at(9000)}, at(2000)));
    EXPECT_THAT(only_answer().found.error().message, HasSubstr("'step'"));
  }
  ASSERT_TRUE(
      service_.take(1, Windows{11, {}, {window(200, 700, 1), window(1000, 1500, 1)}}, at(2000)));
  ASSERT_TRUE(service_.take(2, Windows{22, {}, {window(300, 500, 1)}}, at(2000)));
  ASSERT_TRUE(service_.take(1, TotalQuestion{2, 1, at(9000)}, at(2500)));
  service_.look(at(2500));
  const Answer first = only_answer();
  EXPECT_EQ(first.found->count, 2U);
  EXPECT_EQ(first.found->resolved_count, 2U);
  EXPECT_EQ(first.found->length, milliseconds{1000});
  EXPECT_NEAR(first.found->energies[0].energy->energy.joules(), 100, 0.5);
  ASSERT_TRUE(service_.take(2, TotalQuestion{3, 1, at(9000)}, at(2500)));
  service_.look(at(2500));
  EXPECT_NEAR(only_answer().found->energies[0].energy->energy.joules(), 20, 0.5);
}

TEST_F(WindowServiceTest, AClientThatSendsNonsenseIsDropped) {
  service_.add_client(1, 10, at(0));
  EXPECT_FALSE(service_.take(1, EnergyQuestion{}, at(0)));  // before hello
  EXPECT_TRUE(service_.take(1, Hello{}, at(0)));
  EXPECT_FALSE(service_.take(1, Hello{}, at(0)));
  service_.remove_client(1);
  service_.take_replies();
  service_.add_client(2, 10, at(0));
  EXPECT_TRUE(service_.take(2, Hello{99}, at(0)));
  const auto replies = service_.take_replies();
  ASSERT_THAT(replies, SizeIs(1));
  EXPECT_THAT(std::get<Refused>(replies[0].message).message, HasSubstr("99"));
}

TEST_F(WindowServiceTest, StrangeStretchesHaveNoEnergy) {
  connect(1, 10);
  for (const auto& [begin, end] :
       {std::pair{HostTime::min() + seconds{1}, at(0)}, {at(0), HostTime::max()}, {at(5), at(4)}}) {
    ASSERT_TRUE(service_.take(1, EnergyQuestion{1, begin, end, HostTime::max()}, at(0)));
    EXPECT_EQ(only_answer().found.error().code, Errc::kInvalidArgument);
  }
}

TEST_F(WindowServiceTest, QuestionsOfOneWhoIsGoneAreForgotten) {
  connect(1, 10);
  ASSERT_TRUE(service_.take(1, EnergyQuestion{5, at(0), at(10), at(20)}, at(10)));
  service_.remove_client(1);
  service_.look(at(30));
  service_.answer_all();
  EXPECT_THAT(service_.take_replies(), IsEmpty());
  EXPECT_FALSE(service_.is_waiting());
  EXPECT_EQ(service_.next_look(), HostTime::max());
}

TEST_F(WindowServiceTest, AProgramThatLostWindowsIsNamed) {
  connect(1, 10);
  ASSERT_TRUE(service_.take(1, Lost{7}, at(0)));
  EXPECT_THAT(service_.take_warnings(), ElementsAre(HasSubstr("process 10 lost 7")));
}

}  // namespace
}  // namespace jouleprof::session
