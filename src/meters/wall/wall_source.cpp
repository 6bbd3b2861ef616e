#include "meters/wall/wall_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"

namespace jouleprof::meters {
namespace {

// --- The power that a machine's BMC reports: DCMI's "Get Power Reading" over /dev/ipmi0 ---

constexpr unsigned char kGroupExtension = 0x2c;  // the network function
constexpr unsigned char kGetPowerReading = 0x02;
constexpr unsigned char kDcmi = 0xdc;
constexpr std::size_t kAnswer = 19;
constexpr int kNoValue = 0xffff;  // watts: all bits are set

class DcmiDevice : public WallSource {
 public:
  DcmiDevice(Descriptor fd, std::filesystem::path device)
      : fd_(std::move(fd)), device_(std::move(device)) {}

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
    if (::ioctl(fd_.get(), IPMICTL_SEND_COMMAND, &call) != 0) {
      return system_failure("cannot ask the BMC by " + device_.string(), errno);
    }
    const HostTime end = HostClock::now() + kWallPatience;
    while (true) {
      pollfd waiting{fd_.get(), POLLIN, 0};
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
      if (::ioctl(fd_.get(), IPMICTL_RECEIVE_MSG_TRUNC, &answer) != 0) {
        return system_failure("cannot read the BMC's answer", errno);
      }
      // Of an earlier question, which took too long.
      if (answer.recv_type != IPMI_RESPONSE_RECV_TYPE || answer.msgid != last_) continue;
      return parse_dcmi_answer({reinterpret_cast<const char*>(data.data()), answer.msg.data_len});
    }
  }

 private:
  Descriptor fd_;
  std::filesystem::path device_;
  long last_ = 0;
};

// What follows `label` and its colon, on a line of its own; empty without it.
std::string_view value_of(std::string_view text, std::string_view label) {
  for (const std::string_view line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || trim(line.substr(0, colon)) != label) continue;
    return trim(line.substr(colon + 1));
  }
  return {};
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

// Errors: not_found without a device; permission_denied.
Result<std::unique_ptr<WallSource>> open_dcmi(const std::filesystem::path& device) {
  Descriptor fd(::open(device.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return system_failure("cannot open " + device.string(), errno);
  return std::make_unique<DcmiDevice>(std::move(fd), device);
}

// --- All kinds of meters ---

struct Kind {
  std::string_view name;
  std::string_view keys;  // in addition to those of all kinds, each with a blank around it
  bool has_address;
};

constexpr std::array<Kind, 6> kKinds{{{"ipmi", " ", false},
                                      {"redfish", " ca check credentials ", true},
                                      {"snmp", " oid unit ", true},
                                      {"shelly", " channel credentials ", true},
                                      {"tasmota", " channel credentials ", true},
                                      {"command", " ", true}}};

Error wrong(std::string_view text, const std::string& why) {
  return {Errc::kInvalidArgument, fmt::format("--wall-meter {}: {}", text, why)};
}

// The power that another program prints.
class ToolMeter : public WallSource {
 public:
  using Parse = std::function<Result<WallReading>(std::string_view)>;
  ToolMeter(std::unique_ptr<ShellTool> tool, Parse parse)
      : tool_(std::move(tool)), parse_(std::move(parse)) {}

  Result<WallReading> read() override {
    const auto text = tool_->run();
    if (!text) return forward_error(text);
    return parse_(*text);
  }

 private:
  std::unique_ptr<ShellTool> tool_;
  Parse parse_;
};

Result<std::unique_ptr<WallSource>> open_tool(const std::string& command, ToolMeter::Parse parse) {
  auto tool = ShellTool::start(command, kWallPatience);
  if (!tool) return forward_error(tool);
  return std::make_unique<ToolMeter>(std::move(*tool), std::move(parse));
}

// Of a number that is none of watts.
bool is_other_unit(std::string_view word) {
  while (word.ends_with(',') || word.ends_with(';')) word.remove_suffix(1);
  constexpr std::array kUnits{"kW", "MW", "mW",  "uW", "VA", "kVA", "var", "V", "mV",
                              "A",  "mA", "kWh", "Wh", "J",  "kJ",  "Hz",  "%", "C"};
  return std::ranges::find(kUnits, word) != kUnits.end();
}

// The first number of a text that has no other unit than watts, times `unit`.
Result<WallReading> first_number(std::string_view text, double unit) {
  const auto words = split_blanks(text);
  for (auto word = words.begin(); word != words.end(); ++word) {
    std::string_view digits = *word;
    while (digits.ends_with('W') || digits.ends_with(',')) digits.remove_suffix(1);
    const auto number = parse_number(digits);
    if (!number || (word + 1 != words.end() && is_other_unit(word[1]))) continue;
    const double watts = *number * unit;
    if (watts >= 0 && watts <= 1e6) return WallReading{Power::watts(watts), std::nullopt};
    return fail(Errc::kCorrupt,
                fmt::format("the wall meter says {} W, which is impossible", watts));
  }
  return fail(Errc::kCorrupt, fmt::format("the wall meter says '{}', which is no number of watts",
                                          text.substr(0, 80)));
}

// In a command of a shell.
bool is_plain(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view(".:-_/[]").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

Result<std::unique_ptr<WallSource>> open_snmp(const WallSpec& spec) {
  const auto oid = spec.keys.find("oid");
  if (oid == spec.keys.end() || !is_plain(oid->second) || !is_plain(spec.address)) {
    return fail(Errc::kInvalidArgument,
                "--wall-meter: give snmp,oid=OID:HOST with the object that holds the power");
  }
  double unit = 1;
  if (const auto found = spec.keys.find("unit"); found != spec.keys.end()) {
    const auto watts = parse_number(found->second);
    if (!watts || *watts <= 0) {
      return fail(Errc::kInvalidArgument, "--wall-meter: unit= of snmp is a number of watts");
    }
    unit = *watts;
  }
  return open_tool(fmt::format("snmpget -Oqv -t 3 -r 0 '{}' '{}'", spec.address, oid->second),
                   [unit](std::string_view text) { return first_number(text, unit); });
}

Result<std::unique_ptr<WallSource>> open_ipmi() {
  for (const char* device : {"/dev/ipmi0", "/dev/ipmi/0", "/dev/ipmidev/0"}) {
    auto opened = open_dcmi(device);
    if (opened || opened.error().code != Errc::kNotFound) return opened;
  }
  return open_tool("ipmi-dcmi --get-system-power-statistics", parse_dcmi_text);
}

// Errors: invalid_argument; not_found without what reads it; as of read(), for a first reading.
Result<std::unique_ptr<WallSource>> open_wall_source(const WallSpec& spec) {
  if (spec.kind == "ipmi") return open_ipmi();
  if (spec.kind == "snmp") return open_snmp(spec);
  if (spec.kind != "command") return open_web_meter(spec);
  return open_tool(spec.address, [](std::string_view text) { return first_number(text, 1); });
}

}  // namespace

Result<WallSpec> parse_wall_spec(std::string_view text) {
  WallSpec spec;
  const auto colon = text.find(':');
  auto words = split(text.substr(0, colon), ',');
  spec.kind = words.empty() ? "" : std::string(words.front());
  if (colon != std::string_view::npos) spec.address = std::string(text.substr(colon + 1));
  const auto kind = std::ranges::find(kKinds, spec.kind, &Kind::name);
  // An address may hold what no message should repeat.
  const std::string shown = fmt::format("{}:...", text.substr(0, colon));
  if (kind == kKinds.end()) {
    return tl::unexpected(wrong(shown,
                                "the kinds are ipmi, redfish, snmp, shelly, tasmota and "
                                "command, such as shelly:192.168.1.20"));
  }
  if (kind->has_address == spec.address.empty()) {
    return tl::unexpected(wrong(shown, kind->has_address ? "give what to read after the colon"
                                                         : "this kind has no address"));
  }
  if (spec.kind != "command" && spec.address.find('@') != std::string::npos) {
    return tl::unexpected(
        wrong(shown,
              "a user and a password do not belong on a command line, which everybody can "
              "read: put them into a file (credentials=FILE) or JOULEPROF_WALL_CREDENTIALS"));
  }
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto equal = words[i].find('=');
    const std::string key(words[i].substr(0, equal));
    const std::string value(equal == std::string_view::npos ? "" : words[i].substr(equal + 1));
    if (value.empty()) return tl::unexpected(wrong(shown, "give " + key + "=VALUE"));
    if (key == "error") {
      std::string_view digits = value;
      if (digits.ends_with('%')) digits.remove_suffix(1);
      const auto percent = parse_number(digits);
      if (!percent || *percent < 0 || *percent > 100) {
        return tl::unexpected(wrong(shown, "error= is a number of percent, such as 1"));
      }
      spec.gain_error = *percent / 100;
    } else if (key == "every" || key == "mean") {
      const auto time = parse_duration(value);
      if (!time) return forward_error(time);
      if (*time < std::chrono::milliseconds{50} || *time > std::chrono::hours{1}) {
        return tl::unexpected(wrong(shown, key + "= must be from 50ms to 1h"));
      }
      if (key == "every") spec.every = *time;
      if (key == "mean") spec.mean_over = *time;
    } else if (kind->keys.find(" " + key + " ") != std::string_view::npos) {
      const auto number = parse_integer(value);
      if (key == "channel" && !(number && *number >= 0 && *number < 100)) {
        return tl::unexpected(wrong(shown, "channel= is the number of a socket, from 0"));
      }
      spec.keys.emplace(key, value);
    } else {
      return tl::unexpected(wrong(shown, fmt::format("{} has no key {}", spec.kind, key)));
    }
  }
  return spec;
}

WallMeter::WallMeter(WallSpec spec, std::unique_ptr<WallSource> source)
    : spec_(std::move(spec)), source_(std::move(source)) {}

Result<std::unique_ptr<WallMeter>> WallMeter::open(const WallOptions& options) {
  auto spec = parse_wall_spec(options.spec);
  if (!spec) return forward_error(spec);
  auto source = open_wall_source(*spec);
  auto first = source ? (*source)->read() : Result<WallReading>(tl::unexpected(source.error()));
  const bool may_come =
      !first && (first.error().code == Errc::kTimeout || first.error().code == Errc::kUnavailable);
  if (!first && !may_come) return forward_error(first);

  std::unique_ptr<WallMeter> meter(
      new WallMeter(std::move(*spec), source ? std::move(*source) : nullptr));
  if (may_come) meter->absent_ = first.error();
  const auto name = meter->spec_.name();
  const auto domain =
      meter->add_domain(model::DomainKind::kPlatform, options.device, "Wall meter (" + name + ")")
          .id;
  model::Sensor& sensor =
      meter->add_sensor(domain, model::SensorKind::kPowerAverage, "wall:" + name);
  sensor.traits.window =
      meter->spec_.mean_over || !first ? meter->spec_.mean_over : first->mean_over;
  sensor.traits.scale = model::ScaleError::symmetric(meter->spec_.gain_error);
  meter->probes_.push_back({"wall meter", {}, {sensor.id}});
  meter->set_demand(options.demand);
  return meter;
}

void WallMeter::set_demand(const Demand& demand) {
  probes_.front().period = std::max(spec_.every, demand.poll_period);
}

HostTime WallMeter::read(std::size_t, model::Readings& out) {
  const HostTime before = HostClock::now();
  auto reading = read_source();
  const HostTime after = HostClock::now();
  const auto sensor = sensors_.front().id;
  if (reading) {
    out.powers.push_back({sensor, before + (after - before) / 2, reading->power});
  } else {
    out.failures.push_back({sensor, after, std::move(reading.error())});
  }
  return std::max(before + probes_.front().period, after);
}

Result<WallReading> WallMeter::read_source() {
  // The recording has the reason, however short it is.
  if (absent_ && !std::exchange(has_stated_, true)) return tl::unexpected(*absent_);
  if (!source_) {
    auto source = open_wall_source(spec_);
    if (!source) return forward_error(source);
    source_ = std::move(*source);
  }
  return source_->read();
}

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
  if ((at(2) | at(3) << 8) == kNoValue) {
    return fail(Errc::kUnavailable, "the BMC answers 65535 W: all bits are set, which is no value");
  }
  // The period that follows is of the statistics, not of this power.
  return WallReading{Power::watts(at(2) | at(3) << 8), std::nullopt};
}

Result<WallReading> parse_dcmi_text(std::string_view text) {
  const auto value = value_of(text, "Current Power");
  const auto watts = parse_number(value.substr(0, value.find(' ')));
  if (!watts || *watts < 0 || *watts > 1e6) {
    return fail(Errc::kCorrupt, "ipmi-dcmi printed no power");
  }
  const auto state = value_of(text, "Power Measurement");
  if ((!state.empty() && state != "Active") || *watts == kNoValue) {
    return fail(Errc::kUnavailable,
                fmt::format("the BMC does not measure power now: ipmi-dcmi prints '{}', Power "
                            "Measurement '{}'",
                            value, state));
  }
  return WallReading{Power::watts(*watts), std::nullopt};
}

}  // namespace jouleprof::meters
