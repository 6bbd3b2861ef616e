// What the tool's exit status means. docs/cli.md has the same table.
#pragma once

#include <string>

#include "base/result.h"

namespace jouleprof::cli {

enum ExitStatus : int {
  kDone = 0,
  kInternalError = 1,
  kUsageError = 2,
  kCannotOpen = 3,
  kBadContent = 4,
  kUnknownContent = 5,
  kNothingToMeasure = 6,
  kCannotWrite = 7,
  kGateFailed = 8,
  kInconclusive = 9,
  kNotPermitted = 10,
  kNotStarted = 125,
};

// The status for an input that could not be read.
int status_of_input(const Error& error);

// A value that was not given on the command line.
struct ValueSource {
  std::string option;  // "--devices"
  std::string value;
  std::string source;  // "the environment variable JOULEPROF_DEVICES", "line 3 of FILE"
};
// complain() names the source of a value that its message speaks of. Not thread-safe.
void remember_source(ValueSource source);

// Says the error on stderr, as one line, and returns `status`.
int complain(const Error& error, int status);

}  // namespace jouleprof::cli
