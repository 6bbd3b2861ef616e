#include "session/sweep/output_tap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

constexpr std::size_t kLongestLine = 1 << 12;  // std::regex calls itself for each character

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a closed output must not end the measurement
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::optional<double> loss_in(const std::string& line) {
  static const std::regex kLoss(
      R"((?:^|[^a-z_])(?:train(?:ing)?[ _-])?loss['"]?(?: is)?\s*[:=]?\s*(?:tensor\()?)"
      R"(([-+]?(?:[0-9]+\.?[0-9]*(?:e[-+]?[0-9]+)?|nan|inf))(?![a-z0-9%]))",
      std::regex::icase);
  // What follows these words is of other data than the training's.
  static const std::regex kOtherData("(?:^|[^a-z])(?:val|eval|test|dev)", std::regex::icase);
  std::smatch found;
  if (!std::regex_search(line, found, kLoss)) return std::nullopt;
  if (std::regex_search(line.cbegin(), found[1].first, kOtherData)) return std::nullopt;
  return parse_number(found[1].str()).value_or(std::nan(""));
}

Result<std::unique_ptr<OutputTap>> OutputTap::open(const std::string& expression) {
  std::fflush(stdout);
  Descriptor before(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  Descriptor wake(::eventfd(0, EFD_CLOEXEC));
  Descriptor pipe;
  Descriptor input;
  if (!before || !wake || !make_pipe(pipe, input) || ::dup2(input.get(), STDOUT_FILENO) < 0) {
    return system_failure("cannot read the command's output", errno);
  }
  return std::unique_ptr<OutputTap>(
      new OutputTap(expression, std::move(before), std::move(pipe), std::move(wake)));
}

OutputTap::OutputTap(const std::string& expression, Descriptor standard_output, Descriptor pipe,
                     Descriptor wake)
    : expression_(expression.empty() ? std::nullopt : std::optional<std::regex>(expression)),
      standard_output_(std::move(standard_output)),
      pipe_(std::move(pipe)),
      wake_(std::move(wake)) {
  auto thread = start_thread([this] { copy(true); },
                             [this](const char* why) {
                               problem_ = why;
                               copy(false);  // the command's output is the user's
                             });
  if (thread) {
    thread_ = std::move(*thread);
    return;
  }
  problem_ = thread.error().message;
  ::dup2(standard_output_.get(), STDOUT_FILENO);
}

OutputTap::~OutputTap() { (void)finish(); }

Result<Printed> OutputTap::finish() {
  if (thread_.joinable()) {
    std::fflush(stdout);
    ::dup2(standard_output_.get(), STDOUT_FILENO);
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    thread_.join();
    if (!line_.empty() && problem_.empty()) match(line_);
    line_.clear();
  }
  if (problem_.empty()) return found_;
  return fail(Errc::kUnavailable,
              fmt::format("the numbers in the command's output were not all read: {}", problem_));
}

void OutputTap::copy(bool reads_along) {
  std::array<char, 1 << 14> buffer{};
  for (;;) {
    std::array<pollfd, 2> ready{{{pipe_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
    if (ready[0].revents != 0) {
      const auto got = ::read(pipe_.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return;
      const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
      write_all(standard_output_.get(), text);
      if (reads_along) take(text);
    } else if (ready[1].revents != 0) {
      return;  // and nothing is left in the pipe
    }
  }
}

void OutputTap::take(std::string_view text) {
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      match(line_);
      line_.clear();
    } else if (line_.size() < kLongestLine) {
      line_ += c;
    }
  }
}

void OutputTap::match(const std::string& line) {
  const HostTime now = HostClock::now();
  if (const auto loss = loss_in(line)) found_.losses.push_back({now, *loss});
  std::smatch found;
  if (!expression_ || !std::regex_search(line, found, *expression_)) return;
  const std::string digits = found[1];
  if (const auto value = parse_number(digits)) found_.numbers.push_back({now, *value});
}

}  // namespace jouleprof::session
