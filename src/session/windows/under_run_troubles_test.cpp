// A tool that is gone, clients that talk nonsense, a program that forks.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "session/windows/under_run_fixture.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::SizeIs;
using UnderRunTroublesTest = UnderRunTest;

TEST_F(UnderRunTroublesTest, WithoutTheToolTheProgramReadsTheSensorsItself) {
  const auto path = server_->path();
  EXPECT_EQ(std::filesystem::status(path.parent_path()).permissions(),
            std::filesystem::perms::owner_all);
  const auto monitor = connect();
  const HostTime begin = HostClock::now();
  std::this_thread::sleep_for(50ms);
  ASSERT_TRUE(monitor->energy(begin, begin + 20ms, 20s));
  stop();
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
  const auto has_noticed = [&] {
    const auto warnings = monitor->warnings();
    return std::any_of(warnings.begin(), warnings.end(), [](const std::string& text) {
      return text.starts_with("the tool has stopped; jouleprof reads the sensors itself");
    });
  };
  const HostTime deadline = HostClock::now() + 20s;
  while (!has_noticed() && HostClock::now() < deadline) std::this_thread::sleep_for(5ms);
  EXPECT_TRUE(has_noticed());
  // This program can read none: there is an answer at the deadline, without a figure.
  const HostTime now = HostClock::now();
  const auto energies = monitor->energy(now + 1s, now + 2s, 50ms);
  ASSERT_TRUE(energies) << energies.error().message;
  EXPECT_FALSE((*energies)[0]);
  for (int i = 0; i < 20'000; ++i) monitor->add({ns(now), ns(now), 0, 0});
  const auto late = open_under_run(path, {}, none);
  ASSERT_FALSE(late);
  EXPECT_THAT(late.error().message, HasSubstr(path.string()));
}

TEST_F(UnderRunTroublesTest, NonsenseHarmsNoOtherProgram) {
  const auto monitor = connect();
  const std::string long_one(meters::kLongestPacket + 100, '{');
  for (const std::string& packet : {std::string("GET / HTTP/1.1"), std::string("W"), std::string(),
                                    encode(meters::ProgramMessage(meters::Lost{1})),
                                    encode(meters::HubMessage(meters::ReadDone{})), long_one}) {
    const int fd = raw_client();
    ::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
    fcntl(fd, F_SETFL, 0);
    char byte = 0;
    EXPECT_LE(::recv(fd, &byte, 1, 0), 0) << packet.substr(0, 40);  // dropped
    disconnect(fd);
  }
  const int silent = raw_client();
  disconnect(raw_client());
  const int other = raw_client();
  const std::string hello =
      encode(meters::ProgramMessage(meters::Hello{.protocol = meters::kHubProtocol + 1}));
  ::send(other, hello.data(), hello.size(), MSG_NOSIGNAL);
  fcntl(other, F_SETFL, 0);
  std::string answer(1000, '\0');
  const auto size = ::recv(other, answer.data(), answer.size(), 0);
  ASSERT_GT(size, 0);
  EXPECT_THAT(answer, HasSubstr("welcome"));
  disconnect(other);
  const HostTime now = HostClock::now();
  EXPECT_TRUE(monitor->energy(now - 50ms, now, 20s));
  disconnect(silent);
}

TEST_F(UnderRunTroublesTest, AForkedChildMeasuresNothingAndOpensItsOwn) {
  auto monitor = connect();
  const auto name = monitor->name("step");
  const HostTime now = HostClock::now();
  monitor->add({ns(now), ns(now), name, 0});
  const auto path = server_->path();
  const pid_t child = fork();
  if (child == 0) {
    monitor->add({ns(now), ns(now), name, 0});
    int wrong = 0;
    const auto energies = monitor->energy(now - 1ms, now, 1s);
    wrong += energies || energies.error().code != Errc::kUnavailable ? 1 : 0;
    wrong += monitor->total(name, 1s) ? 2 : 0;
    wrong += monitor->name("other") != 0 ? 4 : 0;
    monitor.reset();
    _exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(monitor->energy(now - 50ms, now, 20s));  // the parent goes on
  monitor.reset();
  stop();
  EXPECT_THAT(recorded_, SizeIs(1));
}

}  // namespace
}  // namespace jouleprof::session
