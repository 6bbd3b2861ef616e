#include "apps/cli/terminal/output.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/say.h"
#include "base/text.h"
#include "recording/claim.h"
#include "report/cells.h"

namespace jouleprof::cli {
namespace {

namespace fs = std::filesystem;

using Write = std::function<bool(std::ostream&)>;

bool is_stdout(std::string_view path) {
  constexpr std::array<std::string_view, 5> kNames{"", "-", "/dev/stdout", "/dev/fd/1",
                                                   "/proc/self/fd/1"};
  return std::ranges::find(kNames, path) != kNames.end();
}

// A name of an open file, not of one on a disk: /dev/fd/3 may be an ordinary file, but stays it.
bool is_stream(const fs::path& path) {
  const auto text = path.string();
  if (text.starts_with("/dev/") || text.starts_with("/proc/")) return true;
  std::error_code err;
  const auto status = fs::status(path, err);
  return fs::exists(status) && !fs::is_regular_file(status);
}

Result<void> finish(std::ostream& out, const std::string& where) {
  out.flush();
  if (out) return {};
  const int err = errno;
  auto error = system_error(fmt::format("cannot write {}", where), err != 0 ? err : EIO);
  errno = err;
  return tl::unexpected(std::move(error));
}

Result<void> write_stream(const std::string& path, std::ios::openmode mode, const Write& write) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | mode);
  if (!file) return system_failure(fmt::format("cannot write {}", path), errno);
  write(file);
  return finish(file, path);
}

// In a folder that takes no new file, an old file can only be written to.
Result<void> write_in_place(const std::string& path, const Write& write) {
  std::ostringstream text;
  if (!write(text)) return {};
  return write_stream(path, std::ios::trunc, [&](std::ostream& out) {
    out << text.view();
    return true;
  });
}

Result<void> write_file(const std::string& path, const Write& write) {
  auto fresh = NewFile::next_to(path);
  if (!fresh) {
    if (fresh.error().code == Errc::kPermissionDenied && ::access(path.c_str(), W_OK) == 0) {
      return write_in_place(path, write);
    }
    return forward_error(fresh);
  }
  errno = 0;
  std::ofstream file(fresh->path(), std::ios::binary | std::ios::trunc);
  const bool wanted = write(file);
  const auto finished = finish(file, path);
  if (!wanted || !finished) return finished;
  return fresh->take_place();
}

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

constexpr int kLeastHeight = 24;
constexpr int kLeastWidth = 40;

std::optional<int> environment_columns() {
  const char* text = std::getenv("COLUMNS");
  const auto columns = parse_integer(text != nullptr ? text : "");
  if (!columns || *columns < kLeastWidth || *columns > 10'000) return std::nullopt;
  return static_cast<int>(*columns);
}

// Control sequences of ECMA-48 and the DEC VT100, which all terminals of today understand.
constexpr const char* kSaveCursor = "\0337";
constexpr const char* kRestoreCursor = "\0338";

winsize terminal_size() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

void put(const std::string& text) { say(text); }

// Whether another job has the terminal: a shell's, or one that the command gave it to.
bool is_in_background() {
  const pid_t group = ::tcgetpgrp(STDERR_FILENO);
  return group >= 0 && group != ::getpgrp();
}

}  // namespace

Result<void> check_output(const Output& output) {
  if (is_stdout(output.path)) return {};
  for (const auto& other : output.others) {
    if (!is_same_file(output.path, other)) continue;
    return fail(Errc::kInvalidArgument,
                fmt::format("{} and {} are one file, which would be lost; choose another name for "
                            "the output",
                            output.path, other));
  }
  std::error_code err;
  const auto status = fs::status(output.path, err);
  if (fs::is_directory(status)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("cannot write {}: it is a folder; name a file", output.path));
  }
  if (!output.is_claimed_later && recording::is_claimed(output.path)) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("cannot write {}: another jouleprof is writing a recording there; choose "
                    "another name",
                    output.path));
  }
  const fs::path folder = fs::absolute(without_links(output.path), err).parent_path();
  if (!fs::is_directory(folder, err)) {
    return fail(Errc::kNotFound, fmt::format("cannot write {}: there is no folder {}; create it "
                                             "first",
                                             output.path, folder.string()));
  }
  if (!output.overwrite && fs::is_regular_file(status) && !is_stream(output.path)) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} exists; choose another name or use --force", output.path));
  }
  return {};
}

Result<void> write_output(const Output& output, const Write& write) {
  if (auto possible = check_output(output); !possible) return possible;
  if (is_stdout(output.path)) {
    errno = 0;
    write(std::cout);
    auto finished = finish(std::cout, "to the standard output");
    // The reader has enough, as with `export | head`.
    if (!finished && errno == EPIPE) return {};
    return finished;
  }
  if (is_stream(output.path)) return write_stream(output.path, std::ios::app, write);
  return write_file(output.path, write);
}

Result<void> write_output(const Output& output, const std::string& text) {
  return write_output(output, [&text](std::ostream& out) {
    out << text;
    return true;
  });
}

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

int complain_of_usage(std::string message) {
  return complain({Errc::kInvalidArgument, std::move(message)}, kUsageError);
}

void say_wrote(const std::string& recording) {
  say("jouleprof: wrote {}; next: jouleprof report {}\n", report::printable(recording),
      report::printable(report::shell_word(recording)));
}

report::TextOptions text_options(int fd) {
  report::TextOptions options;
  const auto columns = environment_columns();
  if (columns) options.width = *columns;
  if (isatty(fd) == 0) return options;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  options.colour = (no_color == nullptr || *no_color == '\0') && term != nullptr &&
                   std::string_view(term) != "dumb";
  options.height = kLeastHeight;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col >= kLeastWidth && !columns) options.width = size.ws_col;
    options.height = std::max(kLeastHeight, size.ws_row - 1);  // the last line is the prompt's
  }
  return options;
}

Result<void> open_in_browser(const std::string& path) {
  if (path == "-") {
    return fail(Errc::kInvalidArgument, "--open needs a file: give --html a name instead of -");
  }
  // An absolute path is no option and no address, whatever its name is.
  std::error_code failed;
  std::string file = std::filesystem::absolute(path, failed).string();
  std::string program = "xdg-open";
  char* arguments[] = {program.data(), file.data(), nullptr};
  pid_t pid = 0;
  // It ends at once; its exit status says nothing about the browser.
  const int error = ::posix_spawnp(&pid, program.c_str(), nullptr, nullptr, arguments, environ);
  if (error != 0) {
    return fail(Errc::kUnavailable,
                fmt::format("cannot start xdg-open ({}); {} is written, open it in a browser",
                            std::strerror(error), path));
  }
  return {};
}

StatusBar::StatusBar(bool wanted) {
  const char* term = std::getenv("TERM");
  active_ = wanted && isatty(STDERR_FILENO) != 0 && term != nullptr &&
            std::string_view(term) != "dumb" && terminal_size().ws_row >= 4;
}

StatusBar::~StatusBar() {
  if (rows_ == 0) return;
  put(fmt::format("{}\033[r\033[{};1H\033[K{}", kSaveCursor, rows_, kRestoreCursor));
}

int StatusBar::width() const { return active_ ? terminal_size().ws_col : 0; }

void StatusBar::reserve(int rows) {
  // Make room below the cursor first, so that the last row is free.
  put(fmt::format("\n\033[A{}\033[1;{}r{}", kSaveCursor, rows - 1, kRestoreCursor));
  rows_ = rows;
}

void StatusBar::show(const std::string& line) {
  if (!active_ || is_in_background()) return;
  const int rows = terminal_size().ws_row;
  if (rows < 4) return;
  if (rows != rows_) reserve(rows);
  put(fmt::format("{}\033[{};1H\033[K{}{}", kSaveCursor, rows, line, kRestoreCursor));
}

}  // namespace jouleprof::cli
