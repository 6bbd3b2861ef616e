// Where verbs write: a file that appears when it is complete, a stream, the terminal; and the
// status that they end with.
#pragma once

#include <unistd.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/result.h"
#include "report/cells.h"

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
// Complains of a command line that cannot be; returns kUsageError.
int complain_of_usage(std::string message);

// Says on stderr where the recording lies, and the command that reports it.
void say_wrote(const std::string& recording);

// Width, height and colour for text that goes to `fd`: height and colour on a terminal only, no
// colour with NO_COLOR. COLUMNS sets the width, also of files and pipes; those have 80 without it.
report::TextOptions text_options(int fd);

// Showing a page that was written.
// Opens the file with xdg-open, and does not wait for the browser. Errors: invalid_argument for the
// standard output; unavailable when there is no xdg-open.
Result<void> open_in_browser(const std::string& path);

// A line of status at the bottom of the terminal that leaves the command's output alone.
// Keeps the terminal's last row out of its scrolling region and writes there. Does nothing where
// stderr is no terminal, or is another job's. Restores the terminal when destroyed.
class StatusBar {
 public:
  explicit StatusBar(bool wanted);
  StatusBar(const StatusBar&) = delete;
  StatusBar& operator=(const StatusBar&) = delete;
  ~StatusBar();

  int width() const;  // columns of the terminal; 0 when there is none
  void show(const std::string& line);

 private:
  void reserve(int rows);

  bool active_ = false;
  int rows_ = 0;  // that the region was made for
};

}  // namespace jouleprof::cli
