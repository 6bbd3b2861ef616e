// What a profile's domains add up to, also for a unit of the work.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/profile.h"

namespace jouleprof::report {

// The sum over the domains that do not contain one another: those without a parent, except platform
// and module, which contain others, and except what the command cannot see. A package within a
// platform counts.
//
// Errors add up linearly, as if all sensors erred to the same side: the widest that can be.
struct Total {
  struct Excluded {
    const model::DomainProfile* domain;
    std::string why;
  };
  std::vector<const model::DomainProfile*> counted;
  // What one could expect to be counted, and why it is not, or not all of it.
  std::vector<Excluded> excluded;
  // The part of `energy` that `excluded` devices took while they had readings: the total is at
  // least `energy`, and has no upper bound. Absent where none of them was lost.
  std::optional<Energy> lost;
  // `counted`, and those lost devices of which something is known: `energy` is their sum.
  std::vector<const model::DomainProfile*> summed;
  std::optional<model::Measurement> energy;  // absent when nothing is summed
  // Where nothing is summed: what another tool reported of its windows, and of which domains.
  std::optional<Energy> reported;
  std::vector<const model::DomainProfile*> reporting;
  bool is_reported_in_part = false;  // windows lack a figure of one of them: a lower bound
  // What of it is the command's; absent unless every one of `counted` has it, and where a device
  // was lost and no part of the others is known to be the command's: that would be "at least 0 J".
  std::optional<model::CommandEnergy> command;
  bool is_command_lost = false;  // the latter
  // Sums over `summed`, each absent unless every one of them has it.
  std::optional<Energy> rest;
  std::optional<Energy> held;  // of GPUs; other domains have none
  std::optional<Energy> active;
  std::optional<Energy> idle_part;
  std::optional<Energy> processes;
  std::optional<Energy> others;
  std::optional<Energy> held_unowned;  // of GPUs whose held energy is known
  std::optional<Energy> unattributed;
  std::optional<Energy> parts;
  std::optional<Energy> counter;
  std::optional<Energy> integral;
};

// The pointers are into `profile`.
Total total_of(const model::Profile& profile);
// Why `command` is absent; empty where it is not, or where a domain has none for a reason of its
// own.
std::string no_command_text(const model::Profile& profile, const Total& total);

// The energy that headline, costs and units are of: the command's; that of all devices where
// `whole_machine`, or where nothing is known of a command. Absent without a total.
struct Quoted {
  Energy energy;
  Energy error;        // downwards: half of a symmetric 95 % interval
  Energy upper_error;  // upwards, with what may be the command's, too
  Energy repeatability;
  model::Provenance provenance = model::Provenance::kUnavailable;
  bool is_command = false;
  bool is_partial = false;  // a device was lost: no upper bound
  // False: another tool reported it without an error (Total::reported). No interval is known, and
  // `provenance` is kUnavailable: whether it was measured is not known either.
  bool has_interval = true;

  Energy low() const { return std::max(energy - error, Energy{}); }
  Energy high() const { return energy + upper_error; }
  // The command's cannot be distinguished from nothing: it is "at most" high().
  bool is_bound() const { return is_command && !is_partial && energy <= error; }
};
std::optional<Quoted> quoted(const Total& total, bool whole_machine);
// "processes 985.1 J + rest 72.30 J; ..." of a total that has a command.
std::string command_parts_text(const model::Profile& profile, const Total& total);

// The energy of each level; absent where unknown. Dynamic energy is held and active energy.
std::optional<Energy> rest_of(const model::DomainProfile& domain);
std::optional<Energy> held_of(const model::DomainProfile& domain);
std::optional<Energy> active_of(const model::DomainProfile& domain);
std::optional<Energy> dynamic_of(const model::DomainProfile& domain);

// What the command's processes have of a domain's energy; absent when it was not attributed.
std::optional<Energy> processes_of(const model::Profile& profile,
                                   const model::DomainProfile& domain);

// A process's shares of those domains that have no parent.
Energy energy_of(const model::Profile& profile, const model::ProcessProfile& process);

// A short name for each domain, in order and different from each other: its device, and where
// others have the same device too ("gpu0" and its memory), the kind before it.
std::vector<std::string> labels_of(const model::Profile& profile);
std::string label_of(const model::Profile& profile, const model::DomainProfile& domain);

// --- Energy of one unit of work, which the user counts: inferences, images, tokens ---

struct UnitCount {
  double count = 0;
  std::string name;
};

// "22600:inference", or "22600" for units without a name. Errors: invalid_argument.
Result<UnitCount> parse_unit_count(std::string_view text);

struct PerUnit {
  UnitCount unit;
  double seconds = 0;  // for one
  // Joules of one, of what the run quotes. Absent without a total.
  std::optional<double> joules;
  bool is_command = false;               // of the command; else of all devices
  double error_joules = 0;               // of its 95 % interval, downwards
  double upper_error_joules = 0;         // upwards
  double repeatability_joules = 0;       // the same without the calibration error
  std::optional<double> dynamic_joules;  // above rest; absent where rest is unknown
  model::Provenance provenance = model::Provenance::kUnavailable;
  bool has_interval = true;  // as Quoted's
  bool is_partial = false;
  // What one costs, where factors were given (report/costs/costs.h).
  std::optional<double> money = {};
  std::string currency = {};
  std::optional<double> carbon_grams = {};
  // Money and grams as text shows them: those of the upper bound where the energy cannot be
  // distinguished from nothing.
  std::optional<double> shown_money = {};
  std::optional<double> shown_grams = {};
};

PerUnit per_unit(const model::Profile& profile, const UnitCount& unit, bool whole_machine = false);

}  // namespace jouleprof::report
