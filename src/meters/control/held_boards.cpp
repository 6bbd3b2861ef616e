#include "meters/control/held_boards.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "meters/control/restore.h"
#include "model/sweep.h"

namespace jouleprof::meters::control {
namespace {

// The effective capability that the driver asks for.
bool has_system_capability() {
  constexpr unsigned kSysAdmin = 21;
  const auto status = read_file("/proc/self/status");
  if (!status) return ::geteuid() == 0;
  for (const auto line : split(*status, '\n')) {
    if (!line.starts_with("CapEff:")) continue;
    const std::string digits(trim(line.substr(7)));
    return (std::strtoull(digits.c_str(), nullptr, 16) >> kSysAdmin & 1U) != 0;
  }
  return ::geteuid() == 0;
}

Error not_permitted(Knob knob, const std::string& reason,
                    const std::string& after = "Nothing was changed") {
  const std::string what(name_of(knob));
  return {
      Errc::kPermissionDenied,
      fmt::format("the {} cannot be set: {}. {}. Ask the administrator to run "
                  "this command as root, or to set the {} (nvidia-smi {} {}); in a container, it "
                  "needs --cap-add SYS_ADMIN",
                  what, reason, after, what, model::knob_words(label_of(knob))->smi_flag,
                  unit_of(knob))};
}

// Another process that looks whether the owner lives has it for a moment.
Result<Descriptor> take_owner_lock(const std::filesystem::path& folder, const std::string& uuid) {
  constexpr int kTries = 100;
  for (int i = 1;; ++i) {
    auto owner = lock_board(folder, owner_lock(uuid));
    if (!owner || *owner || i == kTries) return owner;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
}

Result<void> check_range(const KnobRange& range, Knob knob) {
  if (range.most >= range.least) return {};
  return fail(
      Errc::kInvalidArgument,
      fmt::format("the boards have no common {}; choose some with --devices", name_of(knob)));
}

}  // namespace

Result<std::unique_ptr<HeldBoards>> HeldBoards::take(const HoldOptions& options) {
  auto nvml = NvmlSession::open(options.library);
  if (!nvml) return forward_error(nvml);
  if (!nvml->is_simulated() && !has_system_capability()) {
    return tl::unexpected(
        not_permitted(options.knob, "this process is not root with CAP_SYS_ADMIN"));
  }
  std::unique_ptr<HeldBoards> held(new HeldBoards(std::move(*nvml), options));
  if (auto opened = held->open(); !opened) return tl::unexpected(opened.error());
  return held;
}

Result<BoardState> look_at(const HoldOptions& options) {
  const auto nvml = NvmlSession::open(options.library);
  if (!nvml) return forward_error(nvml);
  const auto boards = nvml->boards(options.devices);
  if (!boards) return forward_error(boards);
  BoardState state;
  state.may_set = nvml->is_simulated() || has_system_capability();
  for (const Board& board : *boards) {
    const auto range = board.range(options.knob);
    if (!range) return forward_error(range);
    const auto found = board.requested(options.knob);
    if (!found) return forward_error(found);
    const bool is_first = state.uuids.empty();
    state.range = is_first ? *range : state.range.common(*range);
    if (is_first || state.found != *found) state.found = is_first ? *found : std::nullopt;
    state.uuids.push_back(board.uuid());
  }
  if (auto ok = check_range(state.range, options.knob); !ok) return tl::unexpected(ok.error());
  return state;
}

BoardState HeldBoards::state() const {
  BoardState state{range_, found(), {}, true};
  for (const Board& board : boards_) state.uuids.push_back(board.uuid());
  return state;
}

Result<void> HeldBoards::check_free(const Board& board) const {
  if (options_.shared) return {};
  if (board.gpu().mig_enabled) {
    return fail(Errc::kUnavailable,
                fmt::format("{} is divided into MIG instances, and a setting applies to all of "
                            "them; --shared sets it nevertheless",
                            board.device()));
  }
  auto pids = board.processes();
  std::erase_if(pids, [this](unsigned pid) {
    return std::ranges::find(options_.users, static_cast<pid_t>(pid)) != options_.users.end();
  });
  if (pids.empty()) return {};
  return fail(
      Errc::kUnavailable,
      fmt::format("other processes use {} and would be slowed, too (pid {}); wait for their "
                  "end, or use --shared",
                  board.device(), fmt::join(pids, ", ")));
}

Result<void> HeldBoards::open() {
  auto boards = nvml_.boards(options_.devices);
  if (!boards) return tl::unexpected(boards.error());
  boards_ = std::move(*boards);
  for (const Board& board : boards_) {
    if (auto is_free = check_free(board); !is_free) return is_free;
    auto lock = lock_board(options_.folder, board.uuid());
    if (!lock) return tl::unexpected(lock.error());
    if (!*lock) {
      return fail(Errc::kUnavailable,
                  fmt::format("another sweep or apply owns {}; wait for its end (locked: "
                              "{}/{}.lock)",
                              board.device(), options_.folder.string(), board.uuid()));
    }
    locks_.push_back(std::move(*lock));
    auto owner = take_owner_lock(options_.folder, board.uuid());
    if (!owner) return tl::unexpected(owner.error());
    if (*owner) owner_locks_.push_back(std::move(*owner));
    if (std::filesystem::exists(record_path(options_.folder, board.uuid()))) {
      return fail(Errc::kUnavailable,
                  fmt::format("{} still has a setting of a sweep that was killed; run as root: "
                              "jouleprof apply --restore",
                              board.device()));
    }
    const auto range = board.range(options_.knob);
    if (!range) return tl::unexpected(range.error());
    range_ = &board == boards_.data() ? *range : range_.common(*range);
    const auto found = board.requested(options_.knob);
    if (!found) return tl::unexpected(found.error());
    records_.push_back({board.uuid(), board.device(), options_.knob, *found, {}, boot_id()});
  }
  return check_range(range_, options_.knob);
}

HeldBoards::~HeldBoards() {
  if (watch_.joinable()) {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    watch_.join();
  }
  [[maybe_unused]] const auto restored = restore();
}

std::optional<double> HeldBoards::found() const {
  const auto& first = records_.front().before;
  const bool same = std::ranges::all_of(records_, [&](const auto& r) { return r.before == first; });
  return same ? first : std::nullopt;
}

Result<void> HeldBoards::start_guard() {
  std::vector<std::string> uuids;
  std::vector<int> fds;
  for (const Board& board : boards_) uuids.push_back(board.uuid());
  for (const Descriptor& lock : locks_) fds.push_back(lock.get());
  auto guard = Guard::start({options_.guard, options_.folder, uuids, fds});
  if (!guard) return tl::unexpected(guard.error());
  guard_ = std::move(*guard);
  wake_ = Descriptor(::eventfd(0, EFD_CLOEXEC));
  if (!wake_) return system_failure("cannot make an eventfd", errno);
  auto watch = start_thread([this] { watch_guard(); },
                            [this](const char* why) {
                              const std::lock_guard lock(mutex_);
                              lost_ = Error{Errc::kInternal, why};
                            });
  if (!watch) return tl::unexpected(watch.error());
  watch_ = std::move(*watch);
  return {};
}

void HeldBoards::watch_guard() {
  pollfd watched[2]{{guard_->fd(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
  while (::poll(watched, 2, -1) < 0 && errno == EINTR) {
  }
  if (watched[1].revents != 0) return;
  const std::lock_guard lock(mutex_);
  const auto restored = restore_locked();
  lost_ = Error{Errc::kUnavailable,
                fmt::format("the process that guards the {} was killed (pid {}); {}",
                            name_of(options_.knob), guard_->pid(),
                            restored ? "the settings were restored" : restored.error().message)};
}

// The record names the value before the board can hold it, and what the driver made of it after.
Result<void> HeldBoards::change(std::size_t index, double value) {
  RestoreRecord& record = records_[index];
  const RestoreRecord before = record;
  // What holds now, and what is to come.
  record.ours = record.is_changed() ? std::vector{record.ours.back()} : std::vector<double>{};
  record.ours.push_back(value);
  record.pending = true;
  auto changed = save(options_.folder, record);
  if (!changed) {
    record = before;
    if (!record.is_changed()) forget(options_.folder, record.uuid);
    return changed;
  }
  changed = boards_[index].set(options_.knob, value);
  const auto now = boards_[index].requested(options_.knob);
  if (now) {
    record.pending = false;
    if (*now && **now != value) record.ours.push_back(**now);
    // Without it the record says that it is not known, and each value is restored.
    [[maybe_unused]] const auto kept = save(options_.folder, record);
  }
  if (changed) return {};
  if (now && !before.is_changed() && (!*now || *now == before.before)) {
    record = before;
    forget(options_.folder, record.uuid);
  }
  return changed;
}

Result<std::vector<ReadBack>> HeldBoards::apply(double value) {
  {
    const std::lock_guard lock(mutex_);
    if (lost_) return tl::unexpected(*lost_);
    if (!guard_) {
      if (auto started = start_guard(); !started) return tl::unexpected(started.error());
    }
    for (std::size_t i = 0; i < boards_.size(); ++i) {
      auto changed = change(i, value);
      if (changed) continue;
      const bool any =
          std::ranges::any_of(records_, [](const RestoreRecord& r) { return r.is_changed(); });
      const auto restored = restore_locked();
      if (changed.error().code != Errc::kPermissionDenied) return tl::unexpected(changed.error());
      return tl::unexpected(not_permitted(options_.knob, changed.error().message,
                                          !any       ? "Nothing was changed"
                                          : restored ? "What was set before is restored"
                                                     : restored.error().message));
    }
  }
  return read_back();
}

std::vector<ReadBack> HeldBoards::read_back() const {
  std::vector<ReadBack> all;
  for (const Board& board : boards_) {
    const auto requested = board.requested(options_.knob);
    all.push_back({board.device(), requested ? *requested : std::nullopt, board.enforced_limit(),
                   board.celsius()});
  }
  return all;
}

Result<void> HeldBoards::restore() {
  const std::lock_guard lock(mutex_);
  return restore_locked();
}

Result<void> HeldBoards::restore_locked() {
  Result<void> outcome;
  for (std::size_t i = 0; i < records_.size(); ++i) {
    if (!records_[i].is_changed()) continue;
    const auto restored = control::restore(boards_[i], records_[i], options_.folder);
    std::optional<Error> left;
    if (!restored) {
      left = restored.error();
    } else if (*restored == Restored::kForeign) {
      left = Error{Errc::kUnavailable, describe(records_[i], *restored)};
      forget(options_.folder, records_[i].uuid);
    }
    if (restored) records_[i].ours.clear();
    if (left && outcome) outcome = tl::unexpected(*left);
  }
  return outcome;
}

std::optional<Error> HeldBoards::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

std::vector<std::string> HeldBoards::warnings() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const Board& board : boards_) {
    if (board.is_persistent() == false && options_.knob == Knob::kPowerLimit) {
      all.push_back(
          fmt::format("{}: persistence mode is disabled, so that the driver forgets the limit "
                      "when its last client ends; jouleprof stays a client during the "
                      "sweep",
                      board.device()));
    }
  }
  return all;
}

}  // namespace jouleprof::meters::control
