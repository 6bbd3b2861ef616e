#include "spans/procs/process_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace jouleprof::spans {
namespace {

constexpr std::size_t kLongest = 4096;  // a status has about 50 numbers and a short name

int open_file(int folder, pid_t pid, std::string_view name) {
  std::array<char, 48> path;
  *fmt::format_to(path.data(), "{}/{}", pid, name) = '\0';
  return ::openat(folder, path.data(), O_RDONLY | O_CLOEXEC);
}

void close_file(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

using Buffer = std::array<char, kLongest>;

// Empty: it cannot be read.
std::string_view read_file(int fd, Buffer& buffer) {
  if (fd < 0) return {};
  const ssize_t size = ::pread(fd, buffer.data(), buffer.size(), 0);
  return size > 0 ? std::string_view(buffer.data(), static_cast<std::size_t>(size))
                  : std::string_view{};
}

}  // namespace

ProcessFiles::ProcessFiles(ProcessFiles&& other) noexcept
    : stat_(std::exchange(other.stat_, -1)), run_time_(std::exchange(other.run_time_, -1)) {}

ProcessFiles& ProcessFiles::operator=(ProcessFiles&& other) noexcept {
  if (this == &other) return *this;
  close();
  stat_ = std::exchange(other.stat_, -1);
  run_time_ = std::exchange(other.run_time_, -1);
  return *this;
}

void ProcessFiles::close() {
  close_file(stat_);
  close_file(run_time_);
}

std::optional<ProcessStat> ProcessFiles::stat(int folder, pid_t pid) {
  Buffer buffer;
  auto text = read_file(stat_, buffer);
  if (text.empty()) {
    close();
    stat_ = open_file(folder, pid, "stat");
    text = read_file(stat_, buffer);
  }
  auto stat = parse_process_stat(text);
  if (!stat) close();
  return stat;
}

std::optional<std::uint64_t> ProcessFiles::main_thread_time(int folder, pid_t pid) {
  // Without the status of the same process the pid alone does not say whose time it is.
  if (stat_ < 0) return std::nullopt;
  const bool is_new = run_time_ < 0;
  if (is_new) run_time_ = open_file(folder, pid, "schedstat");
  Buffer buffer;
  const auto text = read_file(run_time_, buffer);
  std::uint64_t time = 0;
  const auto [end, err] = std::from_chars(text.data(), text.data() + text.size(), time);
  if (err != std::errc{} || time == 0) {
    close_file(run_time_);
    return std::nullopt;
  }
  return time;
}

}  // namespace jouleprof::spans
