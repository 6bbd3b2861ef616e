#include "apps/cli/terminal/exit_status.h"

#include <string>

#include "base/say.h"
#include "base/text.h"
#include "report/cells.h"

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
  // Messages quote names of files and processes, which may hold any bytes.
  std::string text;
  for (const auto line : split(error.message, '\n')) {
    text += (text.empty() ? "" : "\n") + report::printable(line);
  }
  say("jouleprof: {}\n", text);
  return status;
}

}  // namespace jouleprof::cli
