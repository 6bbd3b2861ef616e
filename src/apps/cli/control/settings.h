// What verbs share that change settings of GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/control/held_boards.h"
#include "meters/control/restore.h"
#include "model/sweep.h"

namespace jouleprof::cli {

struct RestoreCount {
  std::size_t restored = 0;
  std::size_t failed = 0;
};

// Restores what killed sweeps have left, and says on stderr what was done, or why nothing could be.
// Called before each verb.
RestoreCount restore_settings(
    meters::control::Leftovers what = meters::control::Leftovers::kRestore);

// The words with which this program becomes the guard of settings: see main().
inline constexpr const char* kGuardWord = "guard-settings";
// The guard: its arguments are those that GuardOptions::program is given.
int guard_settings(const std::vector<std::string>& arguments);

// The GPUs that a verb is to set, as select_gpus takes them: `named` by the user, else those that a
// command in this environment sees, since the others may be another job's. `place`: only this one
// of them, as CUDA numbers them. Errors: of NVML; invalid_argument where the command sees none, or
// fewer.
Result<std::vector<std::string>> devices_to_set(const std::vector<std::string>& named,
                                                std::optional<std::size_t> place = {});

// Locks the GPUs whose settings are to be changed. `users`: processes that may use them. Errors: as
// HeldBoards::take.
Result<std::unique_ptr<meters::control::HeldBoards>> hold_boards(
    meters::control::Knob knob, const std::vector<std::string>& devices, bool shared,
    std::vector<pid_t> users = {});

// What those GPUs report, without a lock or a change. Errors: as look_at.
Result<meters::control::BoardState> look_at_boards(meters::control::Knob knob,
                                                   const std::vector<std::string>& devices);

// The GPUs of a sweep as `nvidia-smi -i` takes them: their indices where a recording in the file
// has them, else UUIDs; empty where neither is known.
std::string smi_devices(const std::string& sweep_file, const model::SweepPlan& plan);

// The exit status for an error of hold_boards() or of a change.
int status_of_setting(const Error& error);

// --- Settings for the Python package, which starts this program as its child ---

// The word with which this program becomes the server: see main().
inline constexpr const char* kServerWord = "hold-settings";

// `arguments`: the knob's word, devices separated by commas (may be empty), "shared" or "own".
// Holds the boards as a sweep does, answers requests on stdin, one a line, with one line of JSON
// each on stdout, and restores when stdin ends:
//
//   (at the start)   {"least": 150, "most": 700, "found": 650, "steps": [], "devices": ["gpu0"]}
//   set 300          {"requested": 300, "enforced_watts": 300}
//   restore          {"warnings": []}
//
// An error is {"status": N, "message": "..."}, with the numbers of jouleprof_status. An error at
// the start ends the program. The parent process may use the boards.
int serve_settings(const std::vector<std::string>& arguments);

}  // namespace jouleprof::cli
