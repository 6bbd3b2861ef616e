// What keeps a command's status where something else goes wrong.
#pragma once

#include <signal.h>

#include <array>
#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

// Becomes the command, because the job matters more than its measurement. Returns only where that
// fails: the exit status.
int run_unmeasured(const std::vector<std::string>& command, const Error& why);

// After the command has ended: while one exists, an interruption ends the tool with the command's
// status. The first one does not: it is taken for a key that was held too long.
class KeepStatus {
 public:
  explicit KeepStatus(int status);
  KeepStatus(const KeepStatus&) = delete;
  KeepStatus& operator=(const KeepStatus&) = delete;
  ~KeepStatus();

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace jouleprof::cli
