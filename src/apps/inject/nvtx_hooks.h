// NVTX's ranges as scopes of their thread.
#pragma once

#include "abi/nvtx_abi.h"

namespace jouleprof::inject {

// Puts our functions into the places that NVTX's client, one a shared library, keeps for a tool:
// pushes, pops, starts and ends of the default and of named domains, and what those need. Marks are
// left alone. False when the client offers no places.
bool fill_nvtx(abi::nvtx::GetExportTable* get_export_table) noexcept;

}  // namespace jouleprof::inject
