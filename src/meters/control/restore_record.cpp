#include "meters/control/restore_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/file.h"
#include "base/json/json_reader.h"

namespace jouleprof::meters::control {
namespace {

constexpr const char* kExtension = ".restore.json";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Result<void> make_folder(const std::filesystem::path& folder) {
  if (folder.empty()) {
    return fail(Errc::kUnavailable,
                "there is no folder to keep a setting's restore file in: set XDG_RUNTIME_DIR or "
                "JOULEPROF_CONTROL_FOLDER, or run as root");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  return tl::unexpected(
      system_error(fmt::format("cannot make {}", folder.string()), error.value()));
}

// What was written to `path` survives a crash of the machine.
Result<void> sync(const std::filesystem::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  const bool synced = fd >= 0 && ::fsync(fd) == 0;
  const int err = errno;
  if (fd >= 0) ::close(fd);
  if (synced) return {};
  return tl::unexpected(system_error(fmt::format("cannot sync {}", path.string()), err));
}

Result<void> write_synced(const std::filesystem::path& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const bool written = fd >= 0 &&
                       ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(fd) == 0;
  const int err = errno;
  if (fd >= 0) ::close(fd);
  if (written) return {};
  return tl::unexpected(system_error(fmt::format("cannot write {}", path.string()), err));
}

}  // namespace

std::filesystem::path control_folder() {
  if (const auto chosen = environment("JOULEPROF_CONTROL_FOLDER"); !chosen.empty()) return chosen;
  if (::geteuid() == 0) return "/run/jouleprof";
  const auto runtime = environment("XDG_RUNTIME_DIR");
  if (runtime.empty()) return {};
  return std::filesystem::path(runtime) / "jouleprof";
}

std::string boot_id() {
  return read_attribute("/proc/sys/kernel/random/boot_id").value_or(std::string{});
}

bool RestoreRecord::is_ours(double value) const {
  constexpr double kRounding = 1;  // of a driver, in W
  return pending || std::any_of(ours.begin(), ours.end(),
                                [value](double our) { return std::abs(our - value) < kRounding; });
}

std::filesystem::path record_path(const std::filesystem::path& folder, const std::string& uuid) {
  return folder / (uuid + kExtension);
}

Result<void> save(const std::filesystem::path& folder, const RestoreRecord& record) {
  if (auto made = make_folder(folder); !made) return made;
  nlohmann::json json{{"uuid", record.uuid},          {"device", record.device},
                      {"knob", word_of(record.knob)}, {"ours", record.ours},
                      {"pending", record.pending},    {"boot_id", record.boot_id}};
  if (record.before) json["before"] = *record.before;
  const auto path = record_path(folder, record.uuid);
  const auto temporary = path.string() + ".new";
  if (auto written = write_synced(temporary, json.dump() + "\n"); !written) return written;
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    return tl::unexpected(system_error(fmt::format("cannot write {}", path.string()), errno));
  }
  return sync(folder, O_RDONLY | O_DIRECTORY);
}

Result<RestoreRecord> load(const std::filesystem::path& path) {
  const auto text = read_file(path, 1 << 20);
  if (!text) return forward_error(text);
  const auto json = parse_json(*text, path.string(), Errc::kCorrupt);
  if (!json) return forward_error(json);
  JsonErrors errors{path.string(), {}, Errc::kCorrupt};
  JsonReader reader(*json, "", errors);
  RestoreRecord record;
  reader.require("uuid", record.uuid);
  reader.read("device", record.device);
  std::string knob;
  reader.require("knob", knob);
  reader.read("boot_id", record.boot_id);
  reader.read("pending", record.pending);
  reader.read("before", record.before, {0, 1e6});
  const auto parsed = parse_knob(knob);
  if (!parsed) {
    reader.error("knob", "must be power, sm-clock or memory-clock");
  } else {
    record.knob = *parsed;
  }
  if (const auto* ours = reader.raw("ours"); ours != nullptr && ours->is_array()) {
    for (const auto& value : *ours) {
      if (value.is_number()) record.ours.push_back(value.get<double>());
    }
  }
  if (record.knob == Knob::kPowerLimit && !record.before) reader.error("before", "is missing");
  if (errors.first) return tl::unexpected(*errors.first);
  return record;
}

std::string owner_lock(const std::string& uuid) { return uuid + ".owner"; }

std::vector<std::filesystem::path> records_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  const auto names = folder.empty() ? Result<std::vector<std::string>>{} : list_folder(folder);
  if (!names) return found;
  for (const auto& name : *names) {
    if (name.ends_with(kExtension)) found.push_back(folder / name);
  }
  return found;
}

Result<std::optional<BoardLock>> BoardLock::take(const std::filesystem::path& folder,
                                                 const std::string& uuid) {
  if (auto made = make_folder(folder); !made) return tl::unexpected(made.error());
  const auto path = folder / (uuid + ".lock");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return tl::unexpected(system_error(fmt::format("cannot open {}", path.string()), errno));
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return BoardLock(fd);
  const int err = errno;
  ::close(fd);
  if (err == EWOULDBLOCK) return std::optional<BoardLock>{};
  return tl::unexpected(system_error(fmt::format("cannot lock {}", path.string()), err));
}

BoardLock::BoardLock(BoardLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

BoardLock::~BoardLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace jouleprof::meters::control
