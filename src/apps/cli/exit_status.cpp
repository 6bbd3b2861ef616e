#include "apps/cli/exit_status.h"

#include <fmt/format.h>

#include <cstdio>

namespace jouleprof::cli {

int status_of_input(const Error& error) {
  switch (error.code) {
    case Errc::kNotFound:
    case Errc::kPermissionDenied:
      return kCannotOpen;
    case Errc::kUnsupported:
      return kUnknownContent;
    case Errc::kInvalidArgument:
      return kUsageError;
    case Errc::kCorrupt:
    case Errc::kUnavailable:
    case Errc::kTimeout:
      return kBadContent;
    case Errc::kInternal:
      return kInternalError;
  }
  return kInternalError;
}

int complain(const Error& error, int status) {
  fmt::print(stderr, "jouleprof: {}\n", error.message);
  return status;
}

}  // namespace jouleprof::cli
