// One recorder for the processes of a parallel job on a host.
//
// Each process of a job that is started as `jouleprof run -- COMMAND` would record all devices of
// the host. The first one takes a lock and records; the others join its session: they start their
// command with the session's environment and wait for its end.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process/descriptor.h"
#include "base/result.h"
#include "session/run/session.h"
#include "session/run/signals.h"
#include "spans/procs/procfs.h"

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

  RecorderLock(RecorderLock&&) noexcept = default;
  RecorderLock& operator=(RecorderLock&&) = delete;
  RecorderLock(const RecorderLock&) = delete;
  ~RecorderLock();  // leaves the name of the recording for processes that come later

  // Before the recording is made, so that a successor of a recorder that is killed knows it.
  void announce(const std::filesystem::path& recording);
  // `recording`: its file, absolute; empty: none.
  void publish(const std::filesystem::path& socket, const std::filesystem::path& recording);

  // What the job's recorder before this one left.
  struct Left {
    std::filesystem::path recording;  // empty: nothing
    bool was_killed = false;
  };
  const Left& left() const { return left_; }

 private:
  RecorderLock(std::filesystem::path path, Descriptor fd)
      : path_(std::move(path)), fd_(std::move(fd)) {}
  void write(const std::filesystem::path& socket, const std::filesystem::path& recording) const;

  std::filesystem::path path_;
  Descriptor fd_;
  std::filesystem::path recording_;
  Left left_;
};

// /dev/shm, which all processes of a host share, or the temporary files.
std::filesystem::path recorder_folder();

struct JoinedResult {
  int exit_status = 0;  // the command's
  std::optional<Error> start_error;
  bool was_recorded = true;  // false: the recorder ended before the command, and none followed
};

// What the recorder said as it let the process in.
struct Membership {
  Descriptor fd;  // the connection, which is the membership
  pid_t recorder = 0;
  std::string recording;  // its file; empty: none
  std::vector<std::string> variables;
};

// Asks the recorder that listens on `socket`. Waits for the begin of its work. Errors: unavailable
// (it takes no more members, or has ended), unsupported (another version).
Result<Membership> join_recorder(const std::filesystem::path& socket,
                                 const Environment& environment = process_environment);

// What follows when the recorder dies while the command runs.
struct Succession {
  std::optional<Membership> membership;  // of the recorder that followed
  bool was_recorded = false;             // by this process, up to the command's end
};
// `signals` is to be given up before a session of this process.
using Succeed = std::function<Succession(pid_t command, std::unique_ptr<SignalStream>& signals)>;

// Starts the command, passes signals on and waits for its end. Closes the connection. Errors: as
// Child::prepare's.
Result<JoinedResult> run_joined(const std::vector<std::string>& command, Membership membership,
                                const Succeed& succeed = nullptr);

}  // namespace jouleprof::session
