#include "report/json/records.h"

#include "model/window_sum.h"
#include "report/json/json_format.h"

namespace jouleprof::report {
namespace {

using model::Measurement;
using model::Provenance;

Provenance provenance_of(const std::optional<Measurement>& m) {
  return m ? m->provenance : Provenance::kUnavailable;
}
template <class T>
std::optional<T> part_of(const std::optional<Measurement>& m, T Measurement::*part) {
  return m ? std::optional(*m.*part) : std::nullopt;
}
std::optional<Energy> energy_of(const std::optional<Measurement>& m) {
  return part_of(m, &Measurement::energy);
}
std::optional<std::string_view> text_of(const std::optional<Measurement>& m,
                                        std::string Measurement::*part) {
  return m ? std::optional<std::string_view>(*m.*part) : std::nullopt;
}
std::optional<Bounds> bounds_of(const std::optional<model::DivisionBounds>& b) {
  return b ? std::optional(Bounds{b->low, b->high}) : std::nullopt;
}
using report::bounds_of;

template <class Value>
std::optional<Value> known(bool is_known, const Value& value) {
  return is_known ? std::optional(value) : std::nullopt;
}

std::uint32_t number_of(model::DomainId id) { return static_cast<std::uint32_t>(id); }

}  // namespace

void columns(const ActivityLine& line, const model::ActivityProfile& of,
             const ActivityOptions& options, Columns& column) {
  const model::ActivityRow& row = *line.row;
  const auto& whole = whole_of(row);
  const bool is_layer = options.by == ActivityBy::kLayer;
  const In in_layers = is_layer ? In::kBoth : In::kCsv;
  column("by", to_string(options.by), "", "", {.in = In::kCsv});
  column("domain", model::to_string(of.domain.kind), "", "", {.in = In::kCsv});
  column("device", of.domain.device, "", "", {.in = In::kCsv});
  column("uuid", of.domain.uuid, "", "", {.in = In::kCsv});
  column("number", line.index, "identifies the row in this list");
  column("parent", known(line.depth > 0, row.parent), "`number` of the row that contains it",
         "there is none");
  column("depth", line.depth, "", "", {.in = In::kCsv});
  column("name", row.name, "readable name: a kernel's is demangled");
  column("detail", row.detail, "a kernel's grid and block; a layer's type and shapes",
         "there is none");
  column("symbol", row.symbol, "a kernel's mangled name", "it is unknown, or the row is no kernel");
  column("calls", known(row.count > 0, row.count), "launches of a kernel, calls of a layer",
         "they were not counted");
  column("launches", row.launches, "launches on the device, by this row itself");
  column("busy_seconds", row.busy,
         "time on the device, by this row itself; overlapping launches share it equally");
  column("overlapped_seconds", row.overlapped,
         "the part of `busy_seconds` in which other launches overlapped", "it is time on a CPU");
  column("provenance", provenance_of(whole), "provenance of the energy", "", {.place = 3});
  column("energy_joules", energy_of(row.energy), "energy of this row itself",
         "`reason` states why");
  column("interval_joules", bounds_of(row.energy), "[lower, upper bound], 95 %",
         "there is no energy");
  column("repeatability_joules", part_of(row.energy, &Measurement::repeatability),
         "half of the interval's width without the sensor's calibration error",
         "there is no energy", {.place = 5});
  column("inclusive_joules", energy_of(row.inclusive), "energy with all rows below it",
         "the row is a kernel, or it is unknown");
  column("inclusive_interval_joules", bounds_of(row.inclusive), "[lower, upper bound], 95 %",
         "the row is a kernel, or it is unknown");
  column("energy_per_launch_joules", joules_per_launch(row), "energy divided by launches",
         "there is no energy, or there was no launch", {.decimals = 9});
  column("energy_per_call_joules", is_layer ? joules_per_call(row) : std::nullopt,
         "energy of one call of a layer, with all rows below it",
         "there is no energy, or calls were not counted",
         {.in = in_layers, .place = 6, .decimals = 9});
  const bool is_called = is_layer && row.count > 0 && line.busy > Duration{};
  column(
      "seconds_per_call",
      is_called ? std::optional(seconds(line.busy) / static_cast<double>(row.count)) : std::nullopt,
      "time on the device of one call, with all rows below it",
      "there is no time, or calls were not counted", {.in = in_layers, .place = 6, .decimals = 9});
  column("call_mean_watts",
         is_called && whole ? std::optional(whole->energy.joules() / seconds(line.busy))
                            : std::nullopt,
         "energy of one call divided by its time: power above idle",
         "there is no energy, or no time", {.in = in_layers, .place = 6, .decimals = 6});
  column("mean_watts", power_of(row), "energy divided by busy time: power above idle",
         "there is no energy, or no time");
  column("share_ratio", share_of(of, whole), "share of `measured_joules`, with all rows below it",
         "there is no energy");
  column("resolvable", known(whole.has_value(), row.resolvable),
         "false: repeatability exceeds half of the energy, or a fifth where the load is in step "
         "with the "
         "sensor; use the upper bound of the interval",
         "there is no energy");
  column("remembered", known(whole.has_value(), row.remembered),
         "true: the interval would be a quarter wider or more without earlier runs",
         "there is no energy", {.place = 5});
  column("group", known(row.group != model::kNone, row.group),
         "collinear kernels have the same number here", "the kernel is not collinear");
  column("group_joules", energy_of(row.group_energy),
         "energy of the group, which is more accurate than its parts", "there is no group");
  column("group_interval_joules", bounds_of(row.group_energy), "[lower, upper bound] of it, 95 %",
         "there is no group");
  column("parameters", known(is_layer, row.parameters),
         "number of parameters, without those of its children", "", {.in = in_layers, .place = 2});
  column("macs", row.macs, "multiply-accumulates of one call", "it is unknown",
         {.in = in_layers, .place = 1, .decimals = 0});
  column("method", of.method, "", "", {.in = In::kCsv, .place = 3});
  if (options.fold) {
    const ColumnTraits traits{.in = in_layers, .place = 4};
    const auto& folded = row.folded;
    const auto spread = folded ? folded->joules : std::nullopt;
    const auto figure = [&](double model::FoldedLayers::Spread::*part) {
      return spread ? std::optional(*spread.*part) : std::nullopt;
    };
    constexpr std::string_view kNull = "it is one layer, or one of the layers has no energy";
    using Spread = model::FoldedLayers::Spread;
    column("folded_layers", folded ? std::optional(folded->count) : std::nullopt,
           "layers that the row sums up", "it is one layer", traits);
    column("folded_mean_joules", figure(&Spread::mean), "their mean inclusive energy", kNull,
           traits);
    column("folded_deviation_joules", figure(&Spread::deviation), "sample standard deviation",
           kNull, traits);
    column("folded_least_joules", figure(&Spread::least), "the least of them", kNull, traits);
    column("folded_greatest_joules", figure(&Spread::greatest), "the greatest", kNull, traits);
  }
  column("reason", row.reason,
         "why there is no energy, why it is not resolvable, or how rows were merged",
         "there is no remark", {.place = 3});
}

void columns(const model::ActivityProcess& p, Columns& column) {
  column("pid", p.pid, "process id in the tool's namespace");
  column("launches", p.launches, "its launches on the device");
  column("busy_seconds", p.busy, "their time on the device");
  column("kernels_joules", p.kernels, "their energy");
  column("idle_between_launches_joules", p.idle_between, "its part of the energy between launches");
}

void columns(const model::EnergyLevels& levels, Columns& column, int place, int more) {
  constexpr std::string_view kNull = "`levels_reason` states why";
  constexpr std::string_view kInterval = "[lower, upper bound] of it, 95 %";
  // Parts of a whole: the ends of what is below zero are, too.
  const auto ends = [](const std::optional<Measurement>& m) {
    return m ? std::optional(Bounds{m->middle() - m->error, m->middle() + m->error}) : std::nullopt;
  };
  column("rest_joules", energy_of(levels.rest), "energy at rest: rest power times the duration",
         kNull, {.place = place});
  column("rest_interval_joules", ends(levels.rest), kInterval, kNull, {.place = more});
  column("held_joules", energy_of(levels.held),
         "held energy: what an open context added to rest; of GPUs only", kNull, {.place = place});
  column("held_interval_joules", ends(levels.held), kInterval, kNull, {.place = more});
  column("active_joules", energy_of(levels.active), "active energy: above rest and held", kNull,
         {.place = place});
  column("active_interval_joules", ends(levels.active), kInterval, kNull, {.place = more});
  column("levels_reason", levels.reason, "why a level is absent", "no level is missing",
         {.place = more});
}

void columns(const model::PowerLevel& level, Columns& column) {
  column("watts", level.power, "the power");
  column("error_watts", level.error, "half of its 95 % interval, without the calibration error");
  column("source", level.source, "how it is known");
  column("observed", level.observed, "false: by an earlier run, or assumed");
  column("temperature_celsius", level.temperature_celsius,
         "of the board or package, when it was observed", "it is unknown");
}

void columns(const model::CommandEnergy& command, Columns& column) {
  const Measurement& m = command.energy;
  column("energy_joules", m.energy, "`processes_joules` + `rest_joules`");
  column("interval_joules",
         Bounds{command.low(), command.is_partial ? std::nullopt : std::optional(command.high())},
         "[lower, upper bound], 95 %: of the sensors and of the division among processes; "
         "`undivided_joules` extend it upwards; the upper bound is null where `is_partial`");
  column("repeatability_joules", command.repeatability(),
         "half of the interval without the calibration error and `undivided_joules`");
  column("processes_joules", command.processes,
         "of its processes, above rest, what they hold included");
  column("rest_joules", command.rest, "at rest, of devices that no other family used",
         "others used all devices or MIG divides them, or rest is unknown");
  column("undivided_joules", command.undivided,
         "of no known process, and not in `energy_joules`: unattributed and unowned held energy");
  column("is_divided", command.is_divided,
         "false: the recording knows of no other process, and all energy is the command's");
  column("is_partial", command.is_partial,
         "true: a device lacks readings of a part of the time, and this is without it: it is a "
         "lower bound");
  column("provenance", m.provenance,
         "`measured` where what others have lies within the sensors' error, else `estimated`");
}

void columns(const model::DomainProfile& d, const model::Profile& of, Columns& column) {
  const auto& m = d.energy;
  const ColumnTraits in_csv{.in = In::kCsv};  // JSON has them in `balance`
  std::string_view parent;
  const auto labels = labels_of(of);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (d.domain.parent == of.domains[i].domain.id) parent = labels[i];
  }
  column("id", number_of(d.domain.id), "identifies the domain in this document", "",
         {.in = In::kJson});
  column("domain", model::to_string(d.domain.kind),
         "`gpu`, `cpu` (a package), `dram`, `gpu_memory`, `cpu_cores`, `cpu_uncore`, `platform`, "
         "`module`");
  column("device", d.domain.device, "short and stable: `gpu0`, `package-0`");
  column("name", d.domain.name, "the product's name", "it is unknown");
  column("uuid", d.domain.uuid, "`GPU-...` or `MIG-...`", "there is none");
  column("parent", d.domain.parent ? std::optional(number_of(*d.domain.parent)) : std::nullopt,
         "id of the domain that contains this one", "there is none", {.in = In::kJson});
  column("visible", d.domain.visible, "false: present, but not visible to the command");
  column("parent", parent, "", "", in_csv);
  column("provenance", provenance_of(m), "provenance of the energy", "", {.place = 1});
  column("energy_joules", energy_of(m), "energy over the span", "`provenance` is `unavailable`");
  column("interval_joules", bounds_of(m),
         "[lower, upper bound] of the true energy, 95 %. It includes the sensor's calibration "
         "error (about 5 % for a GPU), which only an external meter removes",
         "`provenance` is `unavailable`");
  column("repeatability_joules", part_of(m, &Measurement::repeatability),
         "half of the interval's width without the calibration error: differences between two runs "
         "on one device must exceed it",
         "`provenance` is `unavailable`");
  column("reported_joules", d.reported,
         "what another tool reported of its windows, an imported file's: windows within others are "
         "counted once. Its error is not known",
         "its energy is known, no such window has one, or they have no sum", {.place = 3});
  column("least_joules", energy_of(d.least),
         "what the device took while it had readings: a lower bound",
         "its energy is known, or nothing of it", {.place = 2});
  columns(d.levels, column, 0, 2);
  column("dynamic_joules", dynamic_of(d), "held and active energy: energy minus energy at rest",
         "energy at rest is unknown");
  column("processes_joules", processes_of(of, d), "", "", in_csv);
  column("others_joules", d.others, "", "", in_csv);
  column("held_unowned_joules", d.held_unowned, "", "", in_csv);
  column("unattributed_joules", d.unattributed, "", "", in_csv);
  column("rest_power", nested(d.rest_power), "power at rest", "it is unknown");
  column("held_power", nested(d.held_power), "power of a GPU that a context holds, rest included",
         "it is unknown");
  column("mean_watts", d.mean_power, "mean power over the span", "it is unknown");
  column("peak_watts", d.peak_power, "largest power over `peak_window_seconds`",
         "it is unknown, or power samples are missing for more than 0.5 s");
  column("peak_window_seconds", d.peak_window, "averaging window of the peak: that of the sensor",
         "it is unknown", {.place = 2});
  column("sensor", text_of(m, &Measurement::sensor),
         "the interfaces that reported it, joined by ` + `", "`provenance` is `unavailable`",
         {.place = 1});
  column("method", text_of(m, &Measurement::method),
         "`fused` (samples scaled to the counter), `counter`, `samples`, `model`, ...",
         "`provenance` is `unavailable`", {.place = 1});
  column("reason", std::string_view(m ? std::string_view() : d.reason), "why there is no energy",
         "there is an energy", {.place = 1});
  column("command", nested(d.command), "what of the energy is the command's",
         "there is no energy, or `command_energy_reason`");
  column("shares_include_rest", known(d.balance.parts.has_value(), d.shares_include_rest),
         "true: the energy at rest is unknown, and processes have shares of all energy; false: "
         "shares of the dynamic energy",
         "the energy was not split", {.place = 2});
  column("within_command_joules", d.within_command,
         "energy of the command's processes, but of which of them is unknown; contained in "
         "`balance.processes_joules`",
         "the energy was not split", {.place = 2});
  column("command_division_interval_joules", bounds_of(d.command_bounds),
         "lower and upper bound of the command's dynamic energy, if the whole is exact: "
         "utilisation counts time and not watts, a list of processes does not show everything, "
         "CPU time is read in whole ticks of 10 ms, and of several sockets it does not say which",
         "there is no command, or it was not divided by utilisation or CPU time", {.place = 2});
  column(
      "balance", [&] { return balance_json(of, d); },
      "how the energy was determined, and its parts");
}

void columns(const Total& total, const model::Profile& of, Columns& column) {
  const auto& m = total.energy;
  column("provenance", provenance_of(m),
         "the weakest provenance of its parts: simulated before estimated before measured");
  column("energy_joules", energy_of(m), "the sum", "no domain has an energy");
  column("interval_joules", bounds_of(m, total.lost.has_value()),
         "[lower, upper bound], 95 %: the domains' errors added linearly, as if all had the same "
         "sign; "
         "the upper bound is null where `is_partial`",
         "no domain has an energy");
  column("repeatability_joules", part_of(m, &Measurement::repeatability),
         "the domains' repeatabilities, added linearly", "no domain has an energy");
  column("reported_joules", total.reported,
         "where no domain has an energy: the sum of their `reported_joules`, without an interval",
         "a domain has an energy, or none a reported one");
  column("rest_joules", total.rest, "energy at rest", "it is unknown for a domain in the sum");
  column("held_joules", total.held, "held energy of the GPUs",
         "it is unknown for a GPU in the sum, or there is none");
  column("active_joules", total.active, "active energy", "it is unknown for a domain in the sum");
  column("dynamic_joules", m && total.rest ? std::optional(m->energy - *total.rest) : std::nullopt,
         "held and active energy: energy minus energy at rest",
         "energy at rest is unknown for a domain in the sum");
  column("mean_watts",
         m && of.duration() > Duration{} ? std::optional(m->energy / of.duration()) : std::nullopt,
         "energy over duration", "no domain has an energy");
  column("is_partial", total.lost.has_value() || total.is_reported_in_part,
         "true: a device lacks readings of a part of the time, and the sum has the rest of it, or "
         "imported windows lack a device's figure: it is a lower bound");
  column(
      "of",
      [&] {
        return list_json(total.summed, [](const auto* d) { return number_of(d->domain.id); });
      },
      "ids of the domains in the sum, a list");
  column(
      "without",
      [&] {
        return list_json(total.excluded, [](const auto& excluded) -> Json {
          const auto& domain = excluded.domain->domain;
          return {
              {"id", number_of(domain.id)}, {"device", domain.device}, {"reason", excluded.why}};
        });
      },
      "domains that are missing from the sum, a list");
}

void columns(const model::ProcessProfile& p, const model::Profile& of, Columns& column) {
  const bool has_shares = !p.shares.empty();
  column("pid", p.process.pid, "process id in the tool's namespace");
  column("own_pid", p.process.own_pid, "process id in the process's own namespace (a container)",
         "it is the same or unknown");
  column("parent_pid", p.process.parent_pid, "its parent's process id");
  column("name", p.process.name, "the kernel's name for it");
  column("command_line", p.process.command_line, "its words, joined by blanks", "reading failed");
  column("start_seconds", p.process.start - of.begin,
         "begin, since the begin of the span; may be negative", "", {.place = 4});
  column("end_seconds", p.process.end ? std::optional(*p.process.end - of.begin) : std::nullopt,
         "end, since the begin of the span", "its end was not observed", {.place = 4});
  column("cpu_seconds", p.cpu_time, "CPU time within the span", "reading failed");
  column("energy_joules", known(has_shares, report::energy_of(of, p)),
         "sum of its shares of domains that count in a total", "nothing was attributed to it",
         {.place = 2});
  column("provenance", has_shares ? p.provenance : Provenance::kUnavailable,
         "the weakest provenance of its shares", "", {.place = 1});
  column(
      "energy",
      [&] {
        Json list = Json::array();
        for (const auto& share : p.shares) {
          for (const auto& d : of.domains) {
            if (d.domain.id == share.domain) list.push_back(record_json(share, d.domain));
          }
        }
        return list;
      },
      "its shares, a list");
  column("peak_pss_bytes", p.peak_pss_bytes, "largest proportional set size", "reading failed");
  column("peak_uss_bytes", p.peak_uss_bytes, "largest unique set size", "reading failed");
  column(
      "peak_rss_bytes", p.peak_rss_bytes,
      "largest resident set size, shared pages included, of reads up to once a second; "
      "`peak_pss_bytes` and `peak_uss_bytes` are read every 5 s or slower, and not in a "
      "process's first 0.5 s",
      "reading failed, or the process lived less than a second and was read in its first quarter "
      "only",
      {.place = 3});
  column("peak_gpu_memory_bytes", p.peak_gpu_memory_bytes, "largest GPU memory",
         "it used no GPU, or reading failed");
  column("mean_sm_utilisation_ratio", p.mean_sm_utilisation,
         "mean utilisation of the GPUs' multiprocessors", "it used no GPU, or reading failed");
}

void columns(const model::ProcessShare& share, const model::Domain& in, Columns& column) {
  column("id", number_of(share.domain), "the domain's id");
  column("domain", model::to_string(in.kind), "as `domains[].domain`");
  column("device", in.device, "as `domains[].device`");
  column("energy_joules", share.energy, "the share");
  column("kernels_joules", share.kernels, "of it, the energy of the process's kernels",
         "its kernels were not traced");
  column("idle_between_launches_joules", share.idle_between,
         "of it, its part of the energy between launches", "its kernels were not traced");
  column("held_joules", share.held, "of it, its part of the held energy",
         "it has none, or that is unknown");
  column("division_interval_joules", bounds_of(share.bounds),
         "lower and upper bound of the share, if the whole is exact",
         "it was not divided by utilisation");
}

void columns(const model::WindowGroup& group, const model::Profile& of, Columns& column) {
  std::string labels;
  for (const auto& [name, value] : group.labels) {
    labels += (labels.empty() ? "" : ";") + name + '=' + value;
  }
  column("name", group.name, "the windows' name");
  column("labels", labels, "", "", {.in = In::kCsv});
  column("imported", group.imported, "true: another tool's figures");
  column(
      "labels",
      [&] {
        return list_json(group.labels, [](const auto& label) -> Json {
          return {{"name", label.name}, {"value", label.value}};
        });
      },
      "what else the other tool recorded, a list");
  column("count", group.count, "number of windows");
  column("total_seconds", group.total_time, "sum of their durations");
  column("mean_seconds", group.mean_time(), "the mean duration");
  column("quartiles_seconds", group.time_quartiles,
         "[lower quartile, median, upper quartile] of the durations",
         "there are fewer than 4 windows");
  column(
      "energy",
      [&] {
        Json list = Json::array();
        for (std::size_t d = 0; d < group.energies.size() && d < of.domains.size(); ++d) {
          list.push_back(record_json(group.energies[d], group, of.domains[d].domain));
        }
        return list;
      },
      "one entry for each of `domains`, in their order, a list");
}

void columns(const model::WindowEnergy& e, const model::WindowGroup& of, const model::Domain& in,
             Columns& column) {
  const bool has_sum = is_whole(of, e);  // a mean is a mean all the same
  const auto sum = has_sum ? e.energy : std::nullopt;
  const auto mean = mean_of(e);
  const auto reported = e.reported && e.count > 0
                            ? std::optional(model::mean_of(*e.reported, e.count))
                            : std::nullopt;
  column("id", number_of(in.id), "the domain's id", "", {.in = In::kJson});
  column("domain", model::to_string(in.kind), "as `domains[].domain`", "", {.place = 1});
  column("device", in.device, "as `domains[].device`");
  column("count", e.count,
         "number of windows with an energy; without a `reason` the other windows are those of "
         "monitors that do not measure this device",
         "", {.place = 1, .csv = "count_with_energy"});
  column("provenance",
         of.imported ? std::optional<std::string_view>()
                     : std::optional(model::to_string(provenance_of(e.energy))),
         "provenance of the energy", "the windows are imported", {.place = 2});
  column("energy_joules",
         sum       ? std::optional(sum->energy)
         : has_sum ? e.reported
                   : std::nullopt,
         "the sum over the windows that measure this device; where windows of several processes "
         "overlap, each time counts once",
         "one of them has no energy", {.place = 1});
  column("interval_joules", bounds_of(sum), "[lower, upper bound] of the sum, 95 %",
         "there is no sum, or it is imported", {.place = 3});
  column("repeatability_joules", part_of(sum, &Measurement::repeatability),
         "half of the width of the sum's interval, without the calibration error",
         "there is no sum, or it is imported", {.place = 3});
  column(
      "mean_joules", mean ? std::optional(mean->energy) : reported,
      "the mean over single windows that have an energy; each has all energy of the device in its "
      "time, so that `count` means exceed the sum where windows of several processes overlap",
      "no window has an energy", {.place = 1});
  column("mean_interval_joules", bounds_of(mean),
         "[lower, upper bound] of the mean, 95 %; not of each window",
         "there is no mean, or it is imported", {.place = 1});
  column("quartiles_joules", e.quartiles,
         "[lower quartile, median, upper quartile] of the energies of single windows, sensor noise "
         "included",
         "there are fewer than 4 windows, one has no energy, more than half are shorter than 100 "
         "ms or than the sensor's resolution, or windows of several processes overlap",
         {.place = 1});
  columns(has_sum ? e.levels : model::EnergyLevels{}, column, 1, 3);
  column("sensor", text_of(e.energy, &Measurement::sensor), "as `domains[].sensor`",
         "`provenance` is `unavailable` or null", {.place = 3});
  column("method", text_of(e.energy, &Measurement::method), "as `domains[].method`",
         "`provenance` is `unavailable` or null", {.place = 3});
  column("reason", e.reason, "why a window has no energy: the first such reason",
         "all windows that measure this device have an energy", {.place = 2});
}

void columns(const model::Finding& f, Columns& column) {
  column("code", f.code,
         "`waiting`, `context_kept`, `power_limit`, `thermal_limit`, `copies`, "
         "`collective_waiting`, `collectives`, `layer` or `processors`");
  column("device", f.device, "the device", "it is about the whole machine");
  column("text", f.text, "what was found");
  column("next_step", f.next_step, "what to do about it");
  column("energy_joules", f.energy.energy,
         "energy of the device in that time, or of those launches");
  column("interval_joules", Bounds{f.energy.low(), f.energy.high()},
         "[lower, upper bound] of it, 95 %");
  column("share_ratio", f.share, "its share of the device's energy, or of the machine's");
  column("estimated", f.estimated, "true: the energy is an estimate");
}

void columns(const model::Overhead& o, Columns& column) {
  column("cpu_seconds", o.cpu_time, "CPU time of the tool, all threads");
  column("wall_seconds", o.wall_time, "duration of the measurement");
  column("cpu_ratio",
         o.wall_time > Duration{} ? std::optional(seconds(o.cpu_time) / seconds(o.wall_time))
                                  : std::nullopt,
         "CPU time divided by duration: the share of one core", "no time passed");
  column("peak_memory_bytes", known(o.peak_memory_bytes > 0, o.peak_memory_bytes),
         "largest memory of the tool", "it is unknown");
}

std::vector<RecordKind> record_kinds() {
  const model::ActivityRow row;
  const ActivityLine line{&row};
  const model::ActivityProfile device;
  const model::Profile profile;
  const model::Domain domain;
  ActivityOptions by_layer;
  by_layer.by = ActivityBy::kLayer;
  return {record_kind("devices[].rows[].", "activity", line, device, ActivityOptions{}),
          record_kind("devices[].rows[].", "layer", line, device, by_layer),
          record_kind("devices[].processes[].", "traced_process", model::ActivityProcess{}),
          record_kind("command_energy.", "command", model::CommandEnergy{}),
          record_kind("total.", "total", Total{}, profile),
          record_kind("domains[].", "domain", model::DomainProfile{}, profile),
          record_kind("domains[].rest_power.", "power_level", model::PowerLevel{}),
          record_kind("processes[].", "process", model::ProcessProfile{}, profile),
          record_kind("processes[].energy[].", "share", model::ProcessShare{}, domain),
          record_kind("windows[].", "window", model::WindowGroup{}, profile),
          record_kind("windows[].energy[].", "window_energy", model::WindowEnergy{},
                      model::WindowGroup{}, domain),
          record_kind("findings[].", "finding", model::Finding{}),
          record_kind("overhead.", "overhead", model::Overhead{})};
}

}  // namespace jouleprof::report
