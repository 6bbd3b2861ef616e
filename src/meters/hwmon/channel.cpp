#include "meters/hwmon/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "model/device/jetson_rails.h"

namespace jouleprof::meters::hwmon {
namespace {

constexpr std::int64_t kMaxMicrowatts = 100'000'000'000;

std::string_view prefix_of(Form form) {
  switch (form) {
    case Form::kEnergyInput:
      return "energy";
    case Form::kVoltageCurrent:
      return "in";
    default:
      return "power";
  }
}

// The number in "power12_average", given "power" and "_average".
std::optional<int> number_between(std::string_view name, std::string_view begin,
                                  std::string_view end) {
  if (name.size() <= begin.size() + end.size() || !name.starts_with(begin) ||
      !name.ends_with(end)) {
    return std::nullopt;
  }
  const auto number =
      parse_integer(name.substr(begin.size(), name.size() - begin.size() - end.size()));
  if (!number || *number < 0 || *number > 9999) return std::nullopt;
  return static_cast<int>(*number);
}

std::string read_label(const Channel& channel) {
  // ACPI power meters carry their label in the firmware's OEM text.
  for (const char* suffix : {"_label", "_oem_info"}) {
    const auto label = read_attribute(channel.folder / (channel.input() + suffix));
    if (label && !label->empty()) return *label;
  }
  return "";
}

void add_channels(const Channel& chip, std::vector<Channel>& out) {
  const auto names = list_folder(chip.folder);
  if (!names) return;
  const auto add = [&](Form form, int number) {
    Channel channel = chip;
    channel.form = form;
    channel.number = number;
    channel.label = read_label(channel);
    out.push_back(std::move(channel));
  };
  bool has_power = false;
  for (const std::string& name : *names) {
    if (const auto n = number_between(name, "power", "_average")) {
      add(Form::kPowerAverage, *n);
      has_power = true;
    } else if (const auto m = number_between(name, "power", "_input")) {
      add(Form::kPowerInput, *m);
      has_power = true;
    } else if (const auto k = number_between(name, "energy", "_input")) {
      add(Form::kEnergyInput, *k);
    }
  }
  if (has_power) return;
  for (const std::string& name : *names) {
    const auto n = number_between(name, "curr", "_input");
    if (n && std::binary_search(names->begin(), names->end(), fmt::format("in{}_input", *n))) {
      add(Form::kVoltageCurrent, *n);
    }
  }
}

// The chip of <hwmon>: older drivers leave their inputs in the device's folder.
std::optional<Channel> open_chip(const std::filesystem::path& hwmon) {
  Channel chip;
  chip.chip = hwmon.filename().string();
  chip.device = hwmon / "device";
  for (const auto& folder : {hwmon, chip.device}) {
    const auto name = read_attribute(folder / "name");
    if (!name) continue;
    chip.driver = *name;
    chip.folder = folder;
    break;
  }
  if (chip.folder.empty()) return std::nullopt;
  std::error_code err;
  const auto target = std::filesystem::read_symlink(chip.device, err);
  chip.bus_address = err ? chip.chip : target.filename().string();
  return chip;
}

}  // namespace

std::string Channel::input() const { return fmt::format("{}{}", prefix_of(form), number); }

std::string Channel::attribute() const {
  return input() + (form == Form::kPowerAverage ? "_average" : "_input");
}

std::string Channel::sensor_name() const {
  if (form == Form::kVoltageCurrent) {
    return fmt::format("hwmon:{}/in{}_input*curr{}_input", driver, number, number);
  }
  return fmt::format("hwmon:{}/{}", driver, attribute());
}

Result<std::vector<Channel>> find_channels(const std::filesystem::path& root) {
  const auto folder = root / "sys/class/hwmon";
  auto chips = list_folder(folder);
  if (!chips) return forward_error(chips);
  std::vector<Channel> channels;
  for (const std::string& name : *chips) {
    if (const auto chip = open_chip(folder / name)) add_channels(*chip, channels);
  }
  const auto key = [](const Channel& c) {
    return std::tuple(c.driver, c.bus_address, c.form, c.number, c.chip);
  };
  std::sort(channels.begin(), channels.end(),
            [key](const Channel& a, const Channel& b) { return key(a) < key(b); });
  return channels;
}

Result<std::int64_t> read_channel(const Channel& channel) {
  auto value = read_integer(channel.folder / channel.attribute());
  if (!value) return forward_error(value);
  std::int64_t micro = *value;
  if (channel.form == Form::kVoltageCurrent) {
    auto current = read_integer(channel.folder / fmt::format("curr{}_input", channel.number));
    if (!current) return forward_error(current);
    // Millivolts times milliamperes are microwatts.
    if (__builtin_mul_overflow(*value, *current, &micro)) micro = kMaxMicrowatts + 1;
  }
  if (micro < 0 || (channel.form != Form::kEnergyInput && micro > kMaxMicrowatts)) {
    return fail(Errc::kCorrupt, fmt::format("{} holds {} {}, which is impossible",
                                            (channel.folder / channel.attribute()).string(), micro,
                                            channel.form == Form::kEnergyInput ? "uJ" : "uW"));
  }
  return micro;
}

bool is_switched_off(const Channel& channel) {
  return read_setting(channel, channel.input() + "_enable") == 0;
}

std::optional<long long> read_setting(const Channel& channel, const std::string& attribute) {
  const auto value = read_integer(channel.folder / attribute);
  return value ? std::optional(*value) : std::nullopt;
}

namespace {

using model::DomainKind;

std::size_t index_of_device(const Channel& channel, const std::vector<Channel>& all) {
  std::set<std::string> before;
  for (const Channel& other : all) {
    if (other.driver == channel.driver && other.bus_address < channel.bus_address) {
      before.insert(other.bus_address);
    }
  }
  return before.size();
}

// AMD's metrics table begins with its size (2 bytes) and its format: 1 on a board, 2 or 3 on an
// APU. https://docs.kernel.org/gpu/amdgpu/driver-misc.html
bool is_apu(const Channel& channel) {
  const auto metrics = read_file(channel.device / "gpu_metrics");
  return metrics && metrics->size() > 2 && ((*metrics)[2] == 2 || (*metrics)[2] == 3);
}

std::string board_name(const Channel& channel) {
  const auto product = read_attribute(channel.device / "product_name");
  if (product && !product->empty()) return *product;
  std::string name = channel.driver + " GPU";
  if (channel.driver == "amdgpu") name = "AMD GPU";
  if (channel.driver == "nouveau") name = "NVIDIA GPU";
  if (channel.driver == "xe" || channel.driver == "i915") name = "Intel GPU";
  return fmt::format("{} at {}", name, channel.bus_address);
}

Result<Role> unknown(const Channel& channel) {
  return fail(Errc::kUnsupported,
              fmt::format("the meaning of {} of driver {}{} is unknown",
                          (channel.folder / channel.attribute()).string(), channel.driver,
                          channel.label.empty() ? "" : " ('" + channel.label + "')"));
}

Result<Role> board_role(const Channel& channel, const std::vector<Channel>& all) {
  Role role{DomainKind::kGpu, fmt::format("{}-{}", channel.driver, index_of_device(channel, all)),
            board_name(channel), std::nullopt, ""};
  const bool is_intel = channel.driver == "xe" || channel.driver == "i915";
  if (!is_intel) {
    if (channel.number != 1 || channel.form == Form::kEnergyInput) return unknown(channel);
    if (channel.driver == "amdgpu" && is_apu(channel)) role.kind = DomainKind::kModule;
    return role;
  }
  if (channel.form != Form::kEnergyInput || channel.number > 2) return unknown(channel);
  // energy1 is the card, energy2 the package on it; some boards have only the latter.
  const bool has_card = std::any_of(all.begin(), all.end(), [&](const Channel& c) {
    return c.chip == channel.chip && c.form == Form::kEnergyInput && c.number == 1;
  });
  if (channel.number == 2 && has_card) {
    role.parent_kind = DomainKind::kGpu;
    role.parent_device = role.device;
    role.device += "-package";
    role.name += ", package";
  }
  return role;
}

Result<Role> rail_role(const Channel& channel) {
  for (const auto& [label, kind] : model::kJetsonRails) {
    if (label == channel.label) {
      return Role{kind, "hwmon:" + channel.label, channel.label, std::nullopt, ""};
    }
  }
  return unknown(channel);
}

// "Grace Power Socket 0" and the like.
// https://docs.nvidia.com/grace-perf-tuning-guide/power-thermals.html
Result<Role> socket_role(const Channel& channel) {
  const auto words = split_blanks(channel.label);
  if (words.empty()) {
    if (read_setting(channel, channel.input() + "_is_battery") == 1) return unknown(channel);
    return Role{DomainKind::kPlatform, "hwmon:" + channel.bus_address, "Machine (ACPI power meter)",
                std::nullopt, ""};
  }
  if (words.size() != 4 || words[1] != "Power" || words[2] != "Socket" ||
      !parse_integer(words[3])) {
    return unknown(channel);
  }
  const std::string package = fmt::format("package-{}", words[3]);
  if (words[0] == "Grace") return Role{DomainKind::kCpu, package, "NVIDIA Grace", std::nullopt, ""};
  if (words[0] == "CPU") {
    return Role{DomainKind::kCpuCores, package, "CPU rail", DomainKind::kCpu, package};
  }
  if (words[0] == "SysIO") {
    return Role{DomainKind::kCpuUncore, package, "SysIO rail", DomainKind::kCpu, package};
  }
  if (words[0] == "Module") {
    return Role{DomainKind::kModule, fmt::format("module-{}", words[3]), "Grace superchip module",
                std::nullopt, ""};
  }
  return unknown(channel);
}

}  // namespace

Result<Role> role_of(const Channel& channel, const std::vector<Channel>& all) {
  constexpr std::array<std::string_view, 4> kBoards{"amdgpu", "nouveau", "xe", "i915"};
  if (std::find(kBoards.begin(), kBoards.end(), channel.driver) != kBoards.end()) {
    return board_role(channel, all);
  }
  if (channel.driver == "ina3221") return rail_role(channel);
  if (channel.driver == "power_meter") return socket_role(channel);
  return unknown(channel);
}

bool is_uninteresting(const Channel& channel) {
  if (channel.driver.starts_with("i915_gt")) return true;
  // The driver's own sums, and inputs that the board leaves open.
  return channel.driver == "ina3221" && (channel.number > 3 || channel.label == "NC");
}

}  // namespace jouleprof::meters::hwmon
