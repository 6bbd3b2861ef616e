// What outputs show of a snapshot: which domains, and which figures by which names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace jouleprof::report {

// The names of all figures but the energy, in the order of the output's columns.
std::span<const std::string_view> snapshot_figures();

// A figure by its name, in the unit of the name; absent where it is not known.
std::optional<double> figure_of(const model::DomainSnapshot& domain, std::string_view name);

// What limits a GPU's clocks, in the words of clock_reasons.h; absent where it is not known.
std::optional<std::vector<std::string_view>> clock_limits_of(const model::DomainSnapshot& domain);

// The domains that are rows of the monitor: those with a sensor that are not within another domain.
std::vector<const model::DomainSnapshot*> rows_of(const model::Snapshot& snapshot);

}  // namespace jouleprof::report
