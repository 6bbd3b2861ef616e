#include "apps/cli/config_file.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
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
    settings.emplace_back(trim(line.substr(0, equals)), trim(line.substr(equals + 1)));
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
  const auto text = read_file(path, 1 << 20);
  if (!text) {
    if (!named && text.error().code == Errc::kNotFound) return Settings{};
    return tl::unexpected(text.error());
  }
  auto settings = parse_config(*text);
  if (!settings) settings.error().message = path + ": " + settings.error().message;
  return settings;
}

}  // namespace jouleprof::cli
