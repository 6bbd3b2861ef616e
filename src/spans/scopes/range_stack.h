// The named ranges that a thread is in, one within the other.
#pragma once

#include <cstdint>
#include <string_view>

namespace jouleprof::scopes {

// Each sets or puts back scopes::this_thread().range for the calling thread. A pop ends the newest
// range of its `domain` (any pointer; ranges of all domains lie in one nesting). At most 64 ranges
// deep: those beyond are counted, not named.

// The number of ranges of the domain around the new one, as NVTX returns it.
int push_range(const void* domain, std::string_view name) noexcept;

// The number of ranges of the domain that are left; -1, and nothing done, when there was none.
int pop_range(const void* domain) noexcept;

// The range that the process is in, when one thread only has any open: also that of threads that
// work for it and name none, as those of a backward pass do. model::kNone otherwise.
std::uint32_t lone_range() noexcept;

}  // namespace jouleprof::scopes
