// The boards of one job, locked for this process, recorded and guarded.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "meters/control/restore.h"
#include "meters/control/setting.h"

namespace jouleprof::meters::control {

struct HoldOptions {
  Knob knob = Knob::kPowerLimit;
  std::vector<std::string> devices;  // as select_gpus; empty: all
  std::string library;               // as NvmlSession::open
  std::filesystem::path folder;      // control_folder()
  std::vector<std::string> guard;    // GuardOptions::program
  std::vector<pid_t> users;          // processes that may compute on a board
  // Also where other processes compute on a board, or MIG instances divide it.
  bool shared = false;
};

// What the boards of a job report, without a lock or a change.
struct BoardState {
  KnobRange range;              // of all boards
  std::optional<double> found;  // absent where boards differ, or the driver does not report it
  std::vector<std::string> uuids;
  bool may_set = false;  // as far as is known without trying
};

// Errors: of NVML; invalid_argument for an unknown device, or boards without a common range.
Result<BoardState> look_at(const HoldOptions& options);

// Thread-safe. The settings are restored by restore(), by the destructor, by the guard within a
// second of this process's death, by this process within a second of the guard's death, and from
// the records at the next start after the death of both.
class HeldBoards : public SettingControl {
 public:
  // Changes nothing. Errors: of NVML; invalid_argument for an unknown device; permission_denied
  // where this process cannot change settings, with what to ask for; unavailable where another
  // process owns a board or computes on it.
  static Result<std::unique_ptr<HeldBoards>> take(const HoldOptions& options);
  ~HeldBoards() override;

  const KnobRange& range() const override { return range_; }
  std::optional<double> found() const override;
  Result<std::vector<ReadBack>> apply(double value) override;
  std::vector<ReadBack> read_back() const override;
  Result<void> restore() override;
  std::optional<Error> lost() const override;

  BoardState state() const;
  const std::vector<Board>& boards() const { return boards_; }
  // What a reader of the result must know.
  std::vector<std::string> warnings() const;
  pid_t guard_pid() const { return guard_ ? guard_->pid() : 0; }

 private:
  HeldBoards(NvmlSession nvml, HoldOptions options)
      : options_(std::move(options)), nvml_(std::move(nvml)) {}
  Result<void> open();
  Result<void> check_free(const Board& board) const;
  Result<void> start_guard();
  void watch_guard();
  Result<void> change(std::size_t index, double value);
  Result<void> restore_locked();

  const HoldOptions options_;
  NvmlSession nvml_;
  std::vector<Board> boards_;
  std::vector<Descriptor> locks_;        // with the guard
  std::vector<Descriptor> owner_locks_;  // alone
  std::vector<RestoreRecord> records_;
  KnobRange range_;
  mutable std::mutex mutex_;
  std::unique_ptr<Guard> guard_;
  std::optional<Error> lost_;
  Descriptor wake_;  // ends the watching thread
  std::thread watch_;
};

}  // namespace jouleprof::meters::control
