// Restores settings after their owner died: the record of a setting, and the process that watches.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/process/descriptor.h"
#include "base/result.h"
#include "meters/control/setting.h"

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
// The records in a folder; none where it does not exist.
std::vector<std::filesystem::path> records_in(const std::filesystem::path& folder);

// The name of a second lock, which the owner holds alone: where it is free, the owner has died.
std::string owner_lock(const std::string& uuid);

// Takes the lock of a board: one owner at a time, until its last holder has closed the descriptor
// or died. None when another process owns the board. Errors: of the file system.
Result<Descriptor> lock_board(const std::filesystem::path& folder, const std::string& uuid);

// --- Restoring settings from their records ---

enum class Restored {
  kRestored,   // the setting found before holds again
  kUnchanged,  // it already held
  kForeign,    // someone else has changed it since; it was left
};

// Restores the setting and removes the record. The record stays where restoring failed, and where
// it is foreign: until someone has read that, see forget(). Errors: of the driver; unavailable
// where the board does not hold what it was set to.
Result<Restored> restore(const Board& board, RestoreRecord& record,
                         const std::filesystem::path& folder);

// Removes the record of a board.
void forget(const std::filesystem::path& folder, const std::string& uuid);

// What happened, as a sentence: "gpu0: the power limit is 700 W again, as a sweep found it".
std::string describe(const RestoreRecord& record, Restored restored);

struct Leftover {
  std::string device;
  Result<std::string> outcome;  // what was done, or why nothing could be
};

// What is to happen to records that cannot be restored.
enum class Leftovers {
  kRestore,  // those of living owners are passed over; foreign ones stay, and are named
  kSettle,   // those of living owners are named, too; foreign ones are named and forgotten
};

// Restores all records whose owners died, also where the guard of one hangs. Without records it
// costs the listing of one folder. `library`: see NvmlSession::open.
std::vector<Leftover> restore_leftovers(const std::filesystem::path& folder,
                                        const std::string& library,
                                        Leftovers what = Leftovers::kRestore);

// --- A process of its own that restores settings when their owner dies ---

struct GuardOptions {
  // The program that calls run_guard with the words that are appended: FD FOLDER UUID...
  std::vector<std::string> program;
  std::filesystem::path folder;
  std::vector<std::string> uuids;
  std::vector<int> lock_fds;  // kept open, so that the boards stay locked until it ends
};

// The owner's side. The guard is in a session of its own, is no child of the owner, and ignores the
// signals of terminals and of service managers.
class Guard {
 public:
  // Returns once the guard watches. Errors: unavailable when it does not start within 10 s.
  static Result<std::unique_ptr<Guard>> start(const GuardOptions& options);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  // The guard restores what is left, and ends; returns when it has, and at the latest after 2 s:
  // until then the boards are locked.
  ~Guard();

  pid_t pid() const { return pid_; }
  int fd() const { return fd_.get(); }  // it hangs up when the guard dies

 private:
  Guard(Descriptor fd, pid_t pid) : fd_(std::move(fd)), pid_(pid), owner_(::getpid()) {}
  Descriptor fd_;
  pid_t pid_;
  pid_t owner_;  // its forks share the socket, and end nothing
};

// The guard's side: watches `fd` until its owner ends, then restores what is recorded of these
// boards. Returns the exit status.
int run_guard(int fd, const std::filesystem::path& folder, const std::vector<std::string>& uuids,
              const std::string& library);

}  // namespace jouleprof::meters::control
