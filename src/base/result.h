// Making the errors of jouleprof/result.h.
#pragma once

#include <string>
#include <utility>

#include "jouleprof/result.h"

namespace jouleprof {

inline tl::unexpected<Error> fail(Errc code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message)});
}

// The error of `r`, for returning it as another Result's.
template <typename T>
tl::unexpected<Error> forward_error(Result<T>& r) {
  return tl::unexpected<Error>(std::move(r.error()));
}
template <typename T>
tl::unexpected<Error> forward_error(const Result<T>& r) {
  return tl::unexpected<Error>(r.error());
}

}  // namespace jouleprof
