// Result<T>: a value, or an Error of jouleprof/result.h. The public C++ header has its own, because
// it needs no other library.
#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

#include "jouleprof/result.h"

namespace jouleprof {

template <typename T>
using Result = tl::expected<T, Error>;

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
