#include "meters/control/restore.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

namespace jouleprof::meters::control {
namespace {

void remove_record(const std::filesystem::path& folder, const std::string& uuid) {
  std::error_code ignored;
  std::filesystem::remove(record_path(folder, uuid), ignored);
}

Result<Restored> restore_limit(const Board& board, const RestoreRecord& record) {
  constexpr double kRounding = 1;
  const auto now = board.requested(record.knob);
  if (!now) return forward_error(now);
  if (std::abs(**now - *record.before) < kRounding) return Restored::kUnchanged;
  if (!record.is_ours(**now)) return Restored::kForeign;
  if (auto set = board.set(record.knob, *record.before); !set) return tl::unexpected(set.error());
  const auto then = board.requested(record.knob);
  if (!then) return forward_error(then);
  if (std::abs(**then - *record.before) < kRounding) return Restored::kRestored;
  return fail(Errc::kUnavailable,
              fmt::format("{}: the driver accepted a power limit of {:g} W and reports {:g} W",
                          record.device, *record.before, **then));
}

Leftover restore_leftover(const std::filesystem::path& path, const std::filesystem::path& folder,
                          const Result<NvmlSession>& nvml) {
  const auto record = load(path);
  if (!record) return {path.filename().string(), forward_error(record)};
  Leftover leftover{record->device, ""};
  if (record->boot_id != boot_id()) {
    remove_record(folder, record->uuid);
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
  return leftover;
}

}  // namespace

Result<Restored> restore(const Board& board, const RestoreRecord& record,
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
  if (restored) remove_record(folder, record.uuid);
  return restored;
}

std::string describe(const RestoreRecord& record, Restored restored) {
  if (restored == Restored::kForeign) {
    return fmt::format("{}: the {} is neither what a sweep found nor what it set; it was left",
                       record.device, name_of(record.knob));
  }
  if (!record.before)
    return fmt::format("{}: the {} that a sweep locked is unlocked", record.device,
                       name_of(record.knob));
  return fmt::format("{}: the {} is {:g} {} again, as a sweep found it", record.device,
                     name_of(record.knob), *record.before, unit_of(record.knob));
}

std::vector<Leftover> restore_leftovers(const std::filesystem::path& folder,
                                        const std::string& library) {
  std::vector<Leftover> all;
  std::optional<Result<NvmlSession>> nvml;
  for (const auto& path : records_in(folder)) {
    const auto record = load(path);
    const std::string uuid = record ? record->uuid : path.stem().stem().string();
    const auto lock = BoardLock::take(folder, uuid);
    if (!lock) {
      all.push_back({uuid, forward_error(lock)});
      continue;
    }
    if (!*lock) continue;  // its owner lives
    // Between the listing and the lock its owner may have restored it.
    if (!std::filesystem::exists(path)) continue;
    if (!nvml) nvml.emplace(NvmlSession::open(library));
    all.push_back(restore_leftover(path, folder, *nvml));
  }
  return all;
}

}  // namespace jouleprof::meters::control
