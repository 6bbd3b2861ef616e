// Sums over a job's recordings: of domains, of windows and layers over ranks, and of jobs that
// share machines. Private to this folder.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/job/job.h"

namespace jouleprof::analysis {

// A recording of a host, with its place among the others in the order of time.
struct Placed {
  const JobBuilder::Named* named;
  const model::Profile* profile;
};

// By which recordings of one host have the same domain: the GPU's UUID, else its label.
struct DomainKey {
  std::string label;  // "gpu0", "dram package-0"
  std::string identity;

  auto operator<=>(const DomainKey&) const = default;
};
DomainKey key_of(const model::Domain& domain);

// In a total: contains and is in no other domain.
bool is_counted(const model::Profile& profile, const model::Domain& domain);

// Adds `m` to `sum`. Errors add linearly, as if all sensors erred to one side.
void add(std::optional<model::Measurement>& sum, const model::Measurement& m);

// Names of machines that can be distinguished. Of machines given as (name, boot id): for each that
// shares its name with another, by boot id, its name with the first digits of the boot id, as many
// as distinguish them (at least 8).
std::map<std::string, std::string> distinct_names(
    const std::vector<std::pair<std::string, std::string>>& machines);

// Windows and layers over ranks, and what each of several jobs is charged with. Each adds one
// host's recordings, in the order of time; finish_rows() when all hosts were added.
void add_windows(std::span<const Placed> placed, Job& job);
void add_layers(std::span<const Placed> placed, Job& job);
void add_shares(std::span<const Placed> placed, const JobHost& host, const JobRules& rules,
                Job& job);
void finish_rows(Job& job);

}  // namespace jouleprof::analysis
