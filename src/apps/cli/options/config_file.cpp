#include "apps/cli/options/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/file.h"
#include "base/say.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kPatienceMilliseconds = 2000;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Waits for a pipe, such as the shell's <(...), but not for ever.
Result<std::string> read_settings(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return read_file(path, kMostBytes);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return tl::unexpected(system_error("cannot open " + path, errno));
  std::string text;
  std::array<char, 4096> chunk{};
  pollfd writer{fd, POLLIN, 0};
  ssize_t n = 0;
  bool ready = false;
  do {
    ready = ::poll(&writer, 1, kPatienceMilliseconds) == 1;
    n = ready ? ::read(fd, chunk.data(), chunk.size()) : 0;
    if (n > 0) text.append(chunk.data(), static_cast<std::size_t>(n));
  } while (n > 0 && text.size() < kMostBytes);
  ::close(fd);
  if (ready && n == 0) return text;
  return fail(Errc::kTimeout,
              path + " is a pipe into which nothing is written; put the settings into a file");
}

}  // namespace

Result<Settings> parse_config(std::string_view text) {
  Settings settings;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || trim(line.substr(0, equals)).empty()) {
      return fail(Errc::kCorrupt, fmt::format("line {}: '{}' is not name = value", number, line));
    }
    settings.push_back({std::string(trim(line.substr(0, equals))),
                        std::string(trim(line.substr(equals + 1))),
                        fmt::format("line {}", number)});
  }
  return settings;
}

Result<Settings> read_config_file() {
  std::string path = environment("JOULEPROF_CONFIG");
  const bool named = !path.empty();
  if (!named) {
    const std::string base = environment("XDG_CONFIG_HOME");
    const std::string home = environment("HOME");
    if (base.empty() && home.empty()) return Settings{};
    path = (base.empty() ? home + "/.config" : base) + "/jouleprof/config";
  }
  const auto text = read_settings(path);
  if (!text) {
    if (named) return tl::unexpected(text.error());
    // It is read without being asked for, and must not keep a command from running.
    if (text.error().code != Errc::kNotFound) {
      say("jouleprof: {}; going on without it\n", text.error().message);
    }
    return Settings{};
  }
  auto settings = parse_config(*text);
  if (!settings) {
    settings.error().message = path + ": " + settings.error().message;
    return settings;
  }
  for (Setting& setting : *settings) setting.source += " of " + path;
  return settings;
}

}  // namespace jouleprof::cli
