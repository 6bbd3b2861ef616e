#include "base/process/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace jouleprof {
namespace {

bool is_open_in_child(int fd) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::fcntl(fd, F_GETFD) >= 0 ? 1 : 0);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

// A program may close all descriptors, and open files of its own under their numbers.
TEST(LocalSocket, AForkedChildHasNoConnectionAndAllElse) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("jouleprof_local_socket_test." + std::to_string(::getpid()));
  const auto listening = listen_locally(path);
  ASSERT_TRUE(listening) << listening.error().message;
  const auto connected = connect_locally(path, "");
  ASSERT_TRUE(connected) << connected.error().message;
  EXPECT_TRUE(is_connected(*connected));
  EXPECT_FALSE(is_open_in_child(*connected));
  EXPECT_TRUE(is_open_in_child(*listening));
  ASSERT_EQ(::dup2(*listening, *connected), *connected);  // another socket
  EXPECT_TRUE(is_open_in_child(*connected));
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(file, *connected), *connected);
  EXPECT_TRUE(is_open_in_child(*connected));
  EXPECT_FALSE(is_connected(*connected));
  disconnect(*connected);
  EXPECT_EQ(::close(*connected), 0);  // the program's is open
  ::close(file);
  ::close(*listening);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace jouleprof
