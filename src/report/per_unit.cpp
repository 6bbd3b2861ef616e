#include "report/per_unit.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/text.h"
#include "report/total.h"

namespace jouleprof::report {

Result<UnitCount> parse_unit_count(std::string_view text) {
  const auto colon = text.find(':');
  const auto count = parse_number(trim(text.substr(0, colon)));
  if (!count || *count <= 0) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--per {}: give how many units the run did and their name, such as "
                            "22600:inference",
                            text));
  }
  UnitCount unit{*count, "unit"};
  if (colon != std::string_view::npos) unit.name = std::string(trim(text.substr(colon + 1)));
  if (unit.name.empty()) unit.name = "unit";
  return unit;
}

PerUnit per_unit(const model::Profile& profile, const UnitCount& unit, bool whole_machine) {
  PerUnit per;
  per.unit = unit;
  per.seconds = seconds(profile.duration()) / unit.count;
  const Total total = total_of(profile);
  const auto quote = quoted(total, whole_machine);
  if (!quote) return per;
  per.is_command = quote->is_command;
  per.provenance = quote->provenance;
  per.joules = quote->energy.joules() / unit.count;
  per.error_joules = quote->error.joules() / unit.count;
  per.upper_error_joules = quote->upper_error.joules() / unit.count;
  per.repeatability_joules = quote->repeatability.joules() / unit.count;
  if (total.rest) {
    const Energy rest = quote->is_command ? total.command->rest.value_or(Energy{}) : *total.rest;
    per.dynamic_joules = (quote->energy - rest).joules() / unit.count;
  }
  return per;
}

}  // namespace jouleprof::report
