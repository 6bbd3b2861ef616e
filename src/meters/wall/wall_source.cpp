#include "meters/wall/wall_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/text.h"

namespace jouleprof::meters {
namespace {

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

// The first number of a text, times `unit`.
Result<WallReading> first_number(std::string_view text, double unit) {
  for (const std::string_view word : split_blanks(text)) {
    std::string_view digits = word;
    while (digits.ends_with('W') || digits.ends_with(',')) digits.remove_suffix(1);
    const auto number = parse_number(digits);
    if (!number) continue;
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
  return !text.empty() && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
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

}  // namespace

Result<WallSpec> parse_wall_spec(std::string_view text) {
  WallSpec spec;
  const auto colon = text.find(':');
  auto words = split(text.substr(0, colon), ',');
  spec.kind = words.empty() ? "" : std::string(words.front());
  if (colon != std::string_view::npos) spec.address = std::string(text.substr(colon + 1));
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](const Kind& k) { return k.name == spec.kind; });
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
      spec.keys.emplace(key, value);
    } else {
      return tl::unexpected(wrong(shown, fmt::format("{} has no key {}", spec.kind, key)));
    }
  }
  return spec;
}

Result<std::unique_ptr<WallSource>> open_wall_source(const WallSpec& spec) {
  if (spec.kind == "ipmi") return open_ipmi();
  if (spec.kind == "snmp") return open_snmp(spec);
  if (spec.kind != "command") return open_web_meter(spec);
  return open_tool(spec.address, [](std::string_view text) { return first_number(text, 1); });
}

WallMeter::WallMeter(WallSpec spec, std::unique_ptr<WallSource> source)
    : spec_(std::move(spec)), source_(std::move(source)) {}

Result<std::unique_ptr<WallMeter>> WallMeter::open(const WallOptions& options) {
  auto spec = parse_wall_spec(options.spec);
  if (!spec) return forward_error(spec);
  auto source = open_wall_source(*spec);
  if (!source) return forward_error(source);
  const auto first = (*source)->read();
  if (!first) return forward_error(first);

  std::unique_ptr<WallMeter> meter(new WallMeter(std::move(*spec), std::move(*source)));
  model::Domain domain;
  domain.kind = model::DomainKind::kPlatform;
  domain.device = options.device;
  domain.name = "Wall meter (" + meter->spec_.name() + ")";
  meter->domains_.push_back(std::move(domain));
  model::Sensor sensor;
  sensor.kind = model::SensorKind::kPowerAverage;
  sensor.name = "wall:" + meter->spec_.name();
  sensor.traits.window = meter->spec_.mean_over ? meter->spec_.mean_over : first->mean_over;
  sensor.traits.scale = model::ScaleError::symmetric(meter->spec_.gain_error);
  meter->sensors_.push_back(std::move(sensor));
  meter->probes_.push_back({"wall meter", {}, {meter->sensors_.front().id}});
  meter->set_demand(options.demand);
  return meter;
}

void WallMeter::set_demand(const Demand& demand) {
  probes_.front().period = std::max(spec_.every, demand.poll_period);
}

HostTime WallMeter::read(std::size_t, model::Readings& out) {
  const HostTime before = HostClock::now();
  auto reading = source_->read();
  const HostTime after = HostClock::now();
  const auto sensor = sensors_.front().id;
  if (reading) {
    out.powers.push_back({sensor, before + (after - before) / 2, reading->power});
  } else {
    out.failures.push_back({sensor, after, std::move(reading.error())});
  }
  return std::max(before + probes_.front().period, after);
}

}  // namespace jouleprof::meters
