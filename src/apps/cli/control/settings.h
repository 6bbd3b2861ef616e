// What verbs share that change settings of GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/control/held_boards.h"
#include "meters/control/restore.h"

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

// Locks the GPUs whose settings are to be changed. `users`: processes that may use them. Errors: as
// HeldBoards::take.
Result<std::unique_ptr<meters::control::HeldBoards>> hold_boards(
    meters::control::Knob knob, const std::vector<std::string>& devices, bool shared,
    std::vector<pid_t> users = {});

// What those GPUs report, without a lock or a change. Errors: as look_at.
Result<meters::control::BoardState> look_at_boards(meters::control::Knob knob,
                                                   const std::vector<std::string>& devices);

// The exit status for an error of hold_boards() or of a change.
int status_of_setting(const Error& error);

}  // namespace jouleprof::cli
