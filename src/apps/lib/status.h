// Errors and provenances as the C interface gives them.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/result.h"
#include "jouleprof/jouleprof.h"
#include "model/provenance.h"

namespace jouleprof::lib {

// Copies `text`, cut to fit, always ended by a NUL. `to` may be NULL, `size` 0.
inline void copy_text(std::string_view text, char* to, size_t size) {
  if (to == nullptr || size == 0) return;
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// The status of `e`, its message in `error`.
inline jouleprof_status fail(const Error& e, char* error, size_t error_size) {
  copy_text(e.message, error, error_size);
  return static_cast<jouleprof_status>(static_cast<int>(e.code) + 1);
}

inline jouleprof_provenance to_c(model::Provenance p) {
  return static_cast<jouleprof_provenance>(p);
}

static_assert(static_cast<int>(model::Provenance::kMeasured) == JOULEPROF_MEASURED);
static_assert(static_cast<int>(model::Provenance::kEstimated) == JOULEPROF_ESTIMATED);
static_assert(static_cast<int>(model::Provenance::kSimulated) == JOULEPROF_SIMULATED);
static_assert(static_cast<int>(model::Provenance::kUnavailable) == JOULEPROF_UNAVAILABLE_FIGURE);
static_assert(static_cast<int>(Errc::kNotFound) + 1 == JOULEPROF_NOT_FOUND);
static_assert(static_cast<int>(Errc::kInternal) + 1 == JOULEPROF_INTERNAL);

}  // namespace jouleprof::lib
