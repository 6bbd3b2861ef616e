// The origin of a figure, in the four words that every output uses.
#pragma once

#include <optional>
#include <string_view>

namespace jouleprof::model {

enum class Provenance {
  kMeasured,     // read from a sensor of this machine
  kEstimated,    // computed by a model, without a sensor
  kSimulated,    // read from a simulated device: a test, never a measurement
  kUnavailable,  // the figure itself is absent
};

std::string_view to_string(Provenance p);
std::optional<Provenance> parse_provenance(std::string_view text);

// The provenance of a sum of an `a` and a `b`: simulated before estimated before measured; an
// unavailable part does not change the other's.
Provenance combine(Provenance a, Provenance b);

}  // namespace jouleprof::model
