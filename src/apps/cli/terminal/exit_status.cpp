#include "apps/cli/terminal/exit_status.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/say.h"
#include "base/text.h"
#include "report/cells.h"

namespace jouleprof::cli {
namespace {

std::vector<ValueSource>& sources() {
  static std::vector<ValueSource> all;
  return all;
}

// Of a list such as 0,gpu7 a message names one.
bool speaks_of(const std::string& message, const ValueSource& source) {
  if (message.find(source.source) != std::string::npos) return false;  // it is there already
  if (message.find(source.option + " ") != std::string::npos) return true;
  for (const auto part : split(source.value, ',')) {
    if (message.find("'" + std::string(part) + "'") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

void remember_source(ValueSource source) { sources().push_back(std::move(source)); }

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
  for (const auto& source : sources()) {
    if (!speaks_of(error.message, source)) continue;
    text += report::printable(fmt::format(" ({} is from {})", source.option, source.source));
  }
  say("jouleprof: {}\n", text);
  return status;
}

}  // namespace jouleprof::cli
