// Which uses of GPUs a user may see.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>

#include "meters/shared/hub_protocol.h"

namespace jouleprof::session {

// The effective user of a process; absent where it cannot be read.
std::optional<uid_t> user_of(pid_t pid, const std::filesystem::path& root);

// Those of the processes of `user`, and those of all others on a GPU at a time as one with pid 0:
// its utilisation and memory are sums, absent where a part is unknown. Root sees all.
meters::GpuUses uses_seen_by(uid_t user, const meters::GpuUses& uses,
                             const std::function<std::optional<uid_t>(pid_t)>& user_of);

}  // namespace jouleprof::session
