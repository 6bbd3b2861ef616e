// One way of reading RAPL counters, whatever the kernel interface behind it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/meter.h"
#include "model/device/sensor.h"
#include "model/domain.h"

namespace jouleprof::meters::rapl {

// What a counter counts. `package` is the kernel's name of the package or die that the domain
// belongs to, "package-0" or "package-1-die-0"; empty for psys.
struct Place {
  model::DomainKind kind{};
  std::string package;

  bool operator==(const Place&) const = default;
};

// "RAPL dram of package-0", for messages.
std::string describe(const Place& place);

struct Counter {
  Place place;
  std::string name;  // model::Sensor::name
  model::SensorTraits traits;
  // The raw total. Errors: as the kernel gives them; corrupt when it is no energy.
  std::function<Result<Energy>()> read;
};

struct Unreadable {
  Place place;
  Error error;
};

// The counters that answer now and those that do not.
struct Source {
  std::vector<Counter> counters;
  std::vector<Unreadable> unreadable;
  std::vector<Missing> ignored;  // counters that would mislead, with why
};

}  // namespace jouleprof::meters::rapl
