// Which of the process's ranges that any thread may end are still open.
#pragma once

#include <cstdint>

namespace jouleprof::scopes {

// All from any thread, without locks or memory of their own.

// A number for a range that opens now, never given out twice; 0 when 4096 are open.
std::uint64_t open_range() noexcept;

// Closes it. False when it is not open.
bool close_range(std::uint64_t number) noexcept;

bool is_open(std::uint64_t number) noexcept;

// How many were closed so far: while it stays the same, so does what is_open() says of an open one.
std::uint64_t ranges_closed() noexcept;

}  // namespace jouleprof::scopes
