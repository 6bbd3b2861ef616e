#include "apps/cli/terminal/status_bar.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "base/say.h"

namespace jouleprof::cli {
namespace {

// Control sequences of ECMA-48 and the DEC VT100, which all terminals of today understand.
constexpr const char* kSaveCursor = "\0337";
constexpr const char* kRestoreCursor = "\0338";

winsize terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

void put(const std::string& text) { say(text); }

}  // namespace

StatusBar::StatusBar(bool wanted) {
  const char* term = std::getenv("TERM");
  active_ = wanted && isatty(STDERR_FILENO) != 0 && term != nullptr &&
            std::string_view(term) != "dumb" && terminal_size().ws_row >= 4;
}

StatusBar::~StatusBar() {
  if (rows_ == 0) return;
  put(fmt::format("{}\033[r\033[{};1H\033[K{}", kSaveCursor, rows_, kRestoreCursor));
}

int StatusBar::width() const { return active_ ? terminal_size().ws_col : 0; }

void StatusBar::reserve(int rows) {
  // Make room below the cursor first, so that the last row is free.
  put(fmt::format("\n\033[A{}\033[1;{}r{}", kSaveCursor, rows - 1, kRestoreCursor));
  rows_ = rows;
}

void StatusBar::show(const std::string& line) {
  if (!active_) return;
  const int rows = terminal_size().ws_row;
  if (rows < 4) return;
  if (rows != rows_) reserve(rows);
  put(fmt::format("{}\033[{};1H\033[K{}{}", kSaveCursor, rows, line, kRestoreCursor));
}

}  // namespace jouleprof::cli
