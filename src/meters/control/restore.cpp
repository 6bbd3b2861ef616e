#include "meters/control/restore.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "base/clock.h"

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
                     const std::string& uuid, std::optional<BoardLock>& lock) {
  const HostTime begin = HostClock::now();
  for (;;) {
    auto taken = BoardLock::take(folder, uuid);
    if (!taken) return forward_error(taken);
    if (*taken) {
      lock.emplace(std::move(**taken));
      break;
    }
    const auto owner = BoardLock::take(folder, owner_lock(uuid));
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
    std::optional<BoardLock> lock;
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

}  // namespace jouleprof::meters::control
