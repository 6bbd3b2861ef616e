#include "apps/cli/input.h"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/file.h"
#include "base/text.h"
#include "recording/reader.h"

namespace jouleprof::cli {

void Input::declare(CLI::App& app) {
  app.add_option("FILE", file, "")->required();
  app.add_option("--from", from, "");
  app.add_option("--to", to, "");
}

Result<analysis::Options> Input::options() const {
  analysis::Options options;
  if (!from.empty()) {
    const auto time = parse_duration(from);
    if (!time) return tl::unexpected(time.error());
    options.from = *time;
  }
  if (!to.empty()) {
    const auto time = parse_duration(to);
    if (!time) return tl::unexpected(time.error());
    options.to = *time;
  }
  return options;
}

Result<Analysed> read_and_analyse(const Input& input) {
  const auto options = input.options();
  if (!options) return tl::unexpected(options.error());
  auto recording = recording::read_recording(input.file);
  if (!recording) return forward_error(recording);
  auto profile = analysis::analyse(*recording, *options);
  if (!profile) {
    return fail(profile.error().code, fmt::format("{}: {}", input.file, profile.error().message));
  }
  return Analysed{std::move(*recording), std::move(*profile)};
}

Result<void> write_output(const std::string& path, bool overwrite,
                          const std::function<void(std::ostream&)>& write) {
  const bool to_stdout = path.empty() || path == "-";
  std::ofstream file;
  if (!to_stdout) {
    if (!overwrite && std::filesystem::exists(path)) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("{} exists; choose another name or use --force", path));
    }
    errno = 0;
    file.open(path, std::ios::binary | std::ios::trunc);
    if (!file) return tl::unexpected(system_error(fmt::format("cannot write {}", path), errno));
  }
  std::ostream& out = to_stdout ? std::cout : file;
  errno = 0;
  write(out);
  out.flush();
  if (!out) {
    return tl::unexpected(system_error(
        fmt::format("cannot write {}", to_stdout ? "to the standard output" : path), errno));
  }
  return {};
}

}  // namespace jouleprof::cli
