#include <fcntl.h>
#include <fmt/format.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "meters/wall/wall_source.h"

namespace jouleprof::meters {
namespace {

constexpr unsigned char kGroupExtension = 0x2c;  // the network function
constexpr unsigned char kGetPowerReading = 0x02;
constexpr unsigned char kDcmi = 0xdc;
constexpr std::size_t kAnswer = 19;

class DcmiDevice : public WallSource {
 public:
  DcmiDevice(int fd, std::filesystem::path device) : fd_(fd), device_(std::move(device)) {}
  ~DcmiDevice() override { ::close(fd_); }

  Result<WallReading> read() override {
    std::array<unsigned char, 4> request{kDcmi, 1, 0, 0};  // mode 1: the system's power now
    ipmi_system_interface_addr bmc{};
    bmc.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE;
    bmc.channel = IPMI_BMC_CHANNEL;
    ipmi_req call{};
    call.addr = reinterpret_cast<unsigned char*>(&bmc);
    call.addr_len = sizeof bmc;
    call.msgid = ++last_;
    call.msg.netfn = kGroupExtension;
    call.msg.cmd = kGetPowerReading;
    call.msg.data = request.data();
    call.msg.data_len = request.size();
    if (::ioctl(fd_, IPMICTL_SEND_COMMAND, &call) != 0) {
      return tl::unexpected(system_error("cannot ask the BMC by " + device_.string(), errno));
    }
    const HostTime end = HostClock::now() + kWallPatience;
    while (true) {
      pollfd waiting{fd_, POLLIN, 0};
      const int ready = ::poll(&waiting, 1, milliseconds_until(end));
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) return fail(Errc::kTimeout, "the BMC has not answered for 5 s");
      std::array<unsigned char, IPMI_MAX_MSG_LENGTH> data{};
      ipmi_addr from{};
      ipmi_recv answer{};
      answer.addr = reinterpret_cast<unsigned char*>(&from);
      answer.addr_len = sizeof from;
      answer.msg.data = data.data();
      answer.msg.data_len = data.size();
      if (::ioctl(fd_, IPMICTL_RECEIVE_MSG_TRUNC, &answer) != 0) {
        return tl::unexpected(system_error("cannot read the BMC's answer", errno));
      }
      // Of an earlier question, which took too long.
      if (answer.recv_type != IPMI_RESPONSE_RECV_TYPE || answer.msgid != last_) continue;
      return parse_dcmi_answer({reinterpret_cast<const char*>(data.data()), answer.msg.data_len});
    }
  }

 private:
  int fd_;
  std::filesystem::path device_;
  long last_ = 0;
};

// The number after `label` and its colon, on a line of its own.
std::optional<double> value_of(std::string_view text, std::string_view label) {
  for (const std::string_view line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || trim(line.substr(0, colon)) != label) continue;
    const auto words = split_blanks(line.substr(colon + 1));
    if (!words.empty()) return parse_number(words.front());
  }
  return std::nullopt;
}

// Completion codes of IPMI 2.0, table 5-2.
Error error_of(unsigned char code) {
  struct Known {
    unsigned char code;
    Errc errc;
    const char* why;
  };
  constexpr std::array<Known, 9> kKnown{{
      {0xc0, Errc::kUnavailable, "it is busy"},
      {0xc1, Errc::kUnsupported, "it does not know the command: DCMI is absent or switched off"},
      {0xc3, Errc::kTimeout, "it timed out itself"},
      {0xc7, Errc::kUnsupported, "it takes another length of the request"},
      {0xcb, Errc::kUnsupported, "it has no sensor for that"},
      {0xcc, Errc::kUnsupported, "it does not take the mode \"system power\""},
      {0xce, Errc::kUnavailable, "it cannot give the answer now"},
      {0xd4, Errc::kPermissionDenied, "this interface may not ask that"},
      {0xd5, Errc::kUnavailable, "it is not ready for that"},
  }};
  for (const Known& known : kKnown) {
    if (known.code != code) continue;
    return {known.errc,
            fmt::format("the BMC reports no power by DCMI: {} (code {:#04x})", known.why, code)};
  }
  return {Errc::kUnsupported,
          fmt::format("the BMC does not report its power by DCMI (code {:#04x})", code)};
}

}  // namespace

Result<WallReading> parse_dcmi_answer(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (!bytes.empty() && at(0) != 0) return tl::unexpected(error_of(at(0)));
  if (bytes.size() < kAnswer || at(1) != kDcmi) {
    return fail(Errc::kCorrupt,
                fmt::format("the BMC's answer of {} bytes is no power", bytes.size()));
  }
  constexpr unsigned kMeasures = 0x40;
  if ((at(18) & kMeasures) == 0) {
    return fail(Errc::kUnavailable, "the BMC says that it does not measure power now");
  }
  // The period that follows is of the statistics, not of this power.
  return WallReading{Power::watts(at(2) | at(3) << 8), std::nullopt};
}

Result<WallReading> parse_dcmi_text(std::string_view text) {
  const auto watts = value_of(text, "Current Power");
  if (!watts || *watts < 0 || *watts > 1e6) {
    return fail(Errc::kCorrupt, "ipmi-dcmi printed no power");
  }
  return WallReading{Power::watts(*watts), std::nullopt};
}

Result<std::unique_ptr<WallSource>> open_dcmi(const std::filesystem::path& device) {
  const int fd = ::open(device.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return tl::unexpected(system_error("cannot open " + device.string(), errno));
  }
  return std::make_unique<DcmiDevice>(fd, device);
}

}  // namespace jouleprof::meters
