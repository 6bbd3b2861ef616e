// What is known of a machine's domains now, while they are being measured.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "model/domain.h"
#include "model/profile.h"

namespace jouleprof::model {

struct DomainSnapshot {
  Domain domain;
  // The weakest provenance of energy and power; before there is either, that of the domain's
  // sensors; unavailable where it has none.
  Provenance provenance = Provenance::kUnavailable;

  // Energy since Snapshot::begin, or since the domain's first reading where that is later, up to
  // the newest instant that all of its sensors have reported.
  std::optional<Measurement> energy;
  HostTime energy_begin{};  // both meaningless without an energy
  HostTime energy_end{};
  std::string reason;  // why `energy` is absent; empty otherwise

  std::optional<Power> power;   // absent when no sensor gave one for ten seconds
  std::optional<Duration> age;  // of the newest reading of energy or power; absent before the first
  // Values that were renewed within ten seconds, by their names in model/device/sensor.h.
  std::map<std::string, double, std::less<>> gauges;

  std::optional<double> gauge(std::string_view name) const {
    const auto found = gauges.find(name);
    return found != gauges.end() ? std::optional(found->second) : std::nullopt;
  }
};

struct Snapshot {
  RealTime time{};
  HostTime begin{};    // from where energies count
  Duration elapsed{};  // since then
  std::vector<DomainSnapshot> domains;
};

}  // namespace jouleprof::model
