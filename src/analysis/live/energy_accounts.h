// The energy of a machine's devices since the start, divided among processes and what they belong
// to: containers, pods, jobs, units and users.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/process/process.h"

namespace jouleprof::analysis {

// Each family divides the same energy anew.
enum class Family { kProcess, kContainer, kPod, kJob, kUnit, kUser };
inline constexpr std::size_t kFamilies = 6;
inline constexpr std::array kAllFamilies = {Family::kProcess, Family::kContainer, Family::kPod,
                                            Family::kJob,     Family::kUnit,      Family::kUser};
std::string_view to_string(Family family);  // process, container, ...
std::optional<Family> parse_family(std::string_view text);

// What energy is charged to: a process, or the processes of a group that were too short to be
// listed.
struct Worker {
  std::uint64_t process = 0;  // never given twice; 0: no listed process
  pid_t pid = 0;
  std::string name;
  model::Owner owner;
  bool holds_gpu = false;  // its driver lists it on a GPU
};

// A part of an interval's energy: that of one of these workers of the tick, or of several of them
// in an unknown proportion.
struct WorkerClaim {
  std::vector<std::size_t> workers;  // empty: nothing is known of whose it is; unattributed
  bool is_unidentified = false;      // or of a process that is none of them
  double weight = 0;
};

// The energy of a part of a tick.
struct ChargePart {
  Energy energy;
  std::optional<Energy> rest;       // as DomainCharge's
  std::vector<WorkerClaim> claims;  // empty: the energy is unattributed
};

// The energy of one domain in one tick.
struct DomainCharge {
  std::size_t domain = 0;
  Energy energy;
  Duration interval{};  // in which it was used
  // The part that the domain takes at rest, where it is known; of it at most `energy` counts. It is
  // charged to no worker.
  std::optional<Energy> rest;
  // By worker of the tick: the rest of the energy is divided in proportion. Where no weight is
  // positive, or none are given, it is unattributed.
  std::span<const double> weights;
  double others = 0;  // the weight of what is no worker: the kernel, other users of a device
  // Instead of `rest` and `weights`, where something changed within the tick. Their energies sum to
  // `energy`.
  std::vector<ChargePart> parts{};
};

struct DomainAccount {
  Energy total;
  std::optional<Energy> rest;  // absent: the domain's energy is not divided into levels
  Energy unattributed;
  std::optional<HostTime> since;  // when its count began; absent: at the service's start
  // The latest tick in which it was charged:
  HostTime charged{};
  Duration interval{};
};

struct SeriesEnergy {
  Energy energy;
  HostTime since{};    // when it began to be counted
  Energy latest;       // of the latest tick in which it was charged
  HostTime charged{};  // then
};

// One process, container, ... with its energy by domain; absent where it was never charged.
struct Entity {
  Worker worker;  // the one that was charged first; of a container, its owner and name
  std::vector<std::optional<SeriesEnergy>> energies;
  HostTime present{};      // last
  Energy folded;           // into FamilyAccount::other, when it made room
  bool holds_gpu = false;  // one of its workers does, or did
};

struct FamilyAccount {
  std::map<std::string, Entity, std::less<>> entities;  // by id: pid, container id, uid, ...
  // By domain, what no entity has:
  std::vector<Energy> outside;    // of workers that belong to none, and of no worker
  std::vector<Energy> undivided;  // of one or several of some entities
  std::vector<Energy> other;      // of entities whose series are beyond the bound
  std::vector<Energy> ended;      // of entities that ended, and whose series were removed
  std::size_t series = 0;         // of all entities
};

// For each domain and each family, in whole microjoules and at any time:
//   entities + outside + undivided + other + ended + rest + unattributed = total
// None of these ever decreases, but an entity that ended is removed after `keep`, or when its pid
// is given out again, and its energy is then in `ended`. Users are not removed for their age.
// Beyond `most_series` entities make room: first those that ended, then those that are present,
// then those that ended and held a GPU; of each, those with the least energy first. What is present
// and holds a GPU never does. Thread safety: none.
class EnergyAccounts {
 public:
  struct Options {
    std::vector<Family> families{kAllFamilies.begin(), kAllFamilies.end()};
    std::size_t most_series = 1000;  // of entities, by family; see above
    Duration keep = std::chrono::minutes{5};
  };
  EnergyAccounts(std::size_t domains, Options options);

  // Continues the counts of earlier accounts, before the first tick. By domain, absent: there are
  // none. `families` has all families of these accounts, and they sum as above.
  void restore(const std::vector<std::optional<DomainAccount>>& domains,
               std::map<Family, FamilyAccount> families);

  // Begins a tick: who works now, then who ended since the last one. Removes what ended long ago.
  void begin_tick(HostTime now, std::vector<Worker> workers);
  void charge(const DomainCharge& charge);
  // After the charges of a tick: keeps the bound of series.
  void end_tick();
  // Energy of which it is known only that the domain used it: before the tick's charges.
  void add_unattributed(std::size_t domain, Energy energy);

  const std::vector<DomainAccount>& domains() const { return domains_; }
  // The mean power of a series in the latest tick; absent where its domain was not charged then.
  std::optional<Power> power(std::size_t domain, const SeriesEnergy& series) const;
  // nullptr: the family is not accounted.
  const FamilyAccount* family(Family family) const;

 private:
  struct Book {
    Family family{};
    FamilyAccount account;
    std::vector<Entity*> of_worker;  // of this tick; nullptr: it belongs to none
    Entity gone;  // in of_worker: of a process whose pid an earlier one of the list has now
  };

  void remove_ended(Book& book);
  void bound(FamilyAccount& account) const;
  static void fold(FamilyAccount& account, const Entity& entity, std::vector<Energy>& to);
  void charge(std::size_t domain, Energy energy, const std::optional<Energy>& rest,
              const std::vector<WorkerClaim>& claims);
  Energy take_rest(std::size_t domain, Energy energy, const std::optional<Energy>& rest);
  void add(Book& book, Entity* entity, std::size_t domain, Energy energy);

  Options options_;
  HostTime now_{};
  std::vector<DomainAccount> domains_;
  std::vector<Book> books_;
  std::size_t workers_ = 0;
};

}  // namespace jouleprof::analysis
