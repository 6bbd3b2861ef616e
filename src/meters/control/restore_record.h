// The file from which a setting is restored after its owner died.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/control/knob.h"

namespace jouleprof::meters::control {

// The folder of records and locks: JOULEPROF_CONTROL_FOLDER, else for root /run/jouleprof, else
// $XDG_RUNTIME_DIR/jouleprof; empty without any.
std::filesystem::path control_folder();

// The identity of the running kernel: no setting outlives it. Empty where unknown.
std::string boot_id();

// What is to be restored on one board.
struct RestoreRecord {
  std::string uuid;
  std::string device;  // for messages
  Knob knob = Knob::kPowerLimit;
  std::optional<double> before;  // as found; absent for a clock: not locked
  // What may be set by us now: written before each change, and what was read back after it, since
  // a driver may clamp or round a value.
  std::vector<double> ours;
  std::string boot_id;
  // A change was requested, and what the driver made of it is not known: each value may be ours.
  bool pending = false;

  bool is_changed() const { return !ours.empty(); }
  bool is_ours(double value) const;
  bool operator==(const RestoreRecord&) const = default;
};

std::filesystem::path record_path(const std::filesystem::path& folder, const std::string& uuid);

// Replaces the file in one step and waits until it is on disk. Errors: of the file system.
Result<void> save(const std::filesystem::path& folder, const RestoreRecord& record);
// Errors: not_found; corrupt.
Result<RestoreRecord> load(const std::filesystem::path& path);
// Those of a folder that does not exist: none.
std::vector<std::filesystem::path> records_in(const std::filesystem::path& folder);

// The name of a second lock, which the owner holds alone: where it is free, the owner has died.
std::string owner_lock(const std::string& uuid);

// The lock of a board: one owner at a time, until its last holder has closed the descriptor or
// died.
class BoardLock {
 public:
  // Nothing when another process owns the board. Errors: of the file system.
  static Result<std::optional<BoardLock>> take(const std::filesystem::path& folder,
                                               const std::string& uuid);
  BoardLock(BoardLock&& other) noexcept;
  BoardLock& operator=(BoardLock&&) = delete;
  BoardLock(const BoardLock&) = delete;
  ~BoardLock();
  int fd() const { return fd_; }

 private:
  explicit BoardLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace jouleprof::meters::control
