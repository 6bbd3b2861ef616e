#include "report/total.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/levels/domains.h"
#include "base/file.h"
#include "base/text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::DomainKind;
using model::DomainProfile;
using model::Profile;

std::optional<Energy> energy_of(const std::optional<model::Measurement>& m) {
  return m ? std::optional(m->energy) : std::nullopt;
}

bool is_gpu(DomainKind kind) { return kind == DomainKind::kGpu; }

const DomainProfile* find(const Profile& profile, model::DomainId id) {
  const auto it = std::ranges::find_if(profile.domains,
                                       [&](const DomainProfile& d) { return d.domain.id == id; });
  return it == profile.domains.end() ? nullptr : &*it;
}

// Within a domain that is itself counted.
bool is_part(const Profile& profile, const DomainProfile& d) {
  return is_part(d.domain, profile.domains, &DomainProfile::domain);
}

}  // namespace

std::optional<Energy> rest_of(const DomainProfile& d) { return energy_of(d.levels.rest); }
std::optional<Energy> held_of(const DomainProfile& d) { return energy_of(d.levels.held); }
std::optional<Energy> active_of(const DomainProfile& d) { return energy_of(d.levels.active); }

std::optional<Energy> dynamic_of(const DomainProfile& d) {
  const auto rest = rest_of(d);
  if (!d.energy || !rest) return std::nullopt;
  return d.energy->energy - *rest;
}

std::optional<Energy> processes_of(const Profile& profile, const DomainProfile& d) {
  if (!d.idle_part && !d.others && !d.unattributed) return std::nullopt;
  Energy sum = d.within_command.value_or(Energy{});
  for (const auto& process : profile.processes) {
    for (const auto& share : process.shares) {
      if (share.domain == d.domain.id) sum += share.energy;
    }
  }
  return sum;
}

Energy energy_of(const Profile& profile, const model::ProcessProfile& process) {
  Energy sum;
  for (const auto& share : process.shares) {
    const DomainProfile* d = find(profile, share.domain);
    if (d != nullptr && !contains_others(d->domain.kind) && !is_part(profile, *d)) {
      sum += share.energy;
    }
  }
  return sum;
}

Total total_of(const Profile& profile) {
  Total total;
  for (const DomainProfile& d : profile.domains) {
    if (is_part(profile, d)) continue;
    if (!d.domain.visible) {
      total.excluded.push_back({&d, "not visible to the command"});
    } else if (!d.energy && !(d.least && contains_others(d.domain.kind))) {
      total.excluded.push_back(
          {&d, d.least ? "unavailable for a part of the time" : "unavailable"});
      if (d.least) total.lost = total.lost.value_or(Energy{}) + d.least->energy;
      if (d.least && d.least->energy > Energy{}) total.summed.push_back(&d);
    } else if (contains_others(d.domain.kind)) {
      total.excluded.push_back({&d, "contains other domains"});
    } else {
      total.counted.push_back(&d);
      total.summed.push_back(&d);
    }
  }
  if (total.summed.empty()) {
    std::vector<const DomainProfile*> containers;
    for (const DomainProfile& d : profile.domains) {
      if (!d.reported || is_part(profile, d)) continue;
      (contains_others(d.domain.kind) ? containers : total.reporting).push_back(&d);
    }
    // One that contains others stands for them where they have nothing; of two, each may have both.
    if (total.reporting.empty() && containers.size() == 1) total.reporting = containers;
    for (const DomainProfile* d : total.reporting) {
      total.reported = total.reported.value_or(Energy{}) + *d->reported;
      total.is_reported_in_part = total.is_reported_in_part || d->reported_lacks_windows;
    }
    return total;
  }

  const auto sum = [&](const auto& figure) {
    std::optional<Energy> result = Energy{};
    for (const DomainProfile* d : total.summed) {
      const std::optional<Energy> part = d->energy ? figure(*d) : std::nullopt;
      if (!part) return std::optional<Energy>{};
      *result += *part;
    }
    return result;
  };
  total.rest = sum(rest_of);
  total.active = sum(active_of);
  total.held = sum([](const DomainProfile& d) {
    return is_gpu(d.domain.kind) ? held_of(d) : std::optional(Energy{});
  });
  const auto gpu = [](const DomainProfile* d) { return is_gpu(d->domain.kind); };
  if (std::ranges::none_of(total.summed, gpu)) total.held.reset();
  total.idle_part = sum([](const DomainProfile& d) { return d.idle_part; });
  total.processes = sum([&](const DomainProfile& d) { return processes_of(profile, d); });
  total.others = sum([](const DomainProfile& d) { return d.others; });
  for (const DomainProfile* d : total.counted) {
    if (d->held_unowned)
      total.held_unowned = total.held_unowned.value_or(Energy{}) + *d->held_unowned;
  }
  total.unattributed = sum([](const DomainProfile& d) { return d.unattributed; });
  total.parts = sum([](const DomainProfile& d) { return d.balance.parts; });
  total.counter = sum([](const DomainProfile& d) { return d.balance.counter; });
  total.integral = sum([](const DomainProfile& d) { return d.balance.integral; });

  model::Measurement whole;
  whole.provenance = model::Provenance::kUnavailable;
  whole.method = "sum";
  for (const DomainProfile* d : total.summed) add(whole, *d->known());
  total.energy = whole;
  const auto has_command = [](const DomainProfile* d) { return d->command.has_value(); };
  if (std::ranges::all_of(total.counted, has_command)) {
    for (const DomainProfile* d : total.counted) add(total.command, *d->command);
    if (total.command) total.command->is_partial = total.lost.has_value();
    total.is_command_lost = !total.command || total.command->is_unknown();
    if (total.is_command_lost) total.command.reset();
  }
  return total;
}

std::string no_command_text(const Profile& profile, const Total& total) {
  if (!total.is_command_lost) return profile.command_reason;
  return "the command's part is unknown: a device lacks readings of a part of the time";
}

std::optional<Quoted> quoted(const Total& total, bool whole_machine) {
  if (!total.energy && total.reported) {
    Quoted quote;
    quote.energy = *total.reported;
    quote.has_interval = false;
    quote.is_partial = total.is_reported_in_part;
    return quote;
  }
  if (!total.energy) return std::nullopt;
  const auto of = [&](const model::Measurement& m, Energy undivided, bool is_command) {
    return Quoted{m.energy,     m.below(),  m.above() + undivided, m.repeatability,
                  m.provenance, is_command, total.lost.has_value()};
  };
  if (whole_machine || !total.command) return of(*total.energy, Energy{}, false);
  return of(total.command->energy, total.command->undivided, true);
}

namespace {

// "; rest of gpu0 is not its own: others used it"
std::string without_rest(const Profile& profile, const Total& total, bool by_mig) {
  std::vector<std::string> names;
  for (const DomainProfile* d : total.counted) {
    const bool is_left_out = d->idle_part && d->command && !d->command->rest;
    const bool is_divided = std::ranges::any_of(profile.domains, [&](const DomainProfile& other) {
      return analysis::is_instance_of(other.domain, d->domain.id);
    });
    if (!is_left_out || is_divided != by_mig) continue;
    names.push_back(label_of(profile, *d));
  }
  if (names.empty()) return "";
  const char* it = names.size() > 1 ? "them" : "it";
  return fmt::format("; rest of {} is not its own: {} {}", fmt::join(names, ", "),
                     by_mig ? "MIG divides" : "others used", it);
}

}  // namespace

std::string command_parts_text(const Profile& profile, const Total& total) {
  const auto& command = *total.command;
  if (!command.is_divided) return "all of the total, because no other process is known";
  std::string text = "processes " + energy_text(command.processes);
  if (command.rest) text += " + rest " + energy_text(*command.rest);
  text += without_rest(profile, total, false) + without_rest(profile, total, true);
  constexpr double kNoted = 0.001;
  if (command.undivided.joules() > kNoted * command.energy.energy.joules()) {
    const bool is_of_level = std::ranges::any_of(total.counted, [](const DomainProfile* d) {
      return is_gpu(d->domain.kind) && d->command && d->command->undivided > Energy{} &&
             !(d->levels.rest && d->levels.held);
    });
    text += fmt::format("; {} more may be its own: of no known process{}",
                        energy_text(command.undivided),
                        is_of_level ? ", or of a level that is not known" : "");
  }
  return text;
}

std::string label_of(const Profile& profile, const DomainProfile& d) {
  const auto same = std::ranges::count_if(profile.domains, [&](const DomainProfile& other) {
    return other.domain.device == d.domain.device;
  });
  const std::string kind(to_string(d.domain.kind));
  if (d.domain.device.empty()) return kind;
  const bool is_whole = d.domain.kind == DomainKind::kCpu || d.domain.kind == DomainKind::kGpu;
  return same > 1 && !is_whole ? kind + " " + d.domain.device : d.domain.device;
}

std::vector<std::string> labels_of(const Profile& profile) {
  std::vector<std::string> labels;
  for (const DomainProfile& d : profile.domains) labels.push_back(label_of(profile, d));
  return labels;
}

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
  per.has_interval = quote->has_interval;
  per.is_partial = quote->is_partial;
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
