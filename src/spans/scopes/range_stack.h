// The named ranges that a thread is in, one within the other.
//
// Each function sets or puts back scopes::this_thread().range for the calling thread. A thread is
// in all of the ranges that it has open, each within those that it opened before, whichever way
// they were opened and in whatever order they end; those that stay open then get a new path. At
// most 64 ranges deep: those beyond are counted, not named. Allocates only for a new name. What XLA
// opens around its operations (xla_operation) is no range: it sets the thread's layer and phase.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/activity/activity.h"

namespace jouleprof::scopes {

// Begins a range that ends in the order of a stack: a pop ends the newest range of its `domain`
// (any pointer; ranges of all domains lie in one nesting). Returns the number of ranges of the
// domain around the new one, as NVTX returns it.
int push_range(const void* domain, std::string_view name) noexcept;

// The number of ranges of the domain that are left; -1, and nothing done, when there was none.
int pop_range(const void* domain) noexcept;

// Ranges that end in any order, from any thread. It is a range of the thread that started it.
// Returns the handle that ends it; 0 when there is no room for it.
std::uint64_t start_range(std::string_view name) noexcept;

// False when it has ended already, or never began.
bool end_range(std::uint64_t started) noexcept;

// Removes from the calling thread's ranges those that another thread has ended. A few nanoseconds
// when there are none.
void drop_ended_ranges() noexcept;

// The open range of the process, if only one thread has open ranges. It then applies to threads
// without ranges too, such as those of a backward pass. model::kNone otherwise.
std::uint32_t lone_range() noexcept;

// The layer and phase of a part of a program that XLA compiled (JAX), by the NVTX range that it
// opens around each operation that it launches. What XLA says of an operation:
// "Thunk:#name=jit(train)/transpose(jvp(Net))/Dense_6/dot_general, hlo_op=...#" is of the layer
// Net, Dense_6, backward. `path` has the named scopes of the program (flax's modules,
// jax.named_scope), without functions, transformations and loops of JAX's.
struct XlaOperation {
  std::vector<std::string> path;
  model::Phase phase = model::Phase::kNone;

  bool operator==(const XlaOperation&) const = default;
};

// Absent for other ranges. Without names, as of a command buffer, the path is empty.
std::optional<XlaOperation> xla_operation(std::string_view range);

// "XlaModule jit_train" of the range that XLA opens around a program of its own,
// "XlaModule:#hlo_module=jit_train,program_id=12#"; other names unchanged.
std::string short_range(std::string_view range);

}  // namespace jouleprof::scopes
