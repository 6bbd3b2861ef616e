#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "meters/control/held_boards.h"
#include "meters/control/restore.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters::control {
namespace {

using ::testing::HasSubstr;

constexpr const char* kTwoBoards = R"({"devices": [
    {"generation": "hopper", "uuid": "GPU-aaaaaaaa", "power": {"shape": "constant", "watts": 650}},
    {"generation": "hopper", "uuid": "GPU-bbbbbbbb", "power": {"shape": "constant", "watts": 650},
     "power_limit": SECOND}]})";

// Simulated boards whose settings all processes share.
class Control : public ::testing::Test {
 protected:
  void simulate(const std::string& second = R"({"minimum_watts": 250})") {
    std::string scenario = kTwoBoards;
    scenario.replace(scenario.find("SECOND"), 6, second);
    std::ofstream(path("scenario.json")) << scenario;
    // The library keeps a session as long as these variables are the same.
    ::setenv("JOULEPROF_NVML_SCENARIO", path("scenario.json").c_str(), 1);
    ::setenv("JOULEPROF_NVML_STATE", path("state").c_str(), 1);
  }
  std::string path(const char* name) const { return (tree_ / name).string(); }

  HoldOptions options(Knob knob = Knob::kPowerLimit) const {
    HoldOptions options;
    options.knob = knob;
    options.library = JOULEPROF_NVML_SIM_LIBRARY;
    options.folder = path("control");
    options.guard = {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                     "--gtest_filter=GuardProcess.DISABLED_Runs", "--gtest_brief=1"};
    return options;
  }
  Board board(unsigned index) const {
    if (!nvml_) nvml_.emplace(*NvmlSession::open(JOULEPROF_NVML_SIM_LIBRARY));
    return nvml_->boards({})->at(index);
  }
  double limit(unsigned index) const { return **board(index).requested(Knob::kPowerLimit); }
  std::size_t records() const { return records_in(path("control")).size(); }
  std::string state() const { return read_file(path("state")).value_or(""); }

  const TempTree tree_;
  mutable std::optional<NvmlSession>
      nvml_;  // ends with the test: the next one has its own scenario
};

// Not a test: the guard of the other tests, whose arguments are the last words of the command.
TEST(GuardProcess, DISABLED_Runs) {
  std::vector<std::string> words;
  const auto line = *read_file("/proc/self/cmdline");
  for (const auto word : split(line, '\0')) words.emplace_back(word);
  words.pop_back();
  const auto first = std::find_if(words.begin() + 1, words.end(),
                                  [](const auto& word) { return !word.starts_with("--"); });
  if (words.end() - first < 3) GTEST_SKIP() << "runs as a guard only";
  ::_exit(run_guard(static_cast<int>(*parse_integer(*first)), *(first + 1),
                    {first + 2, words.end()}, JOULEPROF_NVML_SIM_LIBRARY));
}

void wait_until(const std::function<bool()>& holds) {
  for (int i = 0; i < 3000 && !holds(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(holds());
}

TEST_F(Control, SetsReadsBackAndRestoresWhatItFound) {
  simulate();
  ASSERT_TRUE(board(0).set(Knob::kPowerLimit, 520));  // of the administrator
  {
    const auto held = HeldBoards::take(options());
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_EQ((*held)->range().least, 250);  // of both boards
    EXPECT_EQ((*held)->range().most, 700);
    EXPECT_EQ((*held)->found(), std::nullopt);  // 520 and 700
    EXPECT_EQ(records(), 0U);
    const auto set = (*held)->apply(300);
    ASSERT_TRUE(set) << set.error().message;
    EXPECT_EQ(set->at(1).requested, 300);
    EXPECT_EQ(set->at(1).enforced_watts, 300);
    EXPECT_EQ(records(), 2U);
    ASSERT_TRUE((*held)->apply(400));
    EXPECT_EQ(limit(0), 400);
    ASSERT_TRUE((*held)->restore());
    EXPECT_EQ(limit(0), 520);
    EXPECT_EQ(limit(1), 700);
    EXPECT_EQ(records(), 0U);
    ASSERT_TRUE((*held)->apply(350));
  }
  EXPECT_EQ(limit(0), 520);  // by the destructor
  EXPECT_EQ(records(), 0U);
}

TEST_F(Control, TheRecordIsWrittenBeforeTheChange) {
  simulate();
  const auto held = HeldBoards::take(options());
  ASSERT_TRUE(held);
  ASSERT_TRUE((*held)->apply(300));
  const auto first = load(record_path(path("control"), "GPU-aaaaaaaa"));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->before, 700);
  EXPECT_EQ(first->ours, std::vector<double>{300});
  ASSERT_TRUE((*held)->apply(400));
  // 300 and 400: the tool can die before or after the change.
  EXPECT_EQ(load(record_path(path("control"), "GPU-aaaaaaaa"))->ours,
            (std::vector<double>{300, 400}));
}

TEST_F(Control, NothingChangesWhereTheRecordCannotBeWritten) {
  simulate();
  const auto held = HeldBoards::take(options());
  ASSERT_TRUE(held);
  const auto before = state();
  std::filesystem::create_directory(path("control") + "/GPU-aaaaaaaa.restore.json.new");
  const auto refused = (*held)->apply(300);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("GPU-aaaaaaaa.restore.json.new"));
  EXPECT_EQ(state(), before);
}

TEST_F(Control, ABoardThatRefusesRestoresTheOthers) {
  simulate(R"({"settable": false})");
  const auto held = HeldBoards::take(options());
  ASSERT_TRUE(held);
  const auto refused = (*held)->apply(300);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kPermissionDenied);
  EXPECT_THAT(refused.error().message,
              HasSubstr("What was set before is restored. Ask the administrator"));
  EXPECT_EQ(limit(0), 700);
  EXPECT_EQ(records(), 0U);
}

TEST_F(Control, OneOwnerAtATime) {
  simulate();
  auto held = HeldBoards::take(options());
  ASSERT_TRUE(held);
  const auto second = HeldBoards::take(options());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message, HasSubstr("another sweep or apply owns gpu0"));
  held->reset();
  EXPECT_TRUE(HeldBoards::take(options()));
}

TEST_F(Control, ASettingOfSomeoneElseIsLeft) {
  simulate();
  const auto held = HeldBoards::take(options());
  ASSERT_TRUE(held);
  ASSERT_TRUE((*held)->apply(300));
  ASSERT_TRUE(board(0).set(Knob::kPowerLimit, 600));  // of another program
  EXPECT_EQ((*held)->read_back().front().requested, 600);
  const auto restored = (*held)->restore();
  ASSERT_FALSE(restored);
  EXPECT_THAT(restored.error().message, HasSubstr("neither what a sweep found (700 W) nor"));
  EXPECT_EQ(limit(0), 600);
  EXPECT_EQ(limit(1), 700);
  EXPECT_TRUE((*held)->restore());  // said once
  EXPECT_EQ(records(), 0U);
}

TEST_F(Control, WhatTheDriverMadeOfALimitIsOurs) {
  simulate(R"({"minimum_watts": 250, "clamp_watts": 350, "step_watts": 7})");
  ASSERT_TRUE(board(1).set(Knob::kPowerLimit, 630));
  const auto held = HeldBoards::take(options());
  ASSERT_TRUE(held);
  const auto set = (*held)->apply(300);
  ASSERT_TRUE(set);
  EXPECT_EQ(set->at(1).requested, 350);
  const auto record = load(record_path(path("control"), "GPU-bbbbbbbb"));
  EXPECT_EQ(record->ours, (std::vector<double>{300, 350}));
  EXPECT_FALSE(record->pending);
  ASSERT_TRUE((*held)->apply(400));
  EXPECT_EQ(limit(1), 399);
  ASSERT_TRUE((*held)->restore());
  EXPECT_EQ(limit(1), 630);
}

// The owner died after the change and before it had read what became of it.
TEST_F(Control, AfterADeathInTheMiddleOfAChangeEachValueIsOurs) {
  simulate();
  ASSERT_TRUE(board(0).set(Knob::kPowerLimit, 350));
  RestoreRecord record{"GPU-aaaaaaaa", "gpu0", Knob::kPowerLimit, 520, {300}, boot_id(), true};
  ASSERT_TRUE(save(path("control"), record));
  ASSERT_TRUE(restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY).at(0).outcome);
  EXPECT_EQ(limit(0), 520);
  // Without a change in progress it is another program's: named until someone settles it.
  ASSERT_TRUE(board(0).set(Knob::kPowerLimit, 350));
  record.pending = false;
  ASSERT_TRUE(save(path("control"), record));
  for (const auto what : {Leftovers::kRestore, Leftovers::kRestore, Leftovers::kSettle}) {
    EXPECT_EQ(records(), 1U);
    EXPECT_FALSE(
        restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY, what).at(0).outcome);
  }
  EXPECT_EQ(limit(0), 350);
  EXPECT_EQ(records(), 0U);
}

TEST_F(Control, TheGuardRestoresWhenTheOwnerIsKilled) {
  simulate();
  const pid_t owner = ::fork();
  if (owner == 0) {  // the library is first used here
    const auto held = HeldBoards::take(options());
    const bool set = held && (*held)->apply(300);
    std::ofstream(path("ready")) << (set ? "yes" : "no");
    ::pause();
  }
  wait_until([&] { return read_file(path("ready")).value_or("") == "yes"; });
  ::kill(owner, SIGKILL);
  ::waitpid(owner, nullptr, 0);
  wait_until([&] { return records() == 0; });
  EXPECT_EQ(limit(0), 700);
  EXPECT_EQ(limit(1), 700);
}

TEST_F(Control, TheOwnerRestoresWhenTheGuardIsKilled) {
  simulate();
  const auto held = HeldBoards::take(options());
  ASSERT_TRUE(held);
  ASSERT_TRUE((*held)->apply(300));
  ASSERT_EQ(::kill((*held)->guard_pid(), SIGKILL), 0);
  wait_until([&] { return (*held)->lost().has_value(); });
  EXPECT_EQ(limit(0), 700);
  EXPECT_EQ(records(), 0U);
  const auto refused = (*held)->apply(400);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("guards the power limit was killed"));
}

TEST_F(Control, TheNextStartRestoresWhatAllDeathsLeft) {
  simulate();
  ASSERT_TRUE(board(0).set(Knob::kPowerLimit, 300));
  const RestoreRecord record{"GPU-aaaaaaaa", "gpu0", Knob::kPowerLimit, 520, {250, 300}, boot_id()};
  ASSERT_TRUE(save(path("control"), record));
  {
    const auto lock = lock_board(path("control"), record.uuid);
    const auto owner = lock_board(path("control"), owner_lock(record.uuid));  // still lives
    EXPECT_TRUE(restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY).empty());
    const auto named =
        restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY, Leftovers::kSettle);
    EXPECT_THAT(named.at(0).outcome.error().message, HasSubstr("has not ended"));
  }
  EXPECT_EQ(limit(0), 300);
  const auto done = restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY);
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(*done[0].outcome, "gpu0: the power limit is 520 W again, as a sweep found it");
  EXPECT_EQ(limit(0), 520);
  EXPECT_EQ(records(), 0U);
}

TEST_F(Control, AGuardThatHangsAfterItsOwnersDeathIsNotWaitedFor) {
  simulate();
  ASSERT_TRUE(board(0).set(Knob::kPowerLimit, 300));
  ASSERT_TRUE(
      save(path("control"), {"GPU-aaaaaaaa", "gpu0", Knob::kPowerLimit, 520, {300}, boot_id()}));
  const auto guard = lock_board(path("control"), "GPU-aaaaaaaa");
  const auto done = restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY);
  ASSERT_TRUE(done.at(0).outcome);
  EXPECT_EQ(limit(0), 520);
  EXPECT_EQ(records(), 0U);
}

TEST_F(Control, ARecordOfAnotherBootChangesNothing) {
  simulate();
  ASSERT_TRUE(board(0).set(Knob::kPowerLimit, 300));
  ASSERT_TRUE(save(path("control"),
                   {"GPU-aaaaaaaa", "gpu0", Knob::kPowerLimit, 520, {300}, "another boot"}));
  const auto done = restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY);
  EXPECT_THAT(*done.at(0).outcome, HasSubstr("ended with the restart of the machine"));
  EXPECT_EQ(limit(0), 300);
  EXPECT_EQ(records(), 0U);
}

TEST_F(Control, ARecordStaysWhereRestoringFails) {
  simulate(R"({"settable": false})");
  const RestoreRecord record{"GPU-bbbbbbbb", "gpu1", Knob::kPowerLimit, 520, {700}, boot_id()};
  ASSERT_TRUE(save(path("control"), record));
  const auto done = restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY);
  EXPECT_EQ(done.at(0).outcome.error().code, Errc::kPermissionDenied);
  EXPECT_EQ(records(), 1U);
  std::ofstream(record_path(path("control"), "GPU-aaaaaaaa")) << "{";
  EXPECT_EQ(
      restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY).at(0).outcome.error().code,
      Errc::kCorrupt);
}

TEST_F(Control, LocksAndUnlocksAClock) {
  simulate();
  const auto held = HeldBoards::take(options(Knob::kSmClock));
  ASSERT_TRUE(held) << held.error().message;
  EXPECT_EQ((*held)->range().most, 1980);
  EXPECT_EQ((*held)->range().nearest(1001), 1005);  // in steps of 15 from 1980
  ASSERT_TRUE((*held)->apply(1005));
  EXPECT_THAT(state(), HasSubstr(" 0 clock 1005\n"));
  ASSERT_TRUE((*held)->restore());
  EXPECT_THAT(state(), HasSubstr(" 0 clock unlocked\n"));
}

TEST_F(Control, LocksAndUnlocksAMemoryClockAlsoAfterADeath) {
  simulate();
  {
    const auto held = HeldBoards::take(options(Knob::kMemoryClock));
    ASSERT_TRUE(held) << held.error().message;
    EXPECT_EQ((*held)->range().steps, (std::vector<double>{1309, 2619}));
    EXPECT_EQ((*held)->found(), std::nullopt);
    ASSERT_TRUE((*held)->apply(1309));
    EXPECT_THAT(state(), HasSubstr(" 0 memory-clock 1309\n"));
    const auto record = load(record_path(path("control"), "GPU-bbbbbbbb"));
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(record->knob, Knob::kMemoryClock);
    ASSERT_TRUE((*held)->restore());
    EXPECT_THAT(state(), HasSubstr(" 1 memory-clock unlocked\n"));
    EXPECT_EQ(records(), 0U);
  }
  // The guard has ended with its owner, and the board is free for the next one.
  EXPECT_TRUE(*lock_board(path("control"), "GPU-aaaaaaaa"));
  // As an owner that died leaves it.
  ASSERT_TRUE(board(0).set(Knob::kMemoryClock, 1309));
  ASSERT_TRUE(
      save(path("control"), {"GPU-aaaaaaaa", "gpu0", Knob::kMemoryClock, {}, {1309}, boot_id()}));
  const auto left = restore_leftovers(path("control"), JOULEPROF_NVML_SIM_LIBRARY);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].outcome, "gpu0: the memory clock that a sweep locked is unlocked");
  EXPECT_TRUE(state().ends_with(" 0 memory-clock unlocked\n"));
}

TEST(KnobRange, TakesWhatBothBoardsAccept) {
  const KnobRange watts{100, 700, {}};
  EXPECT_EQ(watts.nearest(85), 100);
  EXPECT_EQ(watts.nearest(200.4), 200);
  EXPECT_EQ(watts.common({250, 600, {}}).most, 600);
  const KnobRange clocks{300, 900, {300, 600, 900}};
  EXPECT_EQ(clocks.common({600, 1200, {600, 1200}}).steps, std::vector<double>{600});
  const auto none = clocks.common({700, 800, {700, 800}});
  EXPECT_LT(none.most, none.least);
}

}  // namespace
}  // namespace jouleprof::meters::control
