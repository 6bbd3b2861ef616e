// One measurement from beginning to end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "meters/meter.h"
#include "model/recording.h"
#include "model/snapshot.h"
#include "session/sampling/recording_sink.h"
#include "session/sampling/visible_devices.h"

namespace jouleprof::session {

// What the command's processes record of their work on GPUs, and how they are made to.
struct TraceOptions {
  bool kernels = false;
  bool layers = false;                   // of PyTorch's models
  bool events = false;                   // each launch
  bool serving = false;                  // steps and requests of inference servers
  std::optional<double> replay_seconds;  // each layer is then run alone for so long, at the end
  std::filesystem::path inject_library;  // libjouleprof_inject.so
  std::filesystem::path python_hook;     // our sitecustomize.py's folder; empty: none is used
  // Next to this file the processes' spool gets its folder, "FILE.spool"; where that cannot be, or
  // without a file, it lies with the temporary files. The folder goes when all was taken.
  std::filesystem::path recording;
  std::string remark;  // a warning, where not all that was asked for is traced
  // With `attach`: the spool that the process already writes. Nothing in it is changed.
  std::filesystem::path folder;

  bool any() const { return kernels || layers || serving || !folder.empty(); }
};

struct SessionOptions {
  // What is measured: this command; or the running processes `attach` with their descendants, until
  // the last of `attach` has ended; or, without both, the machine.
  std::vector<std::string> command;
  std::vector<pid_t> attach;
  // `attach` is one child of this process, started by it as one of a job's commands: signals are
  // passed on to it, others of the job may join (on_socket), and its status is left for the caller.
  // `command` is then what it runs.
  bool owns_attached = false;

  Duration idle_before = std::chrono::seconds{1};  // of a command
  Duration idle_after = std::chrono::seconds{1};
  Duration process_period = std::chrono::seconds{1};
  // The driver keeps what the processes used since it was last asked. As often as a driver's
  // samples are read, so that both share a wake-up; see Lane.
  Duration gpu_process_period = std::chrono::milliseconds{900};
  Duration commit_period = std::chrono::seconds{1};
  std::vector<std::string> devices;  // as select_devices(); empty: all
  bool use_cgroup = true;            // put the command into a cgroup of its own where possible
  std::string tool_version;
  std::vector<std::string> remarks;  // warnings to record
  TraceOptions trace;

  // Ends after this long from the begin of the work. A command gets SIGTERM then, and is waited
  // for; attached processes run on.
  std::optional<Duration> duration;
  // The machine: ends after so many snapshots, or when `stop` says so.
  std::optional<std::uint64_t> snapshots;
  // With a command: called with the session's socket, where other `jouleprof run` may join
  // (job_recorder.h). The session then lasts until the last of them has left.
  std::function<void(const std::filesystem::path& socket)> on_socket;

  std::stop_token stop;  // ends all but a running command

  // Called with what is known of the machine, every period. Energies count from the session's
  // begin; with a command, from the begin of its idle interval or of its work.
  std::function<void(const model::Snapshot&)> on_snapshot;
  Duration snapshot_period = std::chrono::seconds{1};

  Environment environment = process_environment;
  std::filesystem::path root = "/";             // where proc and sys are
  Duration patience = std::chrono::seconds{2};  // with a meter that hangs at the end
};

struct SessionResult {
  model::RunInfo run;
  // What the tool should exit with where a command was meant to run: its own status, 127 or 126
  // when it could not be started, 128 + N when signal N came before it was.
  std::optional<int> exit_status;
  std::optional<Error> start_error;   // why it could not be started
  std::optional<int> interrupted_by;  // a signal that ended the session early
  std::optional<Error> sink_error;    // from then on nothing was recorded
  std::vector<model::Warning> warnings;
  model::Overhead overhead;
};

// Runs a session in the calling thread; one at a time in a process. Callbacks come from this
// thread. `sink` may be nullptr. The command keeps the tool's standard streams, environment,
// process group and signal dispositions; signals that are sent to the tool while it runs are passed
// on, those of the terminal reach it anyway. In addition to the tool's environment it has
// JOULEPROF_SESSION, by which its programs' windows find this session
// (meters/shared/hub_protocol.h), and where something is to be traced what trace_watch.h says. What
// happens to the sink or to a meter never disturbs the command.
//
// Errors: invalid_argument (unknown device), not_found or permission_denied (one of `attach`),
// unavailable (no process can be made). Once the command runs there are none.
Result<SessionResult> run(const SessionOptions& options,
                          std::vector<std::unique_ptr<meters::Meter>> meters, Sink* sink);

}  // namespace jouleprof::session
