#include "base/process/last_resort.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <exception>

#include "base/process/threads.h"

namespace jouleprof::last_resort {
namespace {

constexpr auto ignore = [](const char*) {};
char shell[] = "sh";
char option[] = "-c";
char ends_with_5[] = "exit 5";
char kills_itself[] = "kill -TERM $$; exit 6";
char* const kKillsItself[] = {shell, option, kills_itself, nullptr};
char* const kCommand[] = {shell, option, ends_with_5, nullptr};

TEST(LastResortDeathTest, EndsWithAStatus) {
  EXPECT_EXIT(
      {
        install(7, nullptr);
        std::terminate();
      },
      testing::ExitedWithCode(7), "internal error\n");
}

TEST(LastResortDeathTest, TheCommandRuns) {
  EXPECT_EXIT(
      {
        install(7, nullptr);
        has_to_run(kCommand);
        std::terminate();
      },
      testing::ExitedWithCode(5), "without being measured");
}

TEST(LastResortDeathTest, TheCommandRunsWhereADriverCrashes) {
  for (const int crash : {SIGABRT, SIGSEGV}) {
    EXPECT_EXIT(
        {
          std::signal(crash, SIG_DFL);  // not the sanitizer's
          install(7, nullptr);
          has_to_run(kCommand);
          start_thread([crash] { ::pthread_kill(::pthread_self(), crash); }, ignore)->join();
        },
        testing::ExitedWithCode(5), "without being measured");
  }
}

TEST(LastResortDeathTest, TheCommandHasTheSignalsThatTheProgramBeganWith) {
  EXPECT_EXIT(
      {
        install(7, nullptr);
        has_to_run(kKillsItself);
        start_thread([] { std::terminate(); }, ignore)->join();
      },
      testing::KilledBySignal(SIGTERM), "without being measured");
}

TEST(LastResortDeathTest, TheCommandThatRunsIsWaitedFor) {
  EXPECT_EXIT(
      {
        install(7, nullptr);
        has_to_run(kCommand);
        const pid_t child = ::fork();
        if (child == 0) ::execvp(kCommand[0], kCommand);
        has_started(child);
        std::terminate();
      },
      testing::ExitedWithCode(5), "goes on unmeasured");
}

TEST(LastResortDeathTest, TheStatusOfACommandThatHasEndedComesBack) {
  EXPECT_EXIT(
      {
        install(7, nullptr);
        has_to_run(kCommand);
        has_started(1);
        has_ended(3);
        std::terminate();
      },
      testing::ExitedWithCode(3), "no summary");
}

TEST(LastResortDeathTest, CommandsOfOthersAreNotThePrograms) {
  EXPECT_EXIT(
      {
        install(7, nullptr);
        has_started(1);
        has_ended(0);
        std::terminate();
      },
      testing::ExitedWithCode(7), "internal error\n");
}

}  // namespace
}  // namespace jouleprof::last_resort
