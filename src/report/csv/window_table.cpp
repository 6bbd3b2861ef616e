#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "model/window_mean.h"
#include "report/cells.h"
#include "report/quantity.h"
#include "report/render.h"

namespace jouleprof::report {
namespace {

using model::Measurement;
using model::WindowEnergy;
using model::WindowGroup;

constexpr std::string_view kHeader =
    "name,labels,imported,count,total_seconds,mean_seconds,quartile_low_seconds,median_seconds,"
    "quartile_high_seconds,device,domain,count_with_energy,energy_joules,mean_joules,"
    "mean_low_joules,mean_high_joules,quartile_low_joules,median_joules,quartile_high_joules,"
    "rest_joules,held_joules,active_joules,provenance,reason\n";

std::string text(std::string_view words) { return csv_field(printable(words)); }
std::string decimal(Energy e) { return joules_decimal(e); }
std::string decimal(Duration d) { return seconds_decimal(d); }

template <typename T>
std::string three(const std::optional<model::Quartiles<T>>& q) {
  return q ? decimal(q->lower) + ',' + decimal(q->median) + ',' + decimal(q->upper) : ",,";
}

std::string level(const std::optional<Measurement>& m) { return m ? decimal(m->energy) : ""; }

std::string labels_of(const WindowGroup& group) {
  std::string all;
  for (const auto& [name, value] : group.labels) {
    all += (all.empty() ? "" : ";") + name + '=' + value;
  }
  return all;
}

std::string figures(const WindowGroup& group, const WindowEnergy& e) {
  const bool has_sum = is_whole(group, e);
  const auto sum = e.energy ? std::optional(e.energy->energy) : e.reported;
  std::string line = has_sum && sum ? decimal(*sum) : "";
  line += ',';
  if (const auto mean = mean_of(e)) {
    line += decimal(mean->energy) + ',' + decimal(mean->low()) + ',' + decimal(mean->high());
  } else {
    line += (sum && e.count > 0 ? decimal(model::mean_of(*sum, e.count)) : "") + ",,";
  }
  const model::EnergyLevels levels = has_sum ? e.levels : model::EnergyLevels{};
  line += ',' + three(e.quartiles) + ',' + level(levels.rest) + ',' + level(levels.held) + ',' +
          level(levels.active) + ',';
  if (!group.imported) {
    line += to_string(e.energy ? e.energy->provenance : model::Provenance::kUnavailable);
  }
  return line + ',' + text(e.reason);
}

}  // namespace

std::string windows_to_csv(const model::Profile& profile) {
  std::string csv(kHeader);
  for (const WindowGroup& group : profile.windows) {
    const std::string head = text(group.name) + ',' + text(labels_of(group)) + ',' +
                             (group.imported ? "true" : "false") + ',' +
                             std::to_string(group.count) + ',' + decimal(group.total_time) + ',' +
                             decimal(group.mean_time()) + ',' + three(group.time_quartiles) + ',';
    for (std::size_t d = 0; d < group.energies.size() && d < profile.domains.size(); ++d) {
      const WindowEnergy& e = group.energies[d];
      csv += head + text(profile.domains[d].domain.device) + ',' +
             std::string(to_string(profile.domains[d].domain.kind)) + ',' +
             std::to_string(e.count) + ',' + figures(group, e) + '\n';
    }
  }
  return csv;
}

}  // namespace jouleprof::report
