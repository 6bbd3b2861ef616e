// Unix sockets for packets (SOCK_SEQPACKET), by path.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "base/process/descriptor.h"
#include "base/result.h"

namespace jouleprof {

// A socket that listens on `path` and does not block. Errors: unavailable.
Result<int> listen_locally(const std::filesystem::path& path);

// A socket that is connected to `path` and does not block. Waits two seconds at most for a program
// that is stopped. Errors: not_found without a socket there or a program that listens on it,
// permission_denied, unavailable. The message begins with `trying`. A forked child does not have
// it, so that the other side sees the end of this process.
Result<int> connect_locally(const std::filesystem::path& path, const std::string& trying);
// Whether it is still what connect_locally() has connected: a program may close all descriptors,
// and have one of its own under this number.
bool is_connected(int socket) noexcept;
// Closes what connect_locally() has connected, unless the program has.
void disconnect(int socket) noexcept;

// One packet, with a file descriptor that the receiver gets a copy of; -1: none. False: not sent;
// errno says why.
bool send_with_descriptor(int socket, std::string packet, int descriptor);
// One packet into `buffer`, as recv() with MSG_DONTWAIT and MSG_TRUNC; `descriptor`: the one that
// came with it, or none.
ssize_t receive_with_descriptor(int socket, std::string& buffer, Descriptor& descriptor);

}  // namespace jouleprof
