#include "apps/cli/measure/share_choice.h"

#include <fmt/format.h>
#include <grp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/text.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Where programs look for it (meters::shared_socket). systemd names the folder that it made.
std::filesystem::path usual_path() {
  if (!environment("JOULEPROF_NVML_LIBRARY").empty()) return {};
  if (const std::string folders = environment("RUNTIME_DIRECTORY"); !folders.empty()) {
    return std::filesystem::path(split(folders, ':').front()) /
           std::filesystem::path(meters::kServiceSocket).filename();
  }
  const std::string own = environment("XDG_RUNTIME_DIR");
  if (own.empty()) return {};
  return std::filesystem::path(own) / meters::kServiceSocket;
}

Result<gid_t> group_of(const std::string& name) {
  if (const auto number = parse_integer(name); number && *number >= 0) {
    return static_cast<gid_t>(*number);
  }
  const group* const found = ::getgrnam(name.c_str());
  if (found == nullptr) {
    return fail(Errc::kInvalidArgument, fmt::format("--share-group {}: no such group", name));
  }
  return found->gr_gid;
}

Result<mode_t> mode_of(const std::string& text) {
  mode_t mode = 0;
  const bool is_octal =
      !text.empty() && text.size() <= 4 && std::all_of(text.begin(), text.end(), [&mode](char c) {
        mode = mode * 8 + static_cast<mode_t>(c - '0');
        return c >= '0' && c <= '7';
      });
  if (is_octal && mode <= 0777) return mode;
  return fail(Errc::kInvalidArgument,
              fmt::format("--share-mode {}: give the permissions in octal, such as 0660", text));
}

}  // namespace

void ShareChoice::declare(CLI::App& app) {
  app.add_option("--share", path_, "");
  app.add_option("--share-group", group_, "");
  app.add_option("--share-mode", mode_, "");
  app.add_option("--share-fastest", fastest_, "");
}

Result<std::optional<session::ShareOptions>> ShareChoice::options() const {
  session::ShareOptions out;
  const auto fastest = parse_duration(fastest_);
  if (!fastest) return forward_error(fastest);
  if (*fastest < 1ms || *fastest > 1min) {
    return fail(Errc::kInvalidArgument, "--share-fastest must be between 1ms and 1min");
  }
  out.fastest = *fastest;
  if (!group_.empty()) {
    const auto group = group_of(group_);
    if (!group) return forward_error(group);
    out.access.group = *group;
    out.access.mode = 0660;
  }
  if (!mode_.empty()) {
    const auto mode = mode_of(mode_);
    if (!mode) return forward_error(mode);
    out.access.mode = *mode;
  }
  if (path_ == "off") return std::optional<session::ShareOptions>{};
  out.access.path = is_named() ? std::filesystem::path(path_) : usual_path();
  if (out.access.path.empty()) return std::optional<session::ShareOptions>{};
  return std::optional(std::move(out));
}

}  // namespace jouleprof::cli
