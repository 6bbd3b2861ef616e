// Which machine this is, and which process of a parallel job.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "model/process/process.h"

namespace jouleprof::spans {

// The value of an environment variable; a null pointer where it is not set.
using Variable = std::function<const char*(const char* name)>;

// From the variables of torchrun, Open MPI, PMI and Slurm. The first of them, in this order, whose
// rank is a number gives rank, local rank and world size: the inner launcher numbers the processes
// that the outer one started. Values that are no numbers are absent.
model::Rank rank_of(const Variable& variable = ::getenv);

// The same from an environment as /proc has it: each NAME=value ended by a zero byte.
model::Rank rank_in(std::string_view environment);

// The user of this process by name, or by number where the system knows no name.
std::string user_here(const std::filesystem::path& passwd = "/etc/passwd");

// The nodes of Slurm's job as Slurm writes them, such as "node[1-4]"; empty: none.
std::string node_list_of(const Variable& variable = ::getenv);

// Of the running kernel; empty where `proc` does not have it.
std::string boot_id(const std::filesystem::path& proc = "/proc");

}  // namespace jouleprof::spans
