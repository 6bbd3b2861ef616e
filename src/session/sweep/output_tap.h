// Reads along what the command prints.
#pragma once

#include <memory>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "session/sweep/run_measures.h"

namespace jouleprof::session {

// While it exists, what this process and its children write to the standard output passes through a
// pipe to where it went before, and the numbers in it that match an expression are kept. The
// command does not see a terminal then. One at a time in a process.
class OutputTap {
 public:
  // `expression`: valid, with one group. Errors: no descriptors are left.
  static Result<std::unique_ptr<OutputTap>> open(const std::string& expression);
  OutputTap(const OutputTap&) = delete;
  OutputTap& operator=(const OutputTap&) = delete;
  ~OutputTap();

  // Ends the tap. Processes that still write to the pipe are no longer read. Errors: unavailable,
  // where reading along ended before the command did; its output got through nevertheless.
  Result<std::vector<PrintedNumber>> finish();

 private:
  OutputTap(const std::string& expression, int standard_output, int pipe, int wake);
  void copy(bool reads_along);
  void take(std::string_view text);
  void match(const std::string& line);

  const std::regex expression_;
  const int standard_output_;  // where it went before
  const int pipe_;
  const int wake_;
  std::string line_;  // begun
  std::vector<PrintedNumber> found_;
  std::string problem_;  // why the numbers are not all there
  std::thread thread_;
};

}  // namespace jouleprof::session
