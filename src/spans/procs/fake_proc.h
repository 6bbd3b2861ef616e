// A made-up /proc for tests.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/support/temp_tree.h"

namespace jouleprof::spans {

struct FakeProcess {
  pid_t pid = 0;
  pid_t parent = 1;
  int cpu_ticks = 0;       // 10 ms each
  int children_ticks = 0;  // of children waited for
  std::string name = "worker";
  char state = 'S';
  int threads = 1;
  int start_ticks = 1000;
  int rss_pages = 25;
};

class FakeProc {
 public:
  void put(const FakeProcess& p) const {
    tree.write(
        fmt::format("proc/{}/stat", p.pid),
        fmt::format("{} ({}) {} {} 1 1 0 -1 4194560 9 0 0 0 {} {} {} {} 20 0 {} 0 {} 4096 {} "
                    "18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
                    p.pid, p.name, p.state, p.parent, p.cpu_ticks - p.cpu_ticks / 3,
                    p.cpu_ticks / 3, p.children_ticks - p.children_ticks / 3, p.children_ticks / 3,
                    p.threads, p.start_ticks, p.rss_pages));
    tree.write(fmt::format("proc/{}/cmdline", p.pid), p.name + std::string("\0--flag\0", 8));
  }
  void children(pid_t pid, pid_t task, const std::string& list) const {
    tree.write(fmt::format("proc/{}/task/{}/children", pid, task), list);
  }
  void remove(pid_t pid) const { std::filesystem::remove_all(tree / fmt::format("proc/{}", pid)); }

  TempTree tree{{"proc/stat", "cpu 0 0 0 0 0 0 0 0 0 0\nprocesses 1\n"}};
};

}  // namespace jouleprof::spans
