#include "report/headline_text.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/process/last_resort.h"
#include "report/cells.h"
#include "report/quantity.h"

namespace jouleprof::report {

using model::DomainProfile;
using model::Measurement;
using model::Profile;

std::string_view incomplete_text(const model::Profile& profile) {
  if (profile.run.complete) return {};
  return profile.run.being_written ? kBeingWrittenText : kCutOffText;
}

std::string command_text(const model::RunInfo& run) {
  std::string text;
  for (const auto& word : run.command) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

std::string error_text(Energy error, Energy of) { return "±" + error_width_text(error, of); }

std::string error_text(const Measurement& m) {
  return interval_text(m.energy, m.below(), m.above());
}

std::string scale_text(const model::ScaleError& scale) {
  std::string text =
      -scale.gain_low == scale.gain_high
          ? fmt::format("scale ±{:g} %", scale.gain_high * 100)
          : fmt::format("truth {:+g} to {:+g} %", scale.gain_low * 100, scale.gain_high * 100);
  if (scale.offset_low != Power{} || scale.offset_high != Power{}) {
    text += fmt::format(" and {:+g} to {:+g} W of what it shows", scale.offset_low.watts(),
                        scale.offset_high.watts());
  }
  return text;
}

std::string energy_interval_text(const Measurement& m) {
  return fmt::format("{} to {}", energy_text(m.low()), energy_text(m.high()));
}

std::string quoted_energy_text(const Quoted& q) {
  if (q.is_bound()) return "at most " + energy_text(q.high());
  return (q.is_partial ? "at least " : "") + energy_text(q.energy);
}

std::string quoted_provenance_text(const Quoted& q) {
  return q.has_interval ? provenance_word(q.provenance) : std::string("reported");
}

std::string quoted_error_text(const Quoted& q, bool ascii) {
  if (!q.has_interval) return std::string(kNoInterval);
  if (q.is_bound()) return "(95 %)";
  if (!q.is_partial) return interval_text(q.energy, q.error, q.upper_error, ascii);
  return lower_interval_text(q.energy.joules(), q.error.joules());
}

std::string partial_text(const Profile& profile, const Total& total) {
  if (!total.lost) return {};
  // Of many, such as of all boards after the driver ended, the text above the answer stays short.
  constexpr std::size_t kMost = 4;
  std::vector<std::string> parts;
  std::size_t more = 0;
  Energy of_more;
  for (const auto& excluded : total.excluded) {
    const auto& domain = *excluded.domain;
    if (!domain.least || contains_others(domain.domain.kind)) continue;
    if (parts.size() == kMost) {
      ++more;
      of_more += domain.least->energy;
      continue;
    }
    const std::string label = label_of(profile, domain);
    parts.push_back(domain.least->energy == Energy{}
                        ? label + " has no readings then"
                        : fmt::format("{} took {} while it had readings", label,
                                      energy_text(domain.least->energy)));
  }
  if (more > 0) {
    parts.push_back(
        fmt::format("{} other{} {}", more, more == 1 ? "" : "s together", energy_text(of_more)));
  }
  return fmt::format("PARTIAL: {}. What {} took otherwise is unknown.", fmt::join(parts, ", "),
                     parts.size() > 1 ? "they" : "it");
}

std::string quoted_interval_text(const Quoted& q) {
  if (!q.has_interval) return watt_hours_text(q.energy);
  if (q.is_partial) {
    return fmt::format("95 % interval from {}, without an upper end · {}", energy_text(q.low()),
                       watt_hours_text(q.energy));
  }
  if (q.is_bound()) {
    return fmt::format("below what can be resolved: 95 % interval {} to {} · at most {}",
                       energy_text(q.low()), energy_text(q.high()), watt_hours_text(q.high()));
  }
  return fmt::format("95 % interval {} to {} · {} · repeatability {}", energy_text(q.low()),
                     energy_text(q.high()), watt_hours_text(q.energy),
                     error_text(q.repeatability, q.energy));
}

std::string whose_text(const Profile& profile, const Total& total, const Quoted& quote) {
  if (!quote.is_command) {
    const auto reason = no_command_text(profile, total);
    return reason.empty() ? "" : "Of whole devices: " + reason + ".";
  }
  if (!total.command->is_divided) return "";
  const Quoted all = *quoted(total, true);
  return fmt::format("Of the command: {}. All devices: {} {}.", command_parts_text(profile, total),
                     quoted_energy_text(all), quoted_error_text(all));
}

std::string mean_watts_text(const Profile& profile, const Total& total) {
  if (!total.energy || !profile.has_span() || profile.duration() <= Duration{}) return "";
  return (total.lost ? "at least " : "") +
         number_text((total.energy->energy / profile.duration()).watts());
}

std::string part_text(const Profile& profile) {
  const auto& run = profile.run;
  const bool is_part = run.work_begin && (profile.begin > *run.work_begin ||
                                          (run.work_end && profile.end < *run.work_end));
  if (!is_part) return "";
  return fmt::format(", from {} to {} of the run", duration_text(profile.begin - *run.work_begin),
                     duration_text(profile.end - *run.work_begin));
}

RealTime run_start(const Profile& profile) {
  return profile.start_time - (profile.begin - profile.run.work_begin.value_or(profile.begin));
}

Duration run_duration(const Profile& profile) {
  const auto& run = profile.run;
  return run.work_begin && run.work_end ? *run.work_end - *run.work_begin : profile.duration();
}

std::string exit_text(int status) {
  std::string text = fmt::format("exit status {}", status);
  if (const auto signal = signal_in(status)) text += fmt::format(" (signal {})", *signal);
  return text;
}

std::string run_line(const Profile& profile) {
  const auto& run = profile.run;
  std::string text = run.exit_status      ? exit_text(*run.exit_status)
                     : run.source.empty() ? "no command"
                                          : "source: " + run.source;
  if (profile.start_time != RealTime{}) {
    text += ", started " + utc_seconds_text(run_start(profile));
  }
  if (!run.host.empty()) text += " on " + run.host;
  return text + part_text(profile);
}

std::string coverage_text(const Profile& profile, const Total& total) {
  std::string text = "Total: ";
  const auto& domains = total.reported ? total.reporting : total.summed;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    text += (i > 0 ? " + " : "") + label_of(profile, *domains[i]);
  }
  if (total.reported) return text + ", of windows that another tool reported.";
  for (const auto& excluded : total.excluded) {
    text += fmt::format("; without {} ({})", label_of(profile, *excluded.domain), excluded.why);
  }
  return text + ".";
}

const DomainProfile* highest_peak(const Total& total) {
  const DomainProfile* highest = nullptr;
  for (const DomainProfile* d : total.counted) {
    if (d->peak_power && (!highest || *d->peak_power > *highest->peak_power)) highest = d;
  }
  return highest;
}

}  // namespace jouleprof::report
