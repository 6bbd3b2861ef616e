// Error: what was tried, on what, and what to do next.
#pragma once

#include <string>
#include <string_view>

namespace jouleprof {

// The few kinds of failure on which a caller branches.
enum class Errc {
  kNotFound,          // the thing named does not exist here
  kPermissionDenied,  // it exists, but not for us
  kUnsupported,       // the device, driver or format does not offer it
  kUnavailable,       // it exists and failed now (lost, busy, gone)
  kCorrupt,           // data that cannot be what it claims to be
  kInvalidArgument,   // the user's input is invalid
  kTimeout,           // no answer in the time given
  kInternal,          // a mistake of ours
};

constexpr std::string_view to_string(Errc code) {
  switch (code) {
    case Errc::kNotFound:
      return "not found";
    case Errc::kPermissionDenied:
      return "permission denied";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kUnavailable:
      return "unavailable";
    case Errc::kCorrupt:
      return "corrupt";
    case Errc::kInvalidArgument:
      return "invalid argument";
    case Errc::kTimeout:
      return "timeout";
    case Errc::kInternal:
      return "internal error";
  }
  return "unknown";
}

struct Error {
  Errc code = Errc::kInternal;
  std::string message;

  friend bool operator==(const Error& a, const Error& b) {
    return a.code == b.code && a.message == b.message;
  }
  friend bool operator!=(const Error& a, const Error& b) { return !(a == b); }
};

}  // namespace jouleprof
