// The layers and phases of programs that XLA compiled (JAX), by the NVTX ranges that it opens
// around each operation that it launches.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/activity/activity.h"

namespace jouleprof::scopes {

// What XLA says of an operation: "Thunk:#name=jit(train)/transpose(jvp(Net))/Dense_6/dot_general,
// hlo_op=...#" is of the layer Net, Dense_6, backward. `path` has the named scopes of the program
// (flax's modules, jax.named_scope), without functions, transformations and loops of JAX's.
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

// The scope of an operation's range, without range; absent for others, and without memory. Defines
// its layers (scopes.h). Allocates only for a new name.
std::optional<model::Scope> xla_scope(std::string_view range) noexcept;

}  // namespace jouleprof::scopes
