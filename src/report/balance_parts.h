// What a domain's energy consists of, for a bar: parts that sum to it exactly.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "model/profile.h"

namespace jouleprof::report {

struct BalancePart {
  std::string_view label;                   // as in the glossary: "rest", "held", ...
  std::string_view colour;                  // safe for the colour-blind, and the page's
  Energy energy;                            // negative of unattributed energy at most
  std::optional<model::Measurement> level;  // of rest, held and active energy as they were found
};

// Parts of zero joules are left out. Empty for a domain without an energy.
std::vector<BalancePart> balance_parts(const model::Profile& profile,
                                       const model::DomainProfile& domain);

}  // namespace jouleprof::report
