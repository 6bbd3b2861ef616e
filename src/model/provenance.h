// Where a figure comes from, in the four words every output uses.
#pragma once

#include <optional>
#include <string_view>

namespace jouleprof::model {

enum class Provenance {
  kMeasured,     // read from a sensor of this machine
  kEstimated,    // computed by a model: no sensor saw it
  kSimulated,    // read from a simulated device: a test, never a measurement
  kUnavailable,  // could not be had; the figure itself is absent
};

std::string_view to_string(Provenance p);
std::optional<Provenance> parse_provenance(std::string_view text);

// What a sum is, made of an `a` and a `b`: simulated before estimated before measured; an
// unavailable part does not change what the other is.
Provenance combine(Provenance a, Provenance b);

}  // namespace jouleprof::model
