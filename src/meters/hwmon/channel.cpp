#include "meters/hwmon/channel.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/text.h"

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

}  // namespace jouleprof::meters::hwmon
