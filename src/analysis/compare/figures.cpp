#include "analysis/compare/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "analysis/compare/sides.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using model::DomainKind;
using model::DomainProfile;
using model::Measurement;
using model::Provenance;

std::string figure_label_of(const model::Domain& domain) {
  return domain.kind == DomainKind::kDram ? "dram " + domain.device : domain.device;
}

Figure absent(std::string reason) { return {{}, 0, {}, false, std::move(reason)}; }

// Adds up energies of several sensors. Repeatabilities add linearly, as in the total of a report.
// Calibration errors of a domain are its sensor's factor and its offset, which differ in how they
// cancel between two runs.
constexpr const char* kOffset = " offset";

class Sum {
 public:
  void add(const Measurement& m, const std::string& label) {
    joules_ += m.energy.joules();
    repeatability_ += m.repeatability.joules();
    calibration_[label] += model::gain_ratio(m) * m.energy.joules();
    if (m.offset > Energy{}) calibration_[label + kOffset] += m.offset.joules();
    estimated_ = estimated_ || m.provenance == Provenance::kEstimated;
    most_ += m.high().joules();
    any_ = true;
  }
  Figure figure(double units) const {
    if (!any_) return absent("absent");
    if (!(joules_ > 0)) {
      Figure none = absent("not_positive");
      none.at_most = std::max(most_, 0.0) / units;
      return none;
    }
    Figure figure{joules_ / units, repeatability_ / joules_, {}, estimated_};
    for (const auto& [label, joules] : calibration_) figure.calibration[label] = joules / joules_;
    return figure;
  }

 private:
  double joules_ = 0;
  double repeatability_ = 0;
  std::map<std::string, double> calibration_;
  bool estimated_ = false;
  double most_ = 0;
  bool any_ = false;
};

Figure time_figure(Duration d, double units) {
  if (d <= Duration{}) return absent("not_positive");
  return {seconds(d) / units};
}

// The places of the domains whose sum is the total.
std::vector<std::size_t> choose_domains(const model::Profile& profile, RunFigures& out) {
  std::vector<std::size_t> measured;
  std::vector<std::size_t> estimated;
  for (std::size_t i = 0; i < profile.domains.size(); ++i) {
    const DomainProfile& d = profile.domains[i];
    if (is_part(d.domain, profile.domains, &DomainProfile::domain) ||
        contains_others(d.domain.kind)) {
      continue;
    }
    if (!d.domain.visible) continue;
    if (!d.energy) {
      out.excluded.push_back(figure_label_of(d.domain) + " (unavailable)");
    } else if (d.energy->provenance == Provenance::kEstimated) {
      estimated.push_back(i);
    } else {
      measured.push_back(i);
    }
  }
  if (measured.empty()) return estimated;
  for (const std::size_t i : estimated) {
    out.excluded.push_back(figure_label_of(profile.domains[i].domain) + " (estimated)");
  }
  return measured;
}

// Of a recording that says neither, such as an imported log, the board may be any.
std::string identity_of(const model::Domain& domain, const model::RunInfo& run,
                        const std::string& recording) {
  if (!domain.uuid.empty()) return domain.uuid;
  if (run.host.empty()) return "unknown/" + recording + "/" + domain.device;
  return run.host + "/" + domain.device + "/" + domain.name;
}

// The chosen domains that windows of the group measure.
std::vector<std::size_t> measured_by(const model::WindowGroup& group,
                                     std::vector<std::size_t> chosen) {
  std::erase_if(chosen, [&](std::size_t i) {
    return group.energies.at(i).reason == model::kNoWindowMeasures;
  });
  return chosen;
}

// Of one window of the group, over the domains of measured_by().
Figure window_energy(const model::Profile& profile, const model::WindowGroup& group,
                     const std::vector<std::size_t>& measured) {
  Sum sum;
  for (std::size_t i = 0; i < group.energies.size(); ++i) {
    const auto& domain = profile.domains[i].domain;
    const bool is_board = domain.kind == model::DomainKind::kGpu &&
                          !is_part(domain, profile.domains, &DomainProfile::domain);
    if (is_board && lacks_monitors(group.energies[i])) return absent("absent");
  }
  for (const std::size_t i : measured) {
    const auto& energy = group.energies.at(i);
    if (!energy.energy || !is_whole(group, energy)) return absent("absent");
    sum.add(model::singles_of(energy), figure_label_of(profile.domains[i].domain));
  }
  return sum.figure(static_cast<double>(group.count));
}

// Windows of one name and of other devices have rows of their own.
std::vector<FigureRow> window_rows(const model::Profile& profile,
                                   const std::vector<std::size_t>& chosen) {
  std::vector<FigureRow> rows;
  for (const auto& group : profile.windows) {
    if (group.imported || group.count == 0) continue;
    const auto measured = measured_by(group, chosen);
    std::vector<std::string> devices;  // where they are not all
    if (measured != chosen) {
      for (const std::size_t i : measured) {
        devices.push_back(figure_label_of(profile.domains[i].domain));
      }
    }
    rows.push_back({group.name, fmt::format("{}", fmt::join(devices, " ")), group.count,
                    window_energy(profile, group, measured), time_figure(group.mean_time(), 1)});
  }
  return rows;
}

const std::vector<model::ActivityRow>& rows_of(const model::ActivityProfile& profile,
                                               CompareBy by) {
  if (by == CompareBy::kPhase) return profile.by_phase;
  return by == CompareBy::kLayer ? profile.by_layer : profile.by_kernel;
}

// Rows of one name and detail, over all devices.
std::vector<FigureRow> activity_rows(const std::vector<model::ActivityProfile>& profiles,
                                     CompareBy by, double units) {
  struct Added {
    FigureRow row;
    Sum energy;
    Duration busy{};
    std::string reason;
  };
  const auto is_gpu = [](const auto& p) { return p.domain.kind == DomainKind::kGpu; };
  const bool any_gpu = std::ranges::any_of(profiles, is_gpu);
  std::vector<Added> added;
  std::map<std::pair<std::string, std::string>, std::size_t> places;
  for (const auto& profile : profiles) {
    if (any_gpu && !is_gpu(profile)) continue;
    for (const auto& row : rows_of(profile, by)) {
      const auto [place, is_new] = places.try_emplace({row.name, row.detail}, added.size());
      if (is_new) added.push_back({{row.name, row.detail, 0, {}, {}}, {}, {}, ""});
      Added& sum = added[place->second];
      sum.row.count += by == CompareBy::kLayer ? row.count : row.launches;
      sum.busy += row.busy;
      const auto& energy = row.inclusive ? row.inclusive : row.energy;
      if (!energy) {
        sum.reason = "absent";
      } else if (!row.resolvable) {
        sum.reason = "not_resolvable";
      } else {
        sum.energy.add(*energy, figure_label_of(profile.domain));
      }
    }
  }
  std::vector<FigureRow> rows;
  for (auto& sum : added) {
    sum.row.energy = sum.reason.empty() ? sum.energy.figure(units) : absent(std::move(sum.reason));
    sum.row.time = time_figure(sum.busy, units);
    rows.push_back(std::move(sum.row));
  }
  return rows;
}

// Of the whole run: the command's, or the devices'.
Figure run_energy(const model::Profile& profile, const std::vector<std::size_t>& chosen,
                  bool whole_machine, RunFigures& out) {
  const auto has_command = [&](std::size_t i) { return profile.domains[i].command.has_value(); };
  out.is_command = !whole_machine && std::ranges::all_of(chosen, has_command);
  Sum sum;
  Energy undivided;
  for (const std::size_t i : chosen) {
    const DomainProfile& d = profile.domains[i];
    const std::string label = figure_label_of(d.domain);
    if (!out.is_command) {
      sum.add(*d.energy, label);
      continue;
    }
    // What is not divided may be the command's in one run and not in another.
    Measurement own = d.command->energy;
    own.repeatability += d.command->undivided;
    own.error += d.command->undivided;
    undivided += d.command->undivided;
    own.provenance = d.energy->provenance;
    sum.add(own, label);
    if (d.command->rest) {
      out.rest[label] = d.command->rest->joules();
    } else if (d.shares_include_rest) {
      out.rest_in_shares.insert(label);
    }
  }
  Figure figure = sum.figure(1);
  if (figure.reason == "not_positive" && 2 * undivided.joules() > figure.at_most.value_or(0)) {
    figure.reason = "undivided";
  }
  return figure;
}

// How many units the run had, with the figures of one.
Result<double> choose_unit(const model::Profile& profile, const std::vector<std::size_t>& chosen,
                           const FigureOptions& options, RunFigures& out) {
  const std::string& per = options.per;
  if (per.empty()) {
    out.energy = run_energy(profile, chosen, options.whole_machine, out);
    out.time = time_figure(profile.duration(), 1);
    return 1.0;
  }
  for (const auto& group : profile.windows) {
    if (group.imported || group.name != per || group.count == 0) continue;
    const auto measured = measured_by(group, chosen);
    for (const std::size_t i : chosen) {
      const bool is_of_it = std::ranges::find(measured, i) != measured.end();
      if (!is_of_it) out.boards.erase(figure_label_of(profile.domains[i].domain));
    }
    out.energy = window_energy(profile, group, measured);
    out.time = time_figure(group.mean_time(), 1);
    return static_cast<double>(group.count);
  }
  return fail(Errc::kNotFound, fmt::format("{} has no window named {}; --per takes the name of "
                                           "windows, as jouleprof report lists them",
                                           out.name, per));
}

// Takes joules off a run's energy, and its power in proportion. The joules of the error stay.
void take_off(RunFigures& run, double joules) {
  if (!run.energy.value) return;
  const double whole = *run.energy.value;
  const double left = whole - joules;
  for (Figure* figure : {&run.energy, &run.power}) {
    if (!figure->value) continue;
    if (!(left > 0)) {
      *figure = absent("not_positive");
      continue;
    }
    const double factor = whole / left;
    *figure->value /= factor;
    figure->repeatability *= factor;
    for (auto& [label, ratio] : figure->calibration) ratio *= factor;
  }
}

std::vector<RunCurve> curves_of(const Run& run, const model::Profile& profile,
                                const std::vector<std::size_t>& chosen, std::size_t steps) {
  std::vector<RunCurve> curves;
  const auto length = profile.duration();
  if (length <= Duration{}) return curves;
  const Duration step =
      std::max<Duration>(length / static_cast<std::int64_t>(steps), std::chrono::milliseconds{20});
  for (const std::size_t i : chosen) {
    RunCurve curve{figure_label_of(profile.domains[i].domain), step, {}};
    curve.watts.resize(static_cast<std::size_t>(length / step) + 1);
    for (const auto& s : run.curve(i, step, Part{Duration{}, length})) {
      const auto at = (s.begin - profile.begin) / step;
      if (at < 0 || static_cast<std::size_t>(at) >= curve.watts.size()) continue;
      curve.watts[static_cast<std::size_t>(at)] = s.power.watts();
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace

std::vector<std::string> align_rest(std::vector<RunFigures>& before,
                                    std::vector<RunFigures>& after) {
  // Devices with their energy at rest and without it. A run that lacks the device is neither.
  std::set<std::string> with, without;
  for (const auto* side : {&before, &after}) {
    for (const auto& run : *side) {
      for (const auto& [label, identity] : run.boards) {
        const bool has_rest = run.rest.contains(label) || run.rest_in_shares.contains(label);
        (has_rest ? with : without).insert(label);
      }
    }
  }
  std::vector<std::string> left_out;
  for (const auto& label : with) {
    if (!without.contains(label)) continue;
    left_out.push_back(label);
    for (auto* side : {&before, &after}) {
      for (auto& run : *side) {
        if (run.rest_in_shares.erase(label) > 0) run.energy = run.power = absent("rest_unknown");
        const auto found = run.rest.find(label);
        if (found == run.rest.end()) continue;
        take_off(run, found->second);
        run.rest.erase(found);
      }
    }
  }
  return left_out;
}

Result<RunFigures> figures_of(const Run& run, std::string name, const FigureOptions& options) {
  const auto& profile = run.profile();
  if (!profile) return forward_error(profile);
  const auto& activity = run.activity();
  if (!activity) return forward_error(activity);
  RunFigures out;
  out.name = std::move(name);
  out.host = profile->run.host;
  out.boot_id = profile->run.boot_id;
  if (profile->start_time != RealTime{}) out.started = profile->start_time;
  out.length = profile->duration();
  const auto chosen = choose_domains(*profile, out);
  for (const std::size_t i : chosen) {
    const auto& domain = profile->domains[i].domain;
    out.boards[figure_label_of(domain)] = identity_of(domain, profile->run, out.name);
  }
  if (chosen.empty()) {
    return fail(Errc::kUnavailable,
                fmt::format("{} has no domain with an energy, so it cannot be compared; "
                            "jouleprof report lists the reasons",
                            out.name));
  }
  if (options.curve_steps > 0) out.curves = curves_of(run, *profile, chosen, options.curve_steps);
  out.conditions = conditions_of(run, *profile, *activity);
  const auto units = choose_unit(*profile, chosen, options, out);
  if (!units) return forward_error(units);
  out.conditions.per_unit = !options.per.empty();
  for (auto& [name_of_work, count] : out.conditions.work) count /= *units;
  out.power = out.energy;
  if (out.energy.value && out.time.value) {
    out.power.value = *out.energy.value / *out.time.value;
  } else {
    out.power = absent(out.energy.value ? out.time.reason : out.energy.reason);
  }
  if (options.by == CompareBy::kWindow) {
    out.rows = window_rows(*profile, chosen);
  } else if (options.by != CompareBy::kTotal) {
    out.rows = activity_rows(*activity, options.by, *units);
  }
  return out;
}

}  // namespace jouleprof::analysis
