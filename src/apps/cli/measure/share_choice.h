// The options by which `serve` shares its sensors with local programs.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"
#include "session/machine/share_server.h"

namespace jouleprof::cli {

class ShareChoice {
 public:
  void declare(CLI::App& app);

  // Absent: not shared. Errors: invalid_argument.
  Result<std::optional<session::ShareOptions>> options() const;
  // Whether the user named the socket: it must then work.
  bool is_named() const { return !path_.empty(); }

 private:
  std::string path_;
  std::string group_;
  std::string mode_;
  std::string fastest_ = "10ms";
};

}  // namespace jouleprof::cli
