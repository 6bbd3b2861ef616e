#include "apps/cli/terminal/terminal.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/say.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

constexpr int kLeastHeight = 24;
constexpr int kLeastWidth = 40;

std::optional<int> environment_columns() {
  const char* text = std::getenv("COLUMNS");
  const auto columns = parse_integer(text != nullptr ? text : "");
  if (!columns || *columns < kLeastWidth || *columns > 10'000) return std::nullopt;
  return static_cast<int>(*columns);
}

}  // namespace

report::TextOptions text_options(int fd) {
  report::TextOptions options;
  const auto columns = environment_columns();
  if (columns) options.width = *columns;
  if (isatty(fd) == 0) return options;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  options.colour = (no_color == nullptr || *no_color == '\0') && term != nullptr &&
                   std::string_view(term) != "dumb";
  options.height = kLeastHeight;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col >= kLeastWidth && !columns) options.width = size.ws_col;
    options.height = std::max(kLeastHeight, size.ws_row - 1);  // the last line is the prompt's
  }
  return options;
}

Result<void> open_in_browser(const std::string& path) {
  if (path == "-") {
    return fail(Errc::kInvalidArgument, "--open needs a file: give --html a name instead of -");
  }
  // An absolute path is no option and no address, whatever its name is.
  std::error_code failed;
  std::string file = std::filesystem::absolute(path, failed).string();
  std::string program = "xdg-open";
  char* arguments[] = {program.data(), file.data(), nullptr};
  pid_t pid = 0;
  // It ends at once; its exit status says nothing about the browser.
  const int error = ::posix_spawnp(&pid, program.c_str(), nullptr, nullptr, arguments, environ);
  if (error != 0) {
    return fail(Errc::kUnavailable,
                fmt::format("cannot start xdg-open ({}); {} is written, open it in a browser",
                            std::strerror(error), path));
  }
  return {};
}

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
