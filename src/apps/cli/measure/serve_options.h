// What `serve` keeps on disk: recordings by day, and its counters over restarts.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "apps/serve/otlp_push.h"
#include "base/file.h"
#include "base/result.h"
#include "session/machine/daily_recordings.h"
#include "session/machine/machine_service.h"

namespace jouleprof::cli {

// A number of bytes with an optional unit: k, M, G, T (powers of 1000) or KiB, MiB, GiB, TiB.
// Errors: invalid_argument.
Result<std::uint64_t> parse_size(std::string_view text);

// How many days of recordings the bounds of size and age leave room for.
std::string rate_text(double bytes_a_day, std::uint64_t most_bytes, Duration longest);

class History {
 public:
  void declare(CLI::App& app);

  // Adds the options to `service`, opens what they name, and locks it against other services.
  // Errors: invalid_argument for an option; others as DailyRecordings::open's and FileLock's.
  Result<void> open(session::ServiceOptions& service);
  // For a service that takes the place of the one that open() was for, with other devices.
  Result<void> reopen();

 private:
  Result<session::DailyOptions> bounds() const;

  std::string record_;
  std::uint64_t most_bytes_ = std::uint64_t{4} << 30;
  Duration longest_ = std::chrono::hours{30 * 24};
  std::string state_;
  std::unique_ptr<session::DailyRecordings> recordings_;
  std::optional<FileLock> lock_;
};

// The options by which `serve` shares its sensors with local programs.
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
  Duration fastest_ = std::chrono::milliseconds{10};
};

// The options by which `serve` sends its figures to an OpenTelemetry collector. Passwords come from
// a file or the environment: all users see a command line.
class PushChoice {
 public:
  void declare(CLI::App& app);

  // Absent: no collector is given. Errors: invalid_argument; as OtlpPush::start's.
  Result<std::unique_ptr<serve::OtlpPush>> start() const;

 private:
  std::string url_;
  Duration interval_ = std::chrono::minutes{1};
  std::string headers_;  // a file
};

}  // namespace jouleprof::cli
