// What the terminal can show.
#pragma once

#include <unistd.h>

#include <string>

#include "base/result.h"
#include "report/cells.h"

namespace jouleprof::cli {

// Width, height and colour for text that goes to `fd`: height and colour on a terminal only, no
// colour with NO_COLOR. COLUMNS sets the width, also of files and pipes; those have 80 without it.
report::TextOptions text_options(int fd);

// Showing a page that was written.

// Opens the file with xdg-open, and does not wait for the browser. Errors: invalid_argument for the
// standard output; unavailable when there is no xdg-open.
Result<void> open_in_browser(const std::string& path);

// A line of status at the bottom of the terminal that leaves the command's output alone.

// Keeps the terminal's last row out of its scrolling region and writes there. Does nothing where
// stderr is no terminal. Restores the terminal when destroyed.
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
