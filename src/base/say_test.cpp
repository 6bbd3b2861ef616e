#include "base/say.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>

namespace jouleprof {
namespace {

// stderr is another file while it lives.
class OtherStderr {
 public:
  explicit OtherStderr(int fd) : kept_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10)) {
    if (fd < 0) {
      ::close(STDERR_FILENO);
    } else {
      ::dup2(fd, STDERR_FILENO);
    }
  }
  OtherStderr(const OtherStderr&) = delete;
  OtherStderr& operator=(const OtherStderr&) = delete;
  ~OtherStderr() {
    ::dup2(kept_, STDERR_FILENO);
    ::close(kept_);
  }

 private:
  int kept_;
};

TEST(Say, WritesAll) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    const OtherStderr other(ends[1]);
    say("{} J of {}\n", 3, "gpu0");
  }
  std::array<char, 64> text{};
  ASSERT_GT(::read(ends[0], text.data(), text.size()), 0);
  EXPECT_STREQ(text.data(), "3 J of gpu0\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Say, SurvivesAReaderThatIsGone) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  {
    const OtherStderr other(ends[1]);
    say("no reader\n");  // SIGPIPE would end the test
  }
  ::close(ends[1]);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGPIPE), 0);
}

TEST(Say, SurvivesAStderrThatTakesNothing) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full >= 0) {
    const OtherStderr other(full);
    say("no space\n");
  }
  ::close(full);
  const OtherStderr closed(-1);
  say("no stream\n");
}

}  // namespace
}  // namespace jouleprof
