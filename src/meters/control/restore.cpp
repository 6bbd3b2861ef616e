#include "meters/control/restore.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/say.h"

namespace jouleprof::meters::control {
namespace {

// How long the guard of an owner that died may take to restore the setting.
constexpr Duration kGuardPatience = std::chrono::seconds{2};

Result<Restored> restore_limit(const Board& board, RestoreRecord& record) {
  constexpr double kRounding = 1;
  const auto now = board.requested(record.knob);
  if (!now) return forward_error(now);
  if (std::abs(**now - *record.before) < kRounding) return Restored::kUnchanged;
  if (!record.is_ours(**now)) return Restored::kForeign;
  if (auto set = board.set(record.knob, *record.before); !set) return tl::unexpected(set.error());
  const auto then = board.requested(record.knob);
  if (!then) return forward_error(then);
  if (std::abs(**then - *record.before) < kRounding) return Restored::kRestored;
  record.ours.push_back(**then);
  return fail(Errc::kUnavailable,
              fmt::format("{}: the driver accepted a power limit of {:g} W and reports {:g} W",
                          record.device, *record.before, **then));
}

Leftover restore_leftover(const std::filesystem::path& path, const std::filesystem::path& folder,
                          const Result<NvmlSession>& nvml, Leftovers what) {
  auto record = load(path);
  if (!record) return {path.filename().string(), forward_error(record)};
  Leftover leftover{record->device, ""};
  if (record->boot_id != boot_id()) {
    forget(folder, record->uuid);
    leftover.outcome = fmt::format(
        "{}: the {} that a sweep had set ended with the restart of the "
        "machine",
        record->device, name_of(record->knob));
    return leftover;
  }
  if (!nvml) return {record->device, forward_error(nvml)};
  const auto boards = nvml->boards({record->uuid});
  if (!boards) return {record->device, forward_error(boards)};
  const auto restored = restore(boards->front(), *record, folder);
  if (!restored) return {record->device, forward_error(restored)};
  leftover.outcome = describe(*record, *restored);
  if (*restored != Restored::kForeign) return leftover;
  leftover.outcome = fail(Errc::kUnavailable, *leftover.outcome);
  if (what == Leftovers::kSettle) forget(folder, record->uuid);
  return leftover;
}

// Whether the record is left to this process: `lock` is taken where no process has it. A guard that
// hangs after its owner's death keeps the lock, and changes nothing without the record.
Result<bool> is_left(const std::filesystem::path& path, const std::filesystem::path& folder,
                     const std::string& uuid, Descriptor& lock) {
  const HostTime begin = HostClock::now();
  for (;;) {
    auto taken = lock_board(folder, uuid);
    if (!taken) return forward_error(taken);
    lock = std::move(*taken);
    if (lock) break;
    const auto owner = lock_board(folder, owner_lock(uuid));
    if (!owner) return forward_error(owner);
    if (!*owner) return false;
    if (HostClock::now() - begin > kGuardPatience) break;
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
  // Meanwhile the owner or the guard may have restored it.
  return std::filesystem::exists(path);
}

}  // namespace

void forget(const std::filesystem::path& folder, const std::string& uuid) {
  std::error_code ignored;
  std::filesystem::remove(record_path(folder, uuid), ignored);
}

Result<Restored> restore(const Board& board, RestoreRecord& record,
                         const std::filesystem::path& folder) {
  Result<Restored> restored = Restored::kUnchanged;
  if (!record.ours.empty()) {
    if (record.knob == Knob::kPowerLimit) {
      restored = restore_limit(board, record);
    } else if (auto unlocked = board.unlock(record.knob); unlocked) {
      restored = Restored::kRestored;
    } else {
      restored = forward_error(unlocked);
    }
  }
  if (!restored) {
    // Without it, what a driver made of the value is someone else's for the next attempt.
    [[maybe_unused]] const auto kept = save(folder, record);
  } else if (*restored != Restored::kForeign) {
    forget(folder, record.uuid);
  }
  return restored;
}

std::string describe(const RestoreRecord& record, Restored restored) {
  if (restored == Restored::kForeign) {
    return fmt::format(
        "{}: the {} is neither what a sweep found ({:g} {}) nor what it set: another program or "
        "the "
        "driver changed it; it was left",
        record.device, name_of(record.knob), record.before.value_or(0), unit_of(record.knob));
  }
  if (!record.before)
    return fmt::format("{}: the {} that a sweep locked is unlocked", record.device,
                       name_of(record.knob));
  return fmt::format("{}: the {} is {:g} {} again, as a sweep found it", record.device,
                     name_of(record.knob), *record.before, unit_of(record.knob));
}

std::vector<Leftover> restore_leftovers(const std::filesystem::path& folder,
                                        const std::string& library, Leftovers what) {
  std::vector<Leftover> all;
  std::optional<Result<NvmlSession>> nvml;
  for (const auto& path : records_in(folder)) {
    const auto record = load(path);
    const std::string uuid = record ? record->uuid : path.stem().stem().string();
    Descriptor lock;
    const auto left = is_left(path, folder, uuid, lock);
    if (!left) {
      all.push_back({uuid, forward_error(left)});
      continue;
    }
    if (!*left) {
      if (what == Leftovers::kSettle && std::filesystem::exists(path)) {
        all.push_back({record ? record->device : uuid,
                       fail(Errc::kUnavailable,
                            "the sweep that set it has not ended, and restores it at its end")});
      }
      continue;
    }
    if (!nvml) nvml.emplace(NvmlSession::open(library));
    all.push_back(restore_leftover(path, folder, *nvml, what));
  }
  return all;
}

namespace {

constexpr const char* kExtension = ".restore.json";

Result<void> make_folder(const std::filesystem::path& folder) {
  if (folder.empty()) {
    return fail(Errc::kUnavailable,
                "there is no folder to keep a setting's restore file in: set XDG_RUNTIME_DIR or "
                "JOULEPROF_CONTROL_FOLDER, or run as root");
  }
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  return system_failure(fmt::format("cannot make {}", folder.string()), error.value());
}

// Names of files in it survive a crash of the machine.
Result<void> sync(const std::filesystem::path& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && ::fsync(fd.get()) == 0) return {};
  return system_failure(fmt::format("cannot sync {}", folder.string()), errno);
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
  return pending || std::ranges::any_of(
                        ours, [value](double our) { return std::abs(our - value) < kRounding; });
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
  if (auto written = replace_file(path, json_text(json) + "\n"); !written) return written;
  return sync(folder);
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

Result<Descriptor> lock_board(const std::filesystem::path& folder, const std::string& uuid) {
  if (auto made = make_folder(folder); !made) return tl::unexpected(made.error());
  const auto path = folder / (uuid + ".lock");
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return system_failure(fmt::format("cannot open {}", path.string()), errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno == EWOULDBLOCK) return Descriptor();
  return system_failure(fmt::format("cannot lock {}", path.string()), errno);
}

namespace {

constexpr int kPatienceMs = 10'000;
constexpr int kEndMs = 2'000;
constexpr std::array kIgnored{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGTTOU, SIGTTIN, SIGPIPE};

void keep_over_exec(int fd) { ::fcntl(fd, F_SETFD, 0); }

// In the child of a fork: only what is safe there.
[[noreturn]] void become_guard(char* const* words, int fd, const std::vector<int>& lock_fds) {
  ::setsid();
  if (::fork() != 0) ::_exit(0);  // init adopts the guard and collects its status
  for (const int signal : kIgnored) ::signal(signal, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  keep_over_exec(fd);
  for (const int lock : lock_fds) keep_over_exec(lock);
  const int null = ::open("/dev/null", O_RDWR);
  if (null >= 0) {
    ::dup2(null, 0);
    ::dup2(null, 1);
  }
  ::execv(words[0], words);
  ::_exit(127);
}

// The guard's process id, which it sends when it is ready.
Result<pid_t> wait_until_ready(int fd) {
  pollfd poll{fd, POLLIN, 0};
  int ready = 0;
  do {
    ready = ::poll(&poll, 1, kPatienceMs);
  } while (ready < 0 && errno == EINTR);
  pid_t pid = 0;
  if (ready == 1 && ::read(fd, &pid, sizeof pid) == static_cast<ssize_t>(sizeof pid)) return pid;
  return fail(Errc::kUnavailable,
              "the process that restores the GPU's settings did not start; nothing was changed");
}

// Returns when the owner has closed its end or died.
void wait_for_end(int fd) {
  char byte = 0;
  for (;;) {
    const auto got = ::read(fd, &byte, 1);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
  }
}

}  // namespace

Result<std::unique_ptr<Guard>> Guard::start(const GuardOptions& options) {
  Descriptor own;
  Descriptor of_guard;
  if (!make_socket_pair(own, of_guard)) return system_failure("cannot make a socket", errno);
  std::vector<std::string> texts = options.program;
  texts.push_back(fmt::format("{}", of_guard.get()));
  texts.push_back(options.folder.string());
  texts.insert(texts.end(), options.uuids.begin(), options.uuids.end());
  std::vector<char*> words;
  for (auto& text : texts) words.push_back(text.data());
  words.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) become_guard(words.data(), of_guard.get(), options.lock_fds);
  if (child < 0) return system_failure("cannot start a process", errno);
  of_guard.close();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const auto pid = wait_until_ready(own.get());
  if (!pid) return forward_error(pid);
  return std::unique_ptr<Guard>(new Guard(std::move(own), *pid));
}

Guard::~Guard() {
  if (::getpid() != owner_) return;
  ::shutdown(fd(), SHUT_WR);
  pollfd end{fd(), POLLIN, 0};
  while (::poll(&end, 1, kEndMs) < 0 && errno == EINTR) {
  }
}

int run_guard(int fd, const std::filesystem::path& folder, const std::vector<std::string>& uuids,
              const std::string& library) {
  // The driver is opened now: after the owner's death it might forget a limit without a client.
  const auto nvml = NvmlSession::open(library);
  if (!nvml) return 1;
  const auto boards = nvml->boards(uuids);
  if (!boards) return 1;
  const pid_t self = ::getpid();
  if (::send(fd, &self, sizeof self, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof self)) return 1;
  wait_for_end(fd);
  int status = 0;
  for (const auto& board : *boards) {
    auto record = load(record_path(folder, board.uuid()));
    if (!record) continue;  // its owner has restored it
    const auto restored = restore(board, *record, folder);
    if (restored) {
      say("jouleprof: {}\n", describe(*record, *restored));
    } else {
      say("jouleprof: {}: the {} could not be restored: {}. Run as root: jouleprof apply "
          "--restore\n",
          record->device, name_of(record->knob), restored.error().message);
      status = 1;
    }
  }
  return status;
}

}  // namespace jouleprof::meters::control
