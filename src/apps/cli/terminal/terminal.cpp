#include "apps/cli/terminal/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace jouleprof::cli {
namespace {

constexpr int kLeastHeight = 24;

}  // namespace

report::TextOptions text_options(int fd) {
  report::TextOptions options;
  if (isatty(fd) == 0) return options;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  options.colour = (no_color == nullptr || *no_color == '\0') && term != nullptr &&
                   std::string_view(term) != "dumb";
  options.height = kLeastHeight;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col >= 40) options.width = size.ws_col;
    options.height = std::max(kLeastHeight, size.ws_row - 1);  // the last line is the prompt's
  }
  return options;
}

}  // namespace jouleprof::cli
