#include <string>
#include <vector>

#include "base/text.h"
#include "report/activity/activity.h"
#include "report/activity/activity_view.h"
#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using Fields = std::vector<std::string>;

std::string line_of(const Fields& fields) {
  std::string line;
  for (const auto& field : fields) {
    // A line break within quotes is correct CSV that line-based tools fall over.
    line += (line.empty() ? "" : ",") + csv_field(printable(field));
  }
  return line + '\n';
}

void add(Fields& fields, const std::optional<model::Measurement>& m) {
  fields.push_back(m ? joules_decimal(m->energy) : "");
  fields.push_back(m ? joules_decimal(m->low()) : "");
  fields.push_back(m ? joules_decimal(m->high()) : "");
}

std::string number(const std::optional<double>& value, int decimals = 6) {
  return value ? fixed_decimal(*value, decimals) : "";
}

void add_folded(Fields& fields, const std::optional<model::FoldedLayers>& folded) {
  fields.push_back(folded ? std::to_string(folded->count) : "");
  const auto spread = folded ? folded->joules : std::nullopt;
  for (const auto figure :
       {&model::FoldedLayers::Spread::mean, &model::FoldedLayers::Spread::deviation,
        &model::FoldedLayers::Spread::least, &model::FoldedLayers::Spread::greatest}) {
    fields.push_back(spread ? fixed_decimal((*spread).*figure) : "");
  }
}

}  // namespace

std::string activity_to_csv(const std::vector<model::ActivityProfile>& profiles,
                            const ActivityOptions& options) {
  Fields heading{"by",
                 "domain",
                 "device",
                 "uuid",
                 "number",
                 "parent",
                 "depth",
                 "name",
                 "detail",
                 "symbol",
                 "calls",
                 "launches",
                 "busy_seconds",
                 "overlapped_seconds",
                 "energy_joules",
                 "interval_low_joules",
                 "interval_high_joules",
                 "inclusive_joules",
                 "inclusive_low_joules",
                 "inclusive_high_joules",
                 "energy_per_launch_joules",
                 "mean_watts",
                 "share_ratio",
                 "resolvable",
                 "group",
                 "group_joules",
                 "group_low_joules",
                 "group_high_joules",
                 "macs",
                 "parameters",
                 "provenance",
                 "method",
                 "reason"};
  if (options.fold) {
    for (const auto* name : {"folded_layers", "folded_mean_joules", "folded_deviation_joules",
                             "folded_least_joules", "folded_greatest_joules"}) {
      heading.emplace_back(name);
    }
  }
  std::string csv = line_of(heading);
  for (const auto& profile : profiles) {
    for (const auto& line : view_of(profile, options).lines) {
      const model::ActivityRow& row = *line.row;
      const auto power = power_of(row);
      Fields fields{std::string(to_string(options.by)),
                    std::string(to_string(profile.domain.kind)),
                    profile.domain.device,
                    profile.domain.uuid,
                    std::to_string(line.index),
                    line.depth > 0 ? std::to_string(row.parent) : "",
                    std::to_string(line.depth),
                    row.name,
                    row.detail,
                    row.symbol,
                    row.count > 0 ? std::to_string(row.count) : "",
                    std::to_string(row.launches),
                    seconds_decimal(row.busy),
                    row.overlapped ? seconds_decimal(*row.overlapped) : ""};
      add(fields, row.energy);
      add(fields, row.inclusive);
      fields.push_back(number(joules_per_launch(row), 9));
      fields.push_back(power ? fixed_decimal(power->watts()) : "");
      fields.push_back(number(share_of(profile, whole_of(row))));
      fields.emplace_back(!whole_of(row) ? "" : row.resolvable ? "true" : "false");
      fields.push_back(row.group != model::kNone ? std::to_string(row.group) : "");
      add(fields, row.group_energy);
      fields.push_back(number(row.macs, 0));
      fields.push_back(options.by == ActivityBy::kLayer ? std::to_string(row.parameters) : "");
      fields.emplace_back(
          to_string(whole_of(row) ? whole_of(row)->provenance : model::Provenance::kUnavailable));
      fields.push_back(profile.method);
      fields.push_back(row.reason);
      if (options.fold) add_folded(fields, row.folded);
      csv += line_of(fields);
    }
  }
  return csv;
}

}  // namespace jouleprof::report
