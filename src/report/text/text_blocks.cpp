#include "report/text/text_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/cells.h"
#include "report/headline_text.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::DomainProfile;
using model::Measurement;
using model::Provenance;

constexpr std::size_t kMostDomains = 8;  // rows of a table before the rest is folded
constexpr std::size_t kMostNames = 4;    // named one by one in the line of the total
constexpr std::size_t kWidest = 120;     // columns of a line
constexpr std::size_t kWide = 90;        // columns from which headings are whole words

// "cores" for what stands below its package.
std::string part_name(const DomainProfile& d) {
  const std::string kind(to_string(d.domain.kind));
  return " " + kind.substr(kind.find('_') + 1);
}

std::vector<Cell> figures(const TextContext& c, std::string label, const Measurement& energy,
                          std::optional<Energy> rest, std::optional<Energy> dynamic,
                          std::optional<Power> mean, std::optional<Power> peak) {
  return {{std::move(label)},
          {energy_text(energy.energy), Style::kBold},
          {c.plus_minus(energy)},
          {c.plus_minus(energy.repeatability, energy.energy)},
          {rest ? energy_text(*rest) : "-"},
          {dynamic ? energy_text(*dynamic) : "-"},
          {mean ? number_text(mean->watts()) : "-"},
          {peak ? number_text(peak->watts()) : "-"},
          {provenance_word(energy.provenance), style_of(energy.provenance)}};
}

std::string names(const TextContext& c, const std::vector<std::size_t>& indices) {
  std::string text;
  for (const std::size_t i : indices) text += (text.empty() ? "" : ", ") + c.labels[i];
  return text;
}

const std::string& label_of(const TextContext& c, const DomainProfile& d) {
  return c.labels[static_cast<std::size_t>(&d - c.profile.domains.data())];
}

// Of another tool's windows.
std::string reported_text(const TextContext& c, const DomainProfile& d) {
  return fmt::format("{}{} reported ({})", d.reported_lacks_windows ? "at least " : "",
                     energy_text(*d.reported), c.safe(d.domain.name));
}

// The folded domains as one sum, where they can be added.
void add_folded(const TextContext& c, Table& table) {
  model::Profile rest;
  for (const std::size_t i : c.folded) rest.domains.push_back(c.profile.domains[i]);
  const Total sum = total_of(rest);
  const std::string label = fmt::format("{} more", c.folded.size());
  if (sum.energy && sum.counted.size() == c.folded.size()) {
    const auto dynamic = sum.rest ? std::optional(sum.energy->energy - *sum.rest) : std::nullopt;
    table.add(figures(c, label, *sum.energy, sum.rest, dynamic, std::nullopt, std::nullopt));
  } else {
    table.add_text({label}, {names(c, c.folded) + "; each in --json"}, 2);
  }
}

std::string not_included(const TextContext& c) {
  std::string text;
  std::size_t count = 0;
  for (const auto& excluded : c.total.excluded) {
    if (!excluded.domain->domain.visible || ++count > kMostNames) continue;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", label_of(c, *excluded.domain),
                        excluded.why);
  }
  if (count > kMostNames) text += fmt::format(", {} more", count - kMostNames);
  if (!c.hidden.empty()) {
    const std::string which = c.hidden.size() > kMostNames
                                  ? fmt::format("{} devices", c.hidden.size())
                                  : names(c, c.hidden);
    text += fmt::format("{}{} (not visible to the command)", text.empty() ? "" : ", ", which);
  }
  return text;
}

// What the run quotes first.
void add_command(const TextContext& c, Table& table) {
  if (!c.total.command || c.text.whole_machine || !c.total.command->is_divided) return;
  const Quoted quote = *quoted(c.total, false);
  const std::string text =
      fmt::format("{} {}, {}; {}: {}", quoted_energy_text(quote),
                  quoted_error_text(quote, c.text.ascii), provenance_word(quote.provenance),
                  watt_hours_text(quote.is_bound() ? quote.high() : quote.energy),
                  command_parts_text(c.profile, c.total));
  const bool is_measured = quote.provenance == Provenance::kMeasured;
  table.add_text({"command", Style::kBold},
                 {c.safe(text), is_measured ? Style::kBold : style_of(quote.provenance)},
                 c.text.height ? 1 : 4);
}

void add_total(const TextContext& c, Table& table) {
  if (c.total.reported) {
    std::string of;
    for (const DomainProfile* d : c.total.reporting) {
      of += (of.empty() ? "" : "+") + label_of(c, *d);
    }
    const std::string text =
        fmt::format("{} ({}), reported: {}; {}", quoted_energy_text(*quoted(c.total, true)),
                    kNoInterval, of, watt_hours_text(*c.total.reported));
    table.add_text({"total", Style::kBold}, {text, Style::kAttention}, 3);
    return;
  }
  if (!c.total.energy) {
    table.add_text({"total", Style::kBold}, {"unavailable", Style::kAttention}, 1);
    return;
  }
  const Measurement& m = *c.total.energy;
  std::string of;
  if (c.total.summed.size() > kMostNames) {
    of = fmt::format("{} domains", c.total.summed.size());
  } else {
    for (const DomainProfile* d : c.total.summed) of += (of.empty() ? "" : "+") + label_of(c, *d);
  }
  const Quoted whole = *quoted(c.total, true);
  std::string text =
      fmt::format("{} {} (repeatability {}), {}: {}", quoted_energy_text(whole),
                  quoted_error_text(whole, c.text.ascii), c.plus_minus(m.repeatability, m.energy),
                  provenance_word(m.provenance), of);
  if (const std::string missing = not_included(c); !missing.empty()) {
    text += "; without " + missing;
  }
  text += "; " + watt_hours_text(m.energy);
  const Duration length = c.profile.duration();
  if (c.total.rest && length > Duration{}) {
    text +=
        fmt::format(", {} W at rest, {} W dynamic", number_text((*c.total.rest / length).watts()),
                    number_text(((m.energy - *c.total.rest) / length).watts()));
  }
  if (const auto reason = no_command_text(c.profile, c.total); !reason.empty()) {
    text += "; " + reason;
  }
  const bool is_measured = m.provenance == Provenance::kMeasured;
  table.add_text({"total", Style::kBold},
                 {text, is_measured ? Style::kBold : style_of(m.provenance)}, 4);
}

std::string_view everyday_name(model::DomainKind kind) {
  switch (kind) {
    case model::DomainKind::kGpu:
      return "GPU";
    case model::DomainKind::kCpu:
      return "CPU";
    case model::DomainKind::kDram:
      return "DRAM";
    default:
      return to_string(kind);
  }
}

// "GPU 95 %, CPU 5.0 % (estimated); without DRAM"
std::string kinds_text(const TextContext& c) {
  const bool is_reported = c.total.reported.has_value();
  const auto& domains = is_reported ? c.total.reporting : c.total.summed;
  const Energy whole = is_reported ? *c.total.reported : c.total.energy->energy;
  std::vector<model::DomainKind> kinds;
  const auto add = [&kinds](model::DomainKind kind) {
    if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
  };
  for (const DomainProfile* d : domains) add(d->domain.kind);
  std::string text;
  for (const model::DomainKind kind : kinds) {
    Energy sum;
    Provenance provenance = Provenance::kUnavailable;
    for (const DomainProfile* d : domains) {
      if (d->domain.kind != kind) continue;
      sum += is_reported ? *d->reported : d->known()->energy;
      if (!is_reported) provenance = combine(provenance, d->known()->provenance);
    }
    text += fmt::format(
        "{}{}", text.empty() ? "" : ", ",
        kind == model::DomainKind::kPlatform ? "all devices together" : everyday_name(kind));
    if (kinds.size() > 1 && whole > Energy{} && sum >= Energy{}) {
      text += " " + percent_text(sum.joules() / whole.joules());
    }
    if (is_reported || provenance == Provenance::kMeasured) continue;
    text += provenance == Provenance::kSimulated ? " (SIMULATED)" : " (estimated)";
  }
  // What is missing: a kind of which no device has a figure, or some of its devices.
  std::vector<std::string> missing;
  for (const auto& excluded : c.total.excluded) {
    const auto& d = *excluded.domain;
    if (d.energy && d.domain.kind == model::DomainKind::kModule) {
      // The board itself has no figure, which its module's does not replace.
      const auto is_its_board = [&](const DomainProfile* counted) {
        return counted->domain.kind == model::DomainKind::kGpu &&
               counted->domain.device == d.domain.device;
      };
      if (std::ranges::none_of(domains, is_its_board)) {
        missing.push_back(fmt::format("{} (its whole module, with the CPU: {})", d.domain.device,
                                      energy_text(d.energy->energy)));
      }
      continue;
    }
    if (!d.domain.visible || d.energy || d.reported) continue;
    const bool is_partly = std::ranges::find(kinds, d.domain.kind) != kinds.end();
    const std::string name = is_partly ? label_of(c, d) : std::string(everyday_name(d.domain.kind));
    if (std::ranges::find(missing, name) == missing.end()) missing.push_back(name);
  }
  for (std::size_t i = 0; i < missing.size(); ++i) {
    text += (i == 0 ? "; without " : i + 1 == missing.size() ? " and " : ", ") + missing[i];
  }
  return text;
}

// Whether the command's interval is wider than that of all devices, which stands next to it: others
// used them too, and the division among processes has an error of its own.
bool is_wider(const model::CommandEnergy& command, const Measurement& whole) {
  constexpr double kNoted = 0.01;
  constexpr double kNotedError = 0.1;
  const double part = command.energy.energy.joules() / whole.energy.joules();
  const double with_undivided =
      (command.energy.energy + command.undivided).joules() / whole.energy.joules();
  const double noted =
      std::max(kNoted * whole.energy.joules(), kNotedError * whole.farthest().joules());
  return command.low().joules() < part * (whole.low().joules() - noted) ||
         command.high().joules() > with_undivided * (whole.high().joules() + noted);
}

// ", of it your command 1.804 Wh", with its interval where that is wider than the total's; where it
// cannot be distinguished from nothing, what it is at most. Where a device was lost, nothing is an
// upper bound.
std::string command_part_text(const TextContext& c) {
  if ((!c.total.command && !c.total.is_command_lost) || c.text.whole_machine) return {};
  // Of an imported log whose energy is of no process in particular.
  if (c.profile.run.command.empty() && c.profile.processes.empty()) return {};
  const char* const whose = c.profile.run.command.empty() ? "the processes" : "your command";
  if (c.total.is_command_lost) return fmt::format(", of it {} an unknown part", whose);
  const auto& command = *c.total.command;
  if (!command.is_divided) return fmt::format(", all of it {}", whose);
  if (command.high() <= Energy{}) return fmt::format(", of it {} nothing that was seen", whose);
  if (command.low() <= Energy{}) {
    return fmt::format(", of it {} at most {}", whose, watt_hours_text(command.high()));
  }
  std::string text = fmt::format(", of it {} {}", whose, watt_hours_text(command.energy.energy));
  if (is_wider(command, *c.total.energy)) {
    if (command.is_partial) return text + " (95 %: from " + watt_hours_text(command.low()) + ")";
    return text + fmt::format(" (95 %: {} to {})", watt_hours_text(command.low()),
                              watt_hours_text(command.high()));
  }
  constexpr double kNoted = 0.001;
  if (!command.is_partial &&
      command.undivided.joules() > kNoted * c.total.energy->energy.joules()) {
    text += " to " + watt_hours_text(command.energy.energy + command.undivided);
  }
  return text;
}

// What the energy of a device without a sensor rests on.
void add_assumptions(const TextContext& c, Lines& lines) {
  for (const DomainProfile* d : c.total.counted) {
    if (!d->energy->sensor.starts_with("load model of ")) continue;
    c.note(lines, "estimate", Style::kDim, label_of(c, *d) + ": " + c.safe(d->energy->sensor), 2,
           Style::kAttention);
  }
}

}  // namespace

Lines answer_block(const TextContext& c) {
  Lines lines;
  if (c.total.reported) {
    const std::string text = fmt::format(
        "{}{} ({}; {}), reported by {}; {}",
        c.total.is_reported_in_part ? "PARTIAL: at least " : "", watt_hours_text(*c.total.reported),
        energy_text(*c.total.reported), kNoInterval,
        c.safe(c.profile.run.source.substr(c.profile.run.source.find(':') + 1)), kinds_text(c));
    c.headline(lines, text, Style::kBold);
    return lines;
  }
  if (!c.total.energy) {
    if (!c.profile.has_span() || c.profile.domains.empty()) return lines;  // said below
    const auto& domains = c.profile.domains;
    const bool any =
        std::ranges::any_of(domains, [](const DomainProfile& d) { return d.energy.has_value(); });
    lines.push_back(paint(any ? "No total: the figures below are of a whole module, or of parts"
                              : "Energy unavailable: each device has its reason below",
                          Style::kAttention, c.text.colour));
    return lines;
  }
  const Measurement& m = *c.total.energy;
  const std::string text = fmt::format(
      "{}{} ({} {}){}; {}", c.total.lost ? "PARTIAL: at least " : "", watt_hours_text(m.energy),
      energy_text(m.energy), quoted_error_text(*quoted(c.total, true), c.text.ascii),
      command_part_text(c), kinds_text(c));
  c.headline(lines, text, Style::kBold);
  return lines;
}

Style style_of(Provenance p) {
  if (p == Provenance::kSimulated) return Style::kAlarm;
  return p == Provenance::kMeasured ? Style::kPlain : Style::kAttention;
}

TextContext::TextContext(const model::Profile& p, const TextOptions& o)
    : TextStyle(o), profile(p), total(total_of(p)) {
  width = std::min(width, kWidest);
  for (const std::string& label : labels_of(p)) labels.push_back(safe(label));
  std::vector<std::size_t> parts;
  for (std::size_t i = 0; i < p.domains.size(); ++i) {
    const auto& d = p.domains[i].domain;
    (!d.visible ? hidden : d.parent ? parts : shown).push_back(i);
  }
  // Each part below what contains it; what has lost its whole stands at the end.
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const auto whole = std::ranges::find_if(shown, [&](std::size_t i) {
      return p.domains[i].domain.id == *p.domains[*part].domain.parent;
    });
    shown.insert(whole == shown.end() ? whole : whole + 1, *part);
  }
  if (shown.size() > kMostDomains) {
    std::stable_partition(shown.begin(), shown.end(),
                          [&](std::size_t i) { return !p.domains[i].domain.parent.has_value(); });
    folded.assign(shown.begin() + kMostDomains - 1, shown.end());
    shown.resize(kMostDomains - 1);
  }
}

std::string TextContext::plus_minus(Energy error, Energy of) const {
  const std::string sign = text.ascii ? "+-" : "\xC2\xB1";
  if (of <= Energy{}) return sign + energy_text(error);
  return sign + percent_text(static_cast<double>(error.microjoules()) /
                             static_cast<double>(of.microjoules()));
}

Lines domain_block(const TextContext& c) {
  Lines lines;
  if (c.profile.domains.empty()) {
    c.note(lines, "energy", Style::kAlarm, "unavailable: no device with a power sensor was found",
           2, Style::kAttention);
    return lines;
  }
  const char* const repeatability = c.width >= kWide ? "repeatability" : "repeat.";
  Table table({"", "energy", "95 %", repeatability, "rest", "dynamic", "mean W", "peak W", "<"});
  for (std::size_t row = 0; row < c.shown.size(); ++row) {
    const DomainProfile& d = c.profile.domains[c.shown[row]];
    const DomainProfile* above = row > 0 ? &c.profile.domains[c.shown[row - 1]] : nullptr;
    const bool is_below =
        d.domain.parent && above != nullptr &&
        (above->domain.id == *d.domain.parent || above->domain.parent == d.domain.parent);
    const std::string label = is_below ? part_name(d) : c.labels[c.shown[row]];
    if (d.energy) {
      table.add(
          figures(c, label, *d.energy, rest_of(d), dynamic_of(d), d.mean_power, d.peak_power));
    } else if (d.reported) {
      table.add_text({label}, {reported_text(c, d), Style::kAttention}, 2);
    } else {
      const std::string why = d.reason.empty() ? "no reason was recorded" : c.safe(d.reason);
      table.add_text({label, Style::kAttention}, {"unavailable: " + why, Style::kAttention}, 2);
    }
  }
  if (!c.folded.empty()) add_folded(c, table);
  add_command(c, table);
  add_total(c, table);
  lines = table.lines(c.width, c.text.colour);
  add_assumptions(c, lines);
  return lines;
}

Lines brief_domain_block(const TextContext& c, std::size_t most) {
  Table table({"", "energy", "95 %", "mean W", "peak W", "<"});
  std::vector<std::size_t> whole;
  for (const std::vector<std::size_t>* rows : {&c.shown, &c.folded}) {
    for (const std::size_t i : *rows) {
      if (!c.profile.domains[i].domain.parent) whole.push_back(i);
    }
  }
  if (whole.empty()) return domain_block(c);
  std::size_t shown = whole.size();
  if (shown + 1 > most) {
    shown = most - 2;
    // Those that took most.
    std::ranges::stable_sort(whole, [&](std::size_t a, std::size_t b) {
      const auto of = [&](std::size_t i) {
        const auto& energy = c.profile.domains[i].energy;
        return energy ? energy->energy : Energy::microjoules(-1);
      };
      return of(a) > of(b);
    });
  }
  for (std::size_t row = 0; row < shown; ++row) {
    const DomainProfile& d = c.profile.domains[whole[row]];
    if (d.reported) {
      table.add_text({c.labels[whole[row]]}, {reported_text(c, d), Style::kAttention}, 1);
      continue;
    }
    if (!d.energy) {
      const std::string why = d.reason.empty() ? "no reason was recorded" : c.safe(d.reason);
      table.add_text({c.labels[whole[row]], Style::kAttention},
                     {"unavailable: " + why, Style::kAttention}, 1);
      continue;
    }
    table.add({{c.labels[whole[row]]},
               {energy_text(d.energy->energy), Style::kBold},
               {c.plus_minus(*d.energy)},
               {d.mean_power ? number_text(d.mean_power->watts()) : "-"},
               {d.peak_power ? number_text(d.peak_power->watts()) : "-"},
               {provenance_word(d.energy->provenance), style_of(d.energy->provenance)}});
  }
  if (shown < whole.size()) {
    table.add_text({fmt::format("{} more", whole.size() - shown)}, {"see --details"}, 1);
  }
  Lines lines = table.lines(c.width, c.text.colour);
  add_assumptions(c, lines);
  return lines;
}

Lines level_block(const TextContext& c) {
  Table table({"levels", "rest +", "held +", "active", "<= energy", "at rest W", "held W"});
  Lines notes;
  bool any = false;
  const char* const sign = c.text.ascii ? "+-" : "\xC2\xB1";
  const auto energy = [](const std::optional<Energy>& e) {
    return Cell{e ? energy_text(*e) : "-"};
  };
  const auto power = [&](const std::optional<model::PowerLevel>& level) {
    if (!level) return Cell{"-"};
    return Cell{
        fmt::format("{} {}{:.1f}", number_text(level->power.watts()), sign, level->error.watts())};
  };
  for (const std::size_t i : c.shown) {
    const DomainProfile& d = c.profile.domains[i];
    if (!d.energy || d.domain.parent || d.domain.kind != model::DomainKind::kGpu) continue;
    any = any || d.rest_power || d.held_power;
    const bool is_split = d.levels.rest && d.levels.held && d.levels.active;
    table.add({{c.labels[i]},
               energy(rest_of(d)),
               energy(held_of(d)),
               energy(active_of(d)),
               {is_split ? "exact" : "not split"},
               power(d.rest_power),
               power(d.held_power)});
    std::string remark = d.levels.reason;
    for (const auto* level : {&d.rest_power, &d.held_power}) {
      if (!*level || (*level)->observed) continue;
      remark += fmt::format("{}the level {} was {}", remark.empty() ? "" : "; ",
                            level == &d.rest_power ? "at rest" : "while held", (*level)->source);
    }
    if (remark.empty()) continue;
    c.note(notes, "", Style::kDim, c.labels[i] + ": " + c.safe(remark), 3, Style::kAttention);
  }
  if (!any) return {};
  Lines lines = table.lines(c.width, c.text.colour);
  append(lines, std::move(notes));
  return lines;
}

Lines balance_block(const TextContext& c) {
  const bool at_rest = std::ranges::all_of(c.shown, [&](std::size_t i) {
    const DomainProfile& d = c.profile.domains[i];
    return !d.idle_part || d.levels.rest;
  });
  const bool has_unowned = std::ranges::any_of(c.shown, [&](std::size_t i) {
    return c.profile.domains[i].held_unowned.value_or(Energy{}) != Energy{};
  });
  std::vector<std::string> headings{
      "balance", "counter", "samples", at_rest ? "rest +" : "idle +", "processes +", "others +"};
  if (has_unowned) headings.emplace_back("held, unowned +");
  headings.insert(headings.end(), {"unattributed", "<= energy"});
  Table table(headings);
  bool any = false;
  const auto text = [](const std::optional<Energy>& e) { return Cell{e ? energy_text(*e) : "-"}; };
  for (const std::size_t i : c.shown) {
    const DomainProfile& d = c.profile.domains[i];
    if (!d.energy || d.domain.parent) continue;
    if (!d.balance.counter && !d.balance.integral && !d.balance.parts) continue;
    any = true;
    Cell sum{"not split"};
    if (d.balance.parts) {
      const Energy off = *d.balance.parts - d.energy->energy;
      sum = off == Energy{} ? Cell{"exact"} : Cell{"differs by " + energy_text(off), Style::kAlarm};
    }
    std::vector<Cell> row{{c.labels[i]},
                          text(d.balance.counter),
                          text(d.balance.integral),
                          d.shares_include_rest ? Cell{"in shares"} : text(d.idle_part),
                          text(processes_of(c.profile, d)),
                          text(d.others)};
    if (has_unowned) row.push_back(text(d.held_unowned));
    row.insert(row.end(), {text(d.unattributed), sum});
    table.add(std::move(row));
  }
  return any ? table.lines(c.width, c.text.colour) : Lines{};
}

}  // namespace jouleprof::report
