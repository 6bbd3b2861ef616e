// What a hwmon channel measures, by its driver and its label; never a guess.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "meters/hwmon/channel.h"
#include "model/domain.h"

namespace jouleprof::meters::hwmon {

struct Role {
  model::DomainKind kind{};
  std::string device;  // model::Domain::device
  std::string name;
  // The device and kind of the domain that contains this one.
  std::optional<model::DomainKind> parent_kind;
  std::string parent_device;
};

// amdgpu, nouveau, xe, i915: the board. An AMD APU's sensor sees its CPU cores too, so it is
// kModule. ina3221 (Jetson): by the name of the rail. power_meter (ACPI): the sockets of an NVIDIA
// Grace by their labels, else the machine.
// `all` are the machine's channels, among which devices are counted and boards looked up.
// Errors: unsupported when the channel's meaning is unknown.
Result<Role> role_of(const Channel& channel, const std::vector<Channel>& all);

// True for what is only a part of another channel (one tile of an Intel GPU) or not connected.
bool is_uninteresting(const Channel& channel);

}  // namespace jouleprof::meters::hwmon
