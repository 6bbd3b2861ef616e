// Which kernels perform a collective operation of several ranks.
#pragma once

#include <string_view>

namespace jouleprof::model {

// The operation of a kernel of NCCL, RCCL, NVSHMEM or a framework, as the library spells it:
// "AllReduce", "SendRecv"; "other" where the name does not say. Empty: not such a kernel. `name`:
// mangled or readable. The view is of `name` or static.
std::string_view collective_kind(std::string_view name);

// Whether no rank can finish the operation before all ranks have begun it, because each needs data
// of all.
bool is_synchronising(std::string_view kind);

}  // namespace jouleprof::model
