// One recorder for the processes of a parallel job on a host.
//
// Each process of a job that is started as `jouleprof run -- COMMAND` would record all devices of
// the host. The first one takes a lock and records; the others join its session: they start their
// command with the session's environment and wait for its end.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "session/run/session.h"
#include "spans/procs/identity.h"

namespace jouleprof::session {

// What the processes of one job on this host have in common: boot and the launcher's names of the
// job, or the launcher's process. Empty where no launcher's variables are set, and of a job of one
// process.
std::string job_key(const spans::Variable& variable = ::getenv);

// The lock of a job's recorder: a file that only this user can open. The system releases the lock
// when the recorder dies.
class RecorderLock {
 public:
  // In `folder`, named after `key`. Absent where another process has it. Errors: unavailable.
  static Result<std::optional<RecorderLock>> take(const std::filesystem::path& folder,
                                                  const std::string& key);
  // The socket that the recorder published; empty: not yet, or there is no recorder.
  static std::filesystem::path socket(const std::filesystem::path& folder, const std::string& key);

  RecorderLock(RecorderLock&& other) noexcept
      : path_(std::move(other.path_)),
        fd_(std::exchange(other.fd_, -1)),
        left_recording_(std::move(other.left_recording_)) {}
  RecorderLock& operator=(RecorderLock&&) = delete;
  RecorderLock(const RecorderLock&) = delete;
  ~RecorderLock();  // removes the file

  // `recording`: its file, absolute; empty: none.
  void publish(const std::filesystem::path& socket, const std::filesystem::path& recording);

  // The recording of the recorder before this one, which was killed. Empty: there was none.
  const std::filesystem::path& left_recording() const { return left_recording_; }

 private:
  RecorderLock(std::filesystem::path path, int fd, std::filesystem::path left)
      : path_(std::move(path)), fd_(fd), left_recording_(std::move(left)) {}

  std::filesystem::path path_;
  int fd_ = -1;
  std::filesystem::path left_recording_;
};

// /dev/shm, which all processes of a host share, or the temporary files.
std::filesystem::path recorder_folder();

struct JoinedResult {
  int exit_status = 0;  // the command's
  std::optional<Error> start_error;
  bool was_recorded = true;  // false: the recorder ended before the command
};

// What the recorder said as it let the process in.
struct Membership {
  int fd = -1;  // the connection, which is the membership
  pid_t recorder = 0;
  std::string recording;  // its file; empty: none
  std::vector<std::string> variables;
};

// Asks the recorder that listens on `socket`. Waits for the begin of its work. Errors: unavailable
// (it takes no process any more, or has ended), unsupported (another version).
Result<Membership> join_recorder(const std::filesystem::path& socket,
                                 const Environment& environment = process_environment);

// Starts the command, passes signals on and waits for its end. Closes the connection. Errors: as
// Child::prepare's.
Result<JoinedResult> run_joined(const std::vector<std::string>& command, Membership membership);

}  // namespace jouleprof::session
