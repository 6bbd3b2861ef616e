// The open ranges of the process that any thread may end.
#pragma once

#include <cstdint>

namespace jouleprof::scopes {

// All functions from any thread; they take no locks and allocate nothing.

// A number for a range that opens now, never used twice; 0 when 4096 are open.
std::uint64_t open_range() noexcept;

// Closes it. False when it is not open.
bool close_range(std::uint64_t number) noexcept;

bool is_open(std::uint64_t number) noexcept;

// How many were closed so far. While it is unchanged, every range that is_open() stays open.
std::uint64_t ranges_closed() noexcept;

}  // namespace jouleprof::scopes
