#include "analysis/processes/board_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/timeline/simulated_sensors_test.h"

namespace jouleprof::analysis {
namespace {

using simulated::at;
using testing::ElementsAre;
using testing::IsEmpty;

using Candidates = std::vector<std::size_t>;

struct Board {
  BoardEvidence evidence;

  explicit Board(std::size_t processes) {
    for (std::size_t p = 0; p < processes; ++p) evidence.lives.push_back({at(-100), {}, false});
  }
  void look(double t, std::vector<BoardLook::Use> uses) {
    evidence.looks.push_back({at(t), std::move(uses), false});
  }
  // Looks up to `last`: at process 0 with its utilisation, from 10 on at 1 as well, without one.
  void second_begins(int last, const std::function<std::optional<double>(int)>& utilisation) {
    for (int t = 1; t <= last; ++t) {
      std::vector<BoardLook::Use> uses{{0, utilisation(t)}};
      if (t >= 10) uses.push_back({1, {}});
      look(t, std::move(uses));
    }
  }
  void board_use_is(double utilisation) {
    for (int t = 0; t <= 20; ++t) evidence.utilisation.push_back({{}, at(t), utilisation});
  }
  // `shares`: of one core, by process; absent: unknown.
  void cpu_is(std::vector<std::optional<double>> shares) {
    evidence.cpu_share = [shares](std::size_t p, HostTime, HostTime) { return shares[p]; };
  }
  void has_unidentified(double t) {
    for (auto& look : evidence.looks) look.has_unidentified |= look.at == at(t);
  }
  UseSlice slice(double t) const {
    for (const auto& slice : board_use(evidence, at(0), at(20))) {
      if (slice.begin <= at(t) && at(t) < slice.end) return slice;
    }
    return {};
  }
  std::vector<Candidates> candidates(double t) const {
    std::vector<Candidates> out;
    for (const auto& claim : slice(t).claims) out.push_back(claim.candidates);
    return out;
  }
};

TEST(BoardUse, TheOnlyProcessWorkedWhateverItsUtilisation) {
  Board board(1);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, 0.0}});
  EXPECT_THAT(board.candidates(0.5), ElementsAre(Candidates{0}));
  EXPECT_THAT(board.candidates(10.5), ElementsAre(Candidates{0}));
  EXPECT_TRUE(board.slice(10.5).claims[0].at_rest);
}

TEST(BoardUse, OneThatEndsBetweenTwoLooksHasTheTimeUntilThen) {
  Board board(2);
  board.evidence.lives[0].end = at(5.4);
  board.evidence.lives[1].start = at(5.5);
  for (int t = 1; t < 20; ++t)
    board.look(
        t, t <= 5 ? std::vector<BoardLook::Use>{{0, {}}} : std::vector<BoardLook::Use>{{1, {}}});
  EXPECT_THAT(board.candidates(5.2), ElementsAre(Candidates{0}));
  EXPECT_THAT(board.candidates(5.45),
              ElementsAre(Candidates{0}));  // the board stays up for a moment
  EXPECT_THAT(board.candidates(5.7), ElementsAre(Candidates{1}));
}

TEST(BoardUse, WhereOneOfTwoMustHaveWorkedBothAreCandidates) {
  Board board(2);
  for (int t = 1; t < 20; ++t) {
    std::vector<BoardLook::Use> uses;
    if (t <= 5) uses.push_back({0, {}});
    if (t > 5) uses.push_back({1, {}});
    board.look(t, uses);
  }
  EXPECT_THAT(board.candidates(5.5), ElementsAre(Candidates{0, 1}));
}

TEST(BoardUse, OneThatBeganOrEndedWorkedWhereTheOtherUsedNoCpuTime) {
  Board board(2);
  board.second_begins(12, [](int t) { return t == 9 ? std::optional(0.0) : std::nullopt; });
  EXPECT_THAT(board.candidates(11.5), ElementsAre(Candidates{0, 1}));
  board.cpu_is({0.0, {}});
  EXPECT_THAT(board.candidates(11.5), ElementsAre(Candidates{1}));
  board.cpu_is({0.3, {}});
  EXPECT_THAT(board.candidates(11.5), ElementsAre(Candidates{0, 1}));
}

TEST(BoardUse, ANewContextWithoutCpuTimeHasNothingOfWhatOthersAreKnownToHaveUsed) {
  Board board(2);
  board.second_begins(13, [](int) { return 0.5; });
  board.board_use_is(0.9);
  board.cpu_is({0.5, 0.3});
  EXPECT_THAT(board.candidates(11.5), ElementsAre(Candidates{0}, Candidates{1}));
  board.cpu_is({0.5, 0.0});
  EXPECT_THAT(board.candidates(11.5), ElementsAre(Candidates{0}));
  EXPECT_EQ(board.slice(11.5).doubt->candidates, Candidates{1});
}

TEST(BoardUse, AUtilisationOfZeroWithCpuTimeLeavesTheOwnerOpen) {
  Board board(2);
  board.second_begins(13, [](int) { return 0.0; });
  board.cpu_is({0.5, 0.0});
  EXPECT_THAT(board.candidates(11.5), ElementsAre(Candidates{0, 1}));
}

TEST(BoardUse, OneThatEndedBeforeItWasIdentifiedIsTakenForOneOfThoseThatWorked) {
  Board board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}}, {1, {}}});
  board.cpu_is({0.0, 0.5});
  board.has_unidentified(10);
  EXPECT_THAT(board.candidates(9.5), ElementsAre(Candidates{1}));
  EXPECT_TRUE(board.slice(9.5).claims[0].in_doubt);
  EXPECT_THAT(board.slice(9.5).holders, ElementsAre(0, 1));
  // Where no other worked, it did.
  board.cpu_is({0.0, 0.0});
  EXPECT_THAT(board.candidates(9.5), ElementsAre(Candidates{kUnidentified}));
  // Or one of those that began and ended below another.
  board.evidence.children_cpu_share = [](std::size_t p, HostTime, HostTime) {
    return p == 1 ? 0.7 : 0.0;
  };
  EXPECT_THAT(board.candidates(9.5), ElementsAre(Candidates{1}));
}

TEST(BoardUse, OneThatIsHiddenMayHaveWorked) {
  Board board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}}, {1, {}}});
  board.cpu_is({0.0, 0.5});
  for (int t = 1; t < 20; ++t) board.has_unidentified(t);
  EXPECT_THAT(board.candidates(9.5), ElementsAre(Candidates{1, kUnidentified}));
}

TEST(BoardUse, OneThatOnlyHoldsTheBoardDoesNotPayForAnothersWork) {
  Board board(2);
  for (int t = 1; t < 20; ++t) {
    std::vector<BoardLook::Use> uses{{0, t >= 4 ? std::optional(0.0) : std::nullopt}};
    if (t >= 10 && t < 15) uses.push_back({1, {}});  // it ends before its utilisation is known
    board.look(t, uses);
  }
  EXPECT_THAT(board.candidates(9.5), ElementsAre(Candidates{1}));
  EXPECT_THAT(board.candidates(12), ElementsAre(Candidates{1}));
  EXPECT_THAT(board.candidates(14.5), ElementsAre(Candidates{1}));
  EXPECT_THAT(board.candidates(17), ElementsAre(Candidates{0}));
  EXPECT_THAT(board.slice(12).holders, ElementsAre(0u, 1u));
}

TEST(BoardUse, TwoThatWorkShareByUtilisation) {
  Board board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, 0.2}, {1, 0.6}});
  const auto slice = board.slice(10);
  ASSERT_EQ(slice.claims.size(), 2u);
  EXPECT_EQ(slice.claims[0].weight, 0.2);
  EXPECT_EQ(slice.claims[1].weight, 0.6);
}

TEST(BoardUse, ANewOneHasWhatTheBoardsOwnUtilisationLeaves) {
  for (const double own : {0.4, 0.46, 0.9}) {
    Board board(2);
    board.board_use_is(own);
    for (int t = 1; t < 20; ++t) {
      std::vector<BoardLook::Use> uses{{0, 0.4}};
      if (t >= 10) uses.push_back({1, t >= 14 ? std::optional(0.5) : std::nullopt});
      board.look(t, uses);
    }
    if (own < 0.45) {
      EXPECT_THAT(board.candidates(11), ElementsAre(Candidates{0}));
      ASSERT_TRUE(board.slice(11).doubt);  // utilisations are rounded, and taken at other times
      EXPECT_EQ(board.slice(11).doubt->candidates, Candidates{1});
    } else if (own < 0.5) {
      ASSERT_THAT(board.candidates(11), ElementsAre(Candidates{0}, Candidates{1}));
      EXPECT_NEAR(board.slice(11).claims[1].weight, 0.06, 1e-9);
      EXPECT_TRUE(board.slice(11).claims[1].in_doubt);
    } else {
      ASSERT_THAT(board.candidates(11), ElementsAre(Candidates{0}, Candidates{1}));
      EXPECT_NEAR(board.slice(11).claims[1].weight, 0.5, 1e-9);
    }
  }
}

TEST(BoardUse, AUtilisationThatTheDriverRefusesIsOfNoOneElse) {
  Board board(2);
  board.board_use_is(0.5);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}}, {1, 0.5}});
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{0, 1}));
}

TEST(BoardUse, ProcessesAtRestHoldTheBoardInEqualParts) {
  Board board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, 0.0}, {1, 0.0}});
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{0}, Candidates{1}));
  board.board_use_is(0.7);  // and yet it is busy
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{0, 1}));
}

TEST(BoardUse, WithoutUtilisationCpuTimeSeparates) {
  Board board(3);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}}, {1, {}}});
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{0, 1}));
  board.evidence.cpu_share = [](std::size_t p, HostTime, HostTime) {
    return std::optional(p == 0 ? 0.0 : 0.5);
  };
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{1}));
}

// A notebook of 1 %, and a job's processes.
TEST(BoardUse, OneOfLittleCpuTimeWhereAnotherShowsWorkOnlyHoldsInDoubt) {
  Board board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}}, {1, {}}});
  board.cpu_is({0.012, 0.11});
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{1}));
  EXPECT_TRUE(board.slice(10).claims[0].in_doubt);
  EXPECT_THAT(board.slice(10).holders, ElementsAre(0, 1));
  board.cpu_is({0.019, 0.11});  // not so little
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{0, 1}));
  board.cpu_is({0.03, 0.9});  // shows work, too
  EXPECT_THAT(board.candidates(10), ElementsAre(Candidates{0, 1}));
}

TEST(BoardUse, AProcessThatNoLookCouldListIsACandidateWhereTheListedOneRested) {
  Board board(2);
  board.evidence.lives[1] = {at(10.2), at(10.6), true};
  for (int t = 1; t < 20; ++t) board.look(t, {{0, t >= 4 ? std::optional(0.0) : std::nullopt}});
  EXPECT_THAT(board.candidates(10.4), ElementsAre(Candidates{1}));
  EXPECT_THAT(board.candidates(10.8), ElementsAre(Candidates{0}));
  board.evidence.lives[1].end = at(13);  // a look did not list it
  EXPECT_THAT(board.candidates(10.4), ElementsAre(Candidates{0}));
}

TEST(BoardUse, WithoutListsAProcessOfAnyOwnerMayHaveWorked) {
  Board board(1);
  board.evidence.lives[0] = {at(3), at(15), true};
  EXPECT_THAT(board.candidates(8), ElementsAre(Candidates{0, kUnidentified}));
  board.look(1, {});
  board.look(2, {});
  EXPECT_THAT(board.candidates(14.5), ElementsAre(Candidates{0, kUnidentified}));
  // The lists end, and with them what is known.
  board.evidence.lives[0] = {at(2.3), at(3.2), true};
  EXPECT_THAT(board.candidates(3), ElementsAre(Candidates{0, kUnidentified}));
  board.evidence.lives[0] = {at(3), at(15), true};
  for (int t = 3; t < 20; ++t) board.look(t, {});
  EXPECT_THAT(board.candidates(8), IsEmpty());  // it would have been listed
  EXPECT_THAT(board.candidates(14.5), ElementsAre(Candidates{0}));
}

TEST(BoardUse, InAGapOfTheListsThoseAroundItWorkedInDoubt) {
  Board board(2);
  for (int t = 1; t < 20; ++t) {
    if (t < 9 || t > 12) board.look(t, {{0, 0.5}});
  }
  EXPECT_FALSE(board.slice(7.5).claims[0].in_doubt);
  const auto slice = board.slice(10);  // from 8 to 13: another may have begun and ended in it
  ASSERT_EQ(slice.claims.size(), 1u);
  EXPECT_EQ(slice.claims[0].candidates, (Candidates{0, kUnidentified}));
  EXPECT_TRUE(slice.claims[0].in_doubt);
  EXPECT_EQ(unlisted_users(board.evidence, at(3), at(18)), OtherUsers::kMaybe);
  EXPECT_EQ(unlisted_users(board.evidence, at(13), at(18)), OtherUsers::kNone);
  board.evidence.known.push_back({1, at(4), at(18)});  // traced
  EXPECT_EQ(unlisted_users(board.evidence, at(3), at(18)), OtherUsers::kNone);
}

TEST(BoardUse, ListsThatNameNothingWhileTheBoardWorksSayNothing) {
  Board board(1);
  board.evidence.lives[0] = {at(4.2), at(5.1), true};
  for (int t = 1; t < 20; ++t) board.look(t, {});
  EXPECT_THAT(board.candidates(4.5), ElementsAre(Candidates{0}));
  EXPECT_EQ(unlisted_users(board.evidence, at(3), at(18)), OtherUsers::kNone);
  board.board_use_is(0.5);
  EXPECT_THAT(board.candidates(4.5), ElementsAre(Candidates{0, kUnidentified}));
  EXPECT_EQ(unlisted_users(board.evidence, at(3), at(18)), OtherUsers::kMaybe);
  // One of them names a process: they are not hidden.
  board.evidence.looks[10].uses.push_back({0, {}});
  EXPECT_EQ(unlisted_users(board.evidence, at(3), at(18)), OtherUsers::kNone);
}

TEST(BoardUse, AHiddenProcessThatWasThereBeforeTheWorkIsAnothers) {
  Board board(1);
  for (int t = 1; t < 20; ++t) board.look(t, {});
  for (int t = 7; t < 12; ++t) board.has_unidentified(t);
  EXPECT_EQ(unlisted_users(board.evidence, at(3), at(18)), OtherUsers::kMaybe);
  for (int t = 1; t < 7; ++t) board.has_unidentified(t);
  EXPECT_EQ(unlisted_users(board.evidence, at(3), at(18)), OtherUsers::kSure);
  EXPECT_EQ(unlisted_users(board.evidence, at(13), at(18)), OtherUsers::kNone);
}

TEST(BoardUse, AHiddenProcessThatEndedAboutTheBeginMayHaveBeenThereUpToTheNextLook) {
  Board board(1);
  for (int t = 1; t < 20; ++t) board.look(t, {});
  for (int t = 1; t < 12; ++t) board.has_unidentified(t);
  EXPECT_EQ(unlisted_users(board.evidence, at(11.0), at(18)), OtherUsers::kSure);
  EXPECT_EQ(unlisted_users(board.evidence, at(11.5), at(18)), OtherUsers::kMaybe);
  EXPECT_EQ(unlisted_users(board.evidence, at(11.95), at(18)), OtherUsers::kNone);
}

// A notebook that rests does so until the next list, too.
TEST(BoardUse, AUtilisationOfZeroGoesOnForAMoment) {
  Board board(2);
  for (int t = 1; t <= 10; ++t) board.look(t, {{0, 0.4}, {1, 0.0}});
  board.cpu_is({0.3, 0.01});
  const auto slices = board_use(board.evidence, at(0), at(10.8));
  ASSERT_EQ(slices.back().claims.size(), 1u);
  EXPECT_EQ(slices.back().claims[0].candidates, Candidates{0});
}

TEST(BoardUse, OneThatLivedBetweenTwoListsHeldTheBoard) {
  Board board(1);
  board.evidence.lives[0] = {at(10.2), at(10.9), true};
  for (int t = 1; t < 20; ++t) board.look(t, {});
  EXPECT_THAT(board.slice(10.5).holders, ElementsAre(0));
  EXPECT_THAT(board.slice(12.5).holders, IsEmpty());
}

TEST(BoardUse, AnUnidentifiedProcessIsACandidate) {
  Board board(1);
  for (int t = 1; t < 20; ++t) board.evidence.looks.push_back({at(t), {{0, {}}}, t == 10});
  EXPECT_THAT(board.candidates(5), ElementsAre(Candidates{0}));
  EXPECT_THAT(board.candidates(9.5), ElementsAre(Candidates{0, kUnidentified}));
}

TEST(BoardUse, LongAfterTheLastProcessTheEnergyIsOfNone) {
  Board board(1);
  for (int t = 1; t < 20; ++t)
    board.look(t, t <= 5 ? std::vector<BoardLook::Use>{{0, {}}} : std::vector<BoardLook::Use>{});
  EXPECT_THAT(board.candidates(8), ElementsAre(Candidates{0}));
  EXPECT_THAT(board.candidates(12), IsEmpty());
  EXPECT_THAT(board.slice(12).holders, IsEmpty());
}

TEST(BoardUse, AfterTheLastListTheEnergyIsOfNoneThatEndedBeforeIt) {
  Board board(2);
  for (int t = 1; t <= 10; ++t) {
    board.look(t, t < 10 ? std::vector<BoardLook::Use>{{0, 0.5}, {1, 0.5}}
                         : std::vector<BoardLook::Use>{{1, 0.5}});
  }
  EXPECT_THAT(board.candidates(10.5), ElementsAre(Candidates{1}));
  EXPECT_THAT(board.candidates(12.2), IsEmpty());  // a second after 1 was listed last, 2.2 after 0
}

TEST(BoardUse, SlicesFollowEachOtherAndAreFew) {
  Board board(1);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}}});
  const auto slices = board_use(board.evidence, at(0), at(20));
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].begin, at(0));
  EXPECT_EQ(slices[0].end, at(20));
  EXPECT_THAT(board_use(board.evidence, at(3), at(3)), IsEmpty());
}

TEST(BoardUse, OneThatReadsZeroMayHaveWorkedWhereTheBoardDidMore) {
  Board board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, 0.5}, {1, 0.0}});
  EXPECT_FALSE(board.slice(10.5).doubt);  // the board's own utilisation is unknown
  board.board_use_is(0.6);
  EXPECT_FALSE(board.slice(10.5).doubt);
  board.evidence.utilisation.clear();
  board.board_use_is(0.9);
  EXPECT_THAT(board.candidates(10.5), ElementsAre(Candidates{0}));
  ASSERT_TRUE(board.slice(10.5).doubt);
  EXPECT_EQ(board.slice(10.5).doubt->candidates, Candidates{1});
  EXPECT_NEAR(board.slice(10.5).doubt->weight, 0.4, 1e-9);
  board.cpu_is({0.5, 0.001});
  EXPECT_FALSE(board.slice(10.5).doubt);  // it used no CPU time either
}

TEST(BoardUse, WhatOneHasByExclusionIsInDoubt) {
  Board board(2);
  for (int t = 1; t < 20; ++t)
    board.look(t, t < 3 || t > 5 ? std::vector<BoardLook::Use>{{0, 0.3}}
                                 : std::vector<BoardLook::Use>{{0, 0.3}, {1, {}}});
  board.board_use_is(0.9);
  const auto slice = board.slice(4.5);
  ASSERT_EQ(slice.claims.size(), 2u);
  EXPECT_FALSE(slice.claims[0].in_doubt);
  EXPECT_EQ(slice.claims[1].candidates, Candidates{1});
  EXPECT_TRUE(slice.claims[1].in_doubt);
}

// Two parts, of three quarters and of one.
struct DividedBoard : Board {
  explicit DividedBoard(std::size_t processes) : Board(processes) {
    evidence.parts = {{3, {}}, {1, {}}};
  }
  void activity(std::size_t part, double from, double to, double value) {
    for (double t = from; t <= to; t += 1)
      evidence.parts[part].activity.push_back({{}, at(t), value});
  }
  std::vector<double> weights(double t) const {
    std::vector<double> out;
    for (const auto& claim : slice(t).claims) out.push_back(claim.weight);
    return out;
  }
};

TEST(BoardUse, APartHasItsActivityTimesItsSize) {
  DividedBoard board(3);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}, {0}}, {1, {}, {1}}, {2, {}, {1}}});
  board.activity(0, 2, 19, 0.2);
  board.activity(1, 2, 19, 0.8);
  EXPECT_THAT(board.candidates(10.5), ElementsAre(Candidates{0}, Candidates{1, 2}));
  EXPECT_THAT(board.weights(10.5),
              ElementsAre(testing::DoubleNear(0.15, 1e-9), testing::DoubleNear(0.2, 1e-9)));
  EXPECT_FALSE(board.slice(10.5).is_guess);
}

TEST(BoardUse, WhereAnActivityIsMissingPartsHaveTheirSizes) {
  DividedBoard board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}, {0}}, {1, {}, {1}}});
  board.activity(0, 2, 19, 0.2);
  board.activity(1, 2, 8, 0.8);
  EXPECT_FALSE(board.slice(5.5).is_guess);
  EXPECT_TRUE(board.slice(12.5).is_guess);
  EXPECT_THAT(board.weights(12.5), ElementsAre(0.75, 0.25));
  board.evidence.parts[1].size = 0;
  EXPECT_THAT(board.candidates(12.5), ElementsAre(Candidates{0, 1}));
}

TEST(BoardUse, APartThatDidNotWorkHasNothing) {
  DividedBoard board(2);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}, {0}}, {1, {}, {1}}});
  board.activity(0, 2, 19, 0);
  board.activity(1, 2, 19, 0.1);
  EXPECT_THAT(board.candidates(10.5), ElementsAre(Candidates{1}));
  EXPECT_FALSE(board.slice(10.5).claims[0].at_rest);
}

TEST(BoardUse, AProcessOnAPartHasTheActivityOfTheTimeThatItWasThere) {
  DividedBoard board(2);
  board.evidence.lives[1].end = at(10.5);
  for (int t = 1; t < 20; ++t)
    board.look(t, t <= 10 ? std::vector<BoardLook::Use>{{0, {}, {0}}, {1, {}, {1}}}
                          : std::vector<BoardLook::Use>{{0, {}, {0}}});
  board.activity(0, 2, 19, 0.4);
  board.activity(1, 2, 10, 0.8);
  board.activity(1, 11, 11, 0.4);  // the mean of half a second
  board.activity(1, 12, 19, 0);
  EXPECT_THAT(board.weights(10.2),
              ElementsAre(testing::DoubleNear(0.3, 1e-9), testing::DoubleNear(0.2, 1e-9)));
  EXPECT_THAT(board.candidates(10.7), ElementsAre(Candidates{0}));
}

TEST(BoardUse, APartThatWorkedWithoutAProcessIsOfAnUnknownOwner) {
  DividedBoard board(1);
  for (int t = 1; t < 20; ++t) board.look(t, {{0, {}, {0}}});
  board.activity(0, 2, 19, 0.4);
  board.activity(1, 2, 19, 0.8);
  EXPECT_THAT(board.candidates(10.5), ElementsAre(Candidates{0}, Candidates{kUnidentified}));
}

}  // namespace
}  // namespace jouleprof::analysis
