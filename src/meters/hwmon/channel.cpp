#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "meters/hwmon/hwmon_meter.h"
#include "model/device/sensor_table.h"

namespace jouleprof::meters::hwmon {
namespace {

constexpr std::int64_t kMaxMicrowatts = 100'000'000'000;
// Registers with all bits set: the value itself, and amdgpu's field of 16 bits in watts.
constexpr std::array<std::int64_t, 2> kNoValue{0xFFFFFFFF, 0xFFFF * std::int64_t{1'000'000}};

std::string_view prefix_of(Form form) {
  switch (form) {
    case Form::kEnergyInput:
      return "energy";
    case Form::kVoltageCurrent:
      return "in";
    case Form::kZonePower:
      return "zone";
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
  // Of the whole chip, as the device tree names it.
  return read_attribute(channel.folder / "label").value_or("");
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
    if (n && std::ranges::binary_search(*names, fmt::format("in{}_input", *n))) {
      add(Form::kVoltageCurrent, *n);
    }
  }
}

// Zones of the SCMI firmware of ARM machines.
void add_zones(const std::filesystem::path& root, std::vector<Channel>& out) {
  const auto folder = root / "sys/class/powercap";
  int number = 0;
  for (const auto& name : names_in(folder)) {
    if (!name.starts_with("arm-scmi:")) continue;
    Channel zone;
    zone.driver = "arm-scmi";
    zone.chip = name;
    zone.bus_address = name;
    zone.folder = zone.device = folder / name;
    zone.form = Form::kZonePower;
    zone.number = ++number;
    zone.label = read_attribute(zone.folder / "name").value_or("");
    out.push_back(std::move(zone));
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
  if (form == Form::kZonePower) return "power_uw";
  return input() + (form == Form::kPowerAverage ? "_average" : "_input");
}

std::string Channel::sensor_name() const {
  if (form == Form::kZonePower) return fmt::format("powercap:{}/power_uw", chip);
  if (form == Form::kVoltageCurrent) {
    return fmt::format("hwmon:{}/in{}_input*curr{}_input", driver, number, number);
  }
  return fmt::format("hwmon:{}/{}", driver, attribute());
}

std::vector<Channel> find_channels(const std::filesystem::path& root,
                                   const std::vector<Board>& cards) {
  const auto folder = root / "sys/class/hwmon";
  std::vector<Channel> channels;
  std::set<std::pair<std::string, std::string>> seen;  // drivers and addresses
  for (const std::string& name : names_in(folder)) {
    const auto chip = open_chip(folder / name);
    if (!chip) continue;
    seen.emplace(chip->driver, chip->bus_address);
    add_channels(*chip, channels);
  }
  // A container may have the cards without the class of chips.
  for (const Board& card : cards) {
    if (card.chip.empty() || !seen.emplace(card.driver, card.bus_address).second) continue;
    auto chip = open_chip(card.chip);
    if (!chip || chip->driver != card.driver) continue;
    chip->bus_address = card.bus_address;
    chip->device = card.device;
    add_channels(*chip, channels);
  }
  add_zones(root, channels);
  const auto key = [](const Channel& c) {
    return std::tuple(c.driver, c.bus_address, c.form, c.number, c.chip);
  };
  std::ranges::sort(channels,
                    [key](const Channel& a, const Channel& b) { return key(a) < key(b); });
  return channels;
}

std::vector<Board> find_boards(std::vector<Board> cards, const std::vector<Channel>& channels) {
  for (const Channel& channel : channels) {
    if (!is_board_driver(channel.driver)) continue;
    cards.push_back({channel.driver, channel.bus_address, {}, channel.device, channel.folder, 0});
  }
  return number_boards(std::move(cards));
}

Result<std::int64_t> read_channel(const Channel& channel) {
  auto value = read_integer(channel.folder / channel.attribute());
  if (!value && is_asleep(channel)) {
    return fail(Errc::kUnavailable, fmt::format("{} does not answer: the kernel has switched the "
                                                "device off until work wakes it up",
                                                (channel.folder / channel.attribute()).string()));
  }
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
  if (channel.form != Form::kEnergyInput && std::ranges::find(kNoValue, micro) != kNoValue.end()) {
    return fail(Errc::kCorrupt,
                fmt::format("{} holds {} uW: all bits are set, which is no value",
                            (channel.folder / channel.attribute()).string(), micro));
  }
  if (micro == 0 && channel.form != Form::kEnergyInput && is_board_driver(channel.driver)) {
    return fail(Errc::kUnavailable,
                fmt::format("{} holds 0 uW, which no GPU in use draws: of a package with two dies "
                            "the driver fills only the first one's",
                            (channel.folder / channel.attribute()).string()));
  }
  return micro;
}

bool is_switched_off(const Channel& channel) {
  return read_setting(channel, channel.input() + "_enable") == 0;
}

bool is_asleep(const Channel& channel) {
  return read_attribute(channel.device / "power/runtime_status").value_or("") == "suspended";
}

std::optional<long long> read_setting(const Channel& channel, const std::string& attribute) {
  const auto value = read_integer(channel.folder / attribute);
  return value ? std::optional(*value) : std::nullopt;
}

namespace {

using model::DomainKind;

Result<Role> unknown(const Channel& channel) {
  return fail(Errc::kUnsupported,
              fmt::format("the meaning of {} of driver {}{} is unknown",
                          (channel.folder / channel.attribute()).string(), channel.driver,
                          channel.label.empty() ? "" : " ('" + channel.label + "')"));
}

// energy1 of xe is the card, energy2 the package on it. What i915 calls energy1 is the package's
// register, too.
bool is_card_counter(const Channel& channel) {
  return channel.driver == "xe" && channel.form == Form::kEnergyInput && channel.number == 1;
}

bool counts(const Channel& channel) {
  const auto value = read_channel(channel);
  return value && *value > 0;
}

Result<Role> board_role(const Channel& channel, const std::vector<Channel>& all,
                        const Board& board) {
  Role role{DomainKind::kGpu, board.domain(), board.name(), std::nullopt, ""};
  if (!board.is_intel()) {
    if (channel.number != 1 || channel.form == Form::kEnergyInput) return unknown(channel);
    if (is_apu(board)) role.kind = DomainKind::kModule;
    return role;
  }
  if (channel.form != Form::kEnergyInput || channel.number > 2) return unknown(channel);
  if (is_card_counter(channel)) return role;
  const bool is_part = std::ranges::any_of(all, [&](const Channel& c) {
    return c.chip == channel.chip && c.bus_address == channel.bus_address && is_card_counter(c) &&
           counts(c);
  });
  if (is_part) {
    role.parent_kind = DomainKind::kGpu;
    role.parent_device = role.device;
  }
  role.device += "-package";
  role.name += is_part ? ", package" : ", package only: a lower bound of the card";
  return role;
}

// One chip a socket; Esocket0, ... of the older driver, which counts cores as well.
Result<Role> epyc_role(const Channel& channel, const std::vector<Channel>& all) {
  std::size_t socket = 0;
  if (channel.form == Form::kEnergyInput) {
    const auto number = channel.label.starts_with("Esocket")
                            ? parse_integer(channel.label.substr(7))
                            : std::nullopt;
    if (!number || *number < 0) return unknown(channel);
    socket = static_cast<std::size_t>(*number);
  } else {
    if (channel.number != 1) return unknown(channel);
    std::set<std::string> before;
    for (const Channel& other : all) {
      if (other.driver == channel.driver && other.bus_address < channel.bus_address) {
        before.insert(other.bus_address);
      }
    }
    socket = before.size();
  }
  return Role{DomainKind::kCpu, fmt::format("package-{}", socket), "AMD EPYC", std::nullopt, ""};
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

std::string why_without_sensor(const Board& board, const std::vector<Channel>& all) {
  if (is_integrated(board)) {
    return "it is part of the processor, whose package contains its energy";
  }
  for (const Channel& channel : all) {
    if (channel.driver != board.driver || channel.bus_address != board.bus_address) continue;
    if (board.is_intel()) {
      return fmt::format("the driver counts the energy of {}-package only, which is a part of it",
                         board.domain());
    }
  }
  return fmt::format("driver {} shows neither its power nor its energy", board.driver);
}

Result<Role> role_of(const Channel& channel, const std::vector<Channel>& all,
                     const std::vector<Board>& boards) {
  for (const Board& board : boards) {
    if (board.driver == channel.driver && board.bus_address == channel.bus_address) {
      return board_role(channel, all, board);
    }
  }
  if (channel.driver == "ina3221" || channel.driver == "ina238") return rail_role(channel);
  if (channel.driver == "amd_hsmp_hwmon" || channel.driver == "amd_energy") {
    return epyc_role(channel, all);
  }
  if (channel.driver == "arm-scmi") {
    return Role{DomainKind::kPlatform,
                "scmi:" + (channel.label.empty() ? channel.chip : channel.label),
                "SCMI zone " + channel.chip, std::nullopt, ""};
  }
  if (channel.driver == "power_meter") return socket_role(channel);
  return unknown(channel);
}

bool is_uninteresting(const Channel& channel) {
  if (channel.driver.starts_with("i915_gt")) return true;
  if (channel.driver == "amdgpu" && channel.label == "fastPPT") return true;
  if (channel.driver == "amd_energy" && channel.label.starts_with("Ecore")) return true;
  if (channel.driver == "ina238" && channel.form == Form::kEnergyInput) return true;
  // The driver's own sums, and inputs that the board leaves open.
  return channel.driver == "ina3221" && (channel.number > 3 || channel.label == "NC");
}

}  // namespace jouleprof::meters::hwmon
