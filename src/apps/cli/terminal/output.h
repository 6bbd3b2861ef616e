// Where verbs write their results, a file that appears when it is complete, or a stream; and the
// status that they end with.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

struct Output {
  std::string path;        // "" or "-": stdout
  bool overwrite = false;  // an ordinary file that exists
  std::vector<std::string>
      others;                     // the command's inputs and other outputs: it may be none of them
  bool is_claimed_later = false;  // as a recording, which several processes of a job may share
};

// What would keep write_output() from beginning. Errors: invalid_argument where the output is one
// of `others`, exists, is a folder, or is a recording that another program writes; not_found
// without the folder that it is to be in.
Result<void> check_output(const Output& output);

// Writes through `write` what is in its place at once when it returns true; before that, and where
// something fails, an old file stays as it was. A FIFO, a device or a stream is written to as it
// is. A reader of the standard output that closes it is no error: it has enough. Errors:
// check_output's, else as the system says.
Result<void> write_output(const Output& output, const std::function<bool(std::ostream&)>& write);
Result<void> write_output(const Output& output, const std::string& text);

// What the tool's exit status means. docs/cli.md has the same table.
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
