#include "apps/cli/terminal/browser.h"

#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

namespace jouleprof::cli {

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

}  // namespace jouleprof::cli
