#include "model/provenance.h"

namespace jouleprof::model {

std::string_view to_string(Provenance p) {
  switch (p) {
    case Provenance::kMeasured:
      return "measured";
    case Provenance::kEstimated:
      return "estimated";
    case Provenance::kSimulated:
      return "simulated";
    case Provenance::kUnavailable:
      return "unavailable";
  }
  return "unavailable";
}

std::optional<Provenance> parse_provenance(std::string_view text) {
  for (const auto p : {Provenance::kMeasured, Provenance::kEstimated, Provenance::kSimulated,
                       Provenance::kUnavailable}) {
    if (text == to_string(p)) return p;
  }
  return std::nullopt;
}

Provenance combine(Provenance a, Provenance b) {
  for (const auto p : {Provenance::kSimulated, Provenance::kEstimated, Provenance::kMeasured}) {
    if (a == p || b == p) return p;
  }
  return Provenance::kUnavailable;
}

}  // namespace jouleprof::model
