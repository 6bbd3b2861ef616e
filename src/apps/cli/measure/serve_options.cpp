#include "apps/cli/measure/serve_options.h"

#include <fmt/format.h>
#include <grp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "apps/cli/options/option_table.h"
#include "base/file.h"
#include "base/say.h"
#include "base/text.h"
#include "session/sampling/recorded_sampling.h"

namespace jouleprof::cli {
namespace {

constexpr const char* kStateName = "serve-state.json";  // in the folder of the recordings
// A day of one GPU takes some megabytes. With less, each file would have minutes.
constexpr std::uint64_t kLeastBytes = std::uint64_t{16} << 20;
constexpr double kMostBytes = 1e18;

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array kUnits = {Unit{"KiB", 1024.0},
                               Unit{"MiB", 1024.0 * 1024},
                               Unit{"GiB", 1024.0 * 1024 * 1024},
                               Unit{"TiB", 1024.0 * 1024 * 1024 * 1024},
                               Unit{"k", 1e3},
                               Unit{"M", 1e6},
                               Unit{"G", 1e9},
                               Unit{"T", 1e12}};

// As parse_duration(), and days: "30d".
Result<Duration> parse_age(const std::string& text) {
  const auto days =
      text.ends_with("d") ? parse_number(text.substr(0, text.size() - 1)) : std::optional<double>{};
  if (!days) return parse_duration(text);
  if (*days <= 0 || *days > 36'500) {
    return fail(Errc::kInvalidArgument, fmt::format("'{}' is no age: give 30d or 12h", text));
  }
  return Duration{std::llround(*days * 86'400e9)};
}

// The file is replaced: it may not be one of another kind.
Result<void> check_state(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--state {}: {}", path.string(),
                            std::filesystem::is_directory(status)
                                ? "it is a folder; name a file in it"
                                : "it is a pipe or a device; name an ordinary file"));
  }
  std::ifstream file(path, std::ios::binary);
  constexpr int kGzip = 0x1f;
  if (const int first = file.get(); !file || first == '{' || first == kGzip) return {};
  return fail(Errc::kInvalidArgument,
              fmt::format("--state {}: it is no state of a service, and would be lost; name "
                          "another file",
                          path.string()));
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  const auto unit =
      std::ranges::find_if(kUnits, [text](const Unit& u) { return text.ends_with(u.name); });
  double scale = 1;
  if (unit != kUnits.end()) {
    scale = unit->bytes;
    text.remove_suffix(unit->name.size());
  }
  const auto number = parse_number(text);
  if (!number || *number < 0 || *number * scale > kMostBytes) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("'{}' is no size: give a number of bytes, or one such as 500M or 4GiB", text));
  }
  return static_cast<std::uint64_t>(std::llround(*number * scale));
}

std::string rate_text(double bytes_a_day, std::uint64_t most_bytes, Duration longest) {
  const double days = static_cast<double>(most_bytes) / bytes_a_day;
  const double wanted = seconds(longest) / 86'400;
  return fmt::format(
      "recordings take {:.0f} MB a day: {:.1f} days of them fit in --record-max-size{}",
      std::max(1.0, bytes_a_day / 1e6), days,
      days < wanted ? fmt::format(", fewer than the {:.0f} of --record-max-age", wanted)
                    : std::string());
}

void History::declare(CLI::App& app) {
  auto* const record = add(app, "--record", record_);
  add_parsed(app, "--record-max-size", most_bytes_, parse_size)->needs(record);
  add_parsed(app, "--record-max-age", longest_, parse_age)->needs(record);
  add(app, "--state", state_);
}

Result<session::DailyOptions> History::bounds() const {
  session::DailyOptions out;
  out.folder = record_;
  if (most_bytes_ < kLeastBytes) {
    return fail(Errc::kInvalidArgument, "--record-max-size must be at least 16MiB");
  }
  out.most_bytes = most_bytes_;
  if (longest_ < std::chrono::hours{1}) {
    return fail(Errc::kInvalidArgument, "--record-max-age must be at least 1h");
  }
  out.longest = longest_;
  out.on_rate = [bytes = most_bytes_, longest = longest_](double bytes_a_day) {
    say("jouleprof: {}\n", rate_text(bytes_a_day, bytes, longest));
  };
  out.on_error = [](const Error& error) {
    say("jouleprof: the recording ends: {}; another is tried within a minute\n", error.message);
  };
  return out;
}

Result<void> History::reopen() { return recordings_ ? recordings_->reopen() : Result<void>{}; }

Result<void> History::open(session::ServiceOptions& service) {
  std::filesystem::path state = state_;
  if (state.empty() && !record_.empty()) state = std::filesystem::path(record_) / kStateName;
  if (!state.empty()) {
    if (auto checked = check_state(state); !checked) return checked;
    auto lock = FileLock::take(without_links(state).string() + ".lock");
    if (!lock && lock.error().code == Errc::kTimeout) {
      return fail(Errc::kUnavailable,
                  fmt::format("another jouleprof serve keeps its counters in {}; stop it, or give "
                              "another file with --state",
                              state.string()));
    }
    if (!lock) return forward_error(lock);
    lock_.emplace(std::move(*lock));
    service.state = state;
  }
  if (record_.empty()) return {};
  auto options = bounds();
  if (!options) return forward_error(options);
  auto recordings = session::DailyRecordings::open(std::move(*options));
  if (!recordings) return forward_error(recordings);
  recordings_ = std::move(*recordings);
  service.sink = recordings_.get();
  service.run = session::run_info_here(JOULEPROF_VERSION);
  service.run.source = "serve";
  return {};
}

namespace {

using namespace std::chrono_literals;

// Where programs look for it (meters/all/open_meters.cpp). systemd names the folder that it made.
std::filesystem::path usual_path() {
  if (!environment("JOULEPROF_NVML_LIBRARY").empty()) return {};
  if (const std::string folders = environment("RUNTIME_DIRECTORY"); !folders.empty()) {
    return std::filesystem::path(split(folders, ':').front()) /
           std::filesystem::path(meters::kServiceSocket).filename();
  }
  const std::string own = environment("XDG_RUNTIME_DIR");
  if (own.empty()) return {};
  return std::filesystem::path(own) / meters::kServiceSocket;
}

Result<gid_t> group_of(const std::string& name) {
  if (const auto number = parse_integer(name); number && *number >= 0) {
    return static_cast<gid_t>(*number);
  }
  const group* const found = ::getgrnam(name.c_str());
  if (found == nullptr) {
    return fail(Errc::kInvalidArgument, fmt::format("--share-group {}: no such group", name));
  }
  return found->gr_gid;
}

Result<mode_t> mode_of(const std::string& text) {
  mode_t mode = 0;
  const bool is_octal =
      !text.empty() && text.size() <= 4 && std::ranges::all_of(text, [&mode](char c) {
        mode = mode * 8 + static_cast<mode_t>(c - '0');
        return c >= '0' && c <= '7';
      });
  if (is_octal && mode <= 0777) return mode;
  return fail(Errc::kInvalidArgument,
              fmt::format("--share-mode {}: give the permissions in octal, such as 0660", text));
}

}  // namespace

void ShareChoice::declare(CLI::App& app) {
  add(app, "--share", path_);
  add(app, "--share-group", group_);
  add(app, "--share-mode", mode_);
  add(app, "--share-fastest", fastest_);
}

Result<std::optional<session::ShareOptions>> ShareChoice::options() const {
  session::ShareOptions out;
  if (fastest_ < 1ms || fastest_ > 1min) {
    return fail(Errc::kInvalidArgument, "--share-fastest must be between 1ms and 1min");
  }
  out.fastest = fastest_;
  if (!group_.empty()) {
    const auto group = group_of(group_);
    if (!group) return forward_error(group);
    out.access.group = *group;
    out.access.mode = 0660;
  }
  if (!mode_.empty()) {
    const auto mode = mode_of(mode_);
    if (!mode) return forward_error(mode);
    out.access.mode = *mode;
  }
  if (path_ == "off") return std::optional<session::ShareOptions>{};
  out.access.path = is_named() ? std::filesystem::path(path_) : usual_path();
  if (out.access.path.empty()) return std::optional<session::ShareOptions>{};
  return std::optional(std::move(out));
}

void PushChoice::declare(CLI::App& app) {
  auto* const url = add(app, "--otlp", url_);
  add(app, "--otlp-interval", interval_)->needs(url);
  add(app, "--otlp-headers-file", headers_)->needs(url);
}

Result<std::unique_ptr<serve::OtlpPush>> PushChoice::start() const {
  if (url_.empty()) return nullptr;
  serve::OtlpPushOptions out;
  out.url = url_;
  if (interval_ < 1s || interval_ > 1h) {
    return fail(Errc::kInvalidArgument, "--otlp-interval must be between 1s and 1h");
  }
  out.interval = interval_;
  // The names that OpenTelemetry's own exporters read.
  for (const auto* name : {"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_METRICS_HEADERS"}) {
    auto headers = serve::parse_otlp_headers(environment(name));
    if (!headers)
      return fail(headers.error().code, fmt::format("{}: {}", name, headers.error().message));
    out.headers.insert(out.headers.end(), headers->begin(), headers->end());
  }
  out.headers_file = headers_;
  out.certificate = environment("OTEL_EXPORTER_OTLP_CERTIFICATE");
  out.user_agent = fmt::format("jouleprof/{}", JOULEPROF_VERSION);
  out.say = [](const std::string& text) { say("jouleprof: {}\n", text); };
  return serve::OtlpPush::start(std::move(out));
}

}  // namespace jouleprof::cli
