// Other programs that are asked again and again for a line.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace jouleprof::meters {

// A shell that runs one command at each request. It is started once, so that it is never taken for
// an orphan of the measured command. Thread safety: none.
class ShellTool {
 public:
  // Errors: unavailable where no process can be started.
  static Result<std::unique_ptr<ShellTool>> start(const std::string& command, Duration patience);
  ShellTool(const ShellTool&) = delete;
  ShellTool& operator=(const ShellTool&) = delete;
  ~ShellTool();

  // What the command prints. Errors: unavailable with its words on stderr where its exit status is
  // not 0; timeout after the patience, when the command is killed.
  Result<std::string> run();

 private:
  ShellTool(std::string command, Duration patience)
      : command_(std::move(command)), patience_(patience) {}

  std::string command_;
  Duration patience_;
  pid_t shell_ = 0;
  int requests_ = -1;
  int answers_ = -1;
  int last_ = 0;
  std::string pending_;  // of an answer that is not complete
};

}  // namespace jouleprof::meters
