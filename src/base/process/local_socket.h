// Unix sockets for packets (SOCK_SEQPACKET), by path.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace jouleprof {

// A socket that listens on `path` and does not block. Errors: unavailable.
Result<int> listen_locally(const std::filesystem::path& path);

// A socket that is connected to `path` and does not block. Waits two seconds at most for a program
// that is stopped. Errors: not_found without a socket there or a program that listens on it,
// permission_denied, unavailable. The message begins with `trying`.
Result<int> connect_locally(const std::filesystem::path& path, const std::string& trying);

}  // namespace jouleprof
