// Fake hwmon chips for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "meters/hwmon/hwmon_meter.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::meters {

// A chip as the kernel lays it out: its folder, and a link to the device behind it.
class Chip {
 public:
  Chip(const TempTree& tree, const std::string& hwmon, const std::string& driver,
       const std::string& bus_address = "")
      : tree_(tree), folder_("sys/class/hwmon/" + hwmon + "/") {
    tree.write(folder_ + "name", driver + "\n");
    if (bus_address.empty()) return;
    device_ = "sys/devices/" + bus_address + "/";
    std::filesystem::create_directories(tree / device_);
    std::filesystem::create_directory_symlink("../../../devices/" + bus_address,
                                              tree / (folder_ + "device"));
  }
  Chip& set(const std::string& attribute, const std::string& value) {
    tree_.write(folder_ + attribute, value + "\n");
    return *this;
  }
  Chip& set_device(const std::string& attribute, const std::string& value) {
    tree_.write(device_ + attribute, value);
    return *this;
  }
  // A file that exists and cannot be read, by anyone: as a driver that answers EBUSY.
  Chip& block(const std::string& attribute) {
    std::filesystem::remove_all(tree_ / (folder_ + attribute));
    std::filesystem::create_directories(tree_ / (folder_ + attribute));
    return *this;
  }

 private:
  const TempTree& tree_;
  std::string folder_;
  std::string device_;
};

inline std::unique_ptr<HwmonMeter> open_meter(const TempTree& tree, Demand demand = {}) {
  auto meter = HwmonMeter::open({tree.root(), demand});
  if (!meter) {
    ADD_FAILURE() << meter.error().message;
    return nullptr;
  }
  return std::move(*meter);
}

inline std::vector<std::string> describe_domains(const Meter& meter) {
  std::vector<std::string> lines;
  for (const auto& d : meter.domains()) {
    std::string line = std::string(to_string(d.kind)) + " " + d.device;
    if (d.parent) line += " in " + meter.domains()[static_cast<std::size_t>(*d.parent)].device;
    lines.push_back(line);
  }
  return lines;
}

}  // namespace jouleprof::meters
