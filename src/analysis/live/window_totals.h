// The energy of all windows of one name together, without keeping any window.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analysis/live/energy_ledger.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/windows/window_chains.h"
#include "model/recording.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {

struct WindowTotal {
  std::uint64_t count = 0;
  std::uint64_t resolved_count = 0;                  // those in `energies`
  Duration length{};                                 // together
  std::vector<Result<model::Measurement>> energies;  // by domain
};

// Adds up windows as a recording's do: window_chains.h, model::WindowSum. Overlapping windows count
// each for itself.
//
// Thread safety: none.
class WindowTotals {
 public:
  using Ledgers = std::vector<EnergyLedger*>;  // by domain; nullptr: never any energy
  enum class State { kSettled, kOpen };        // whether its energy may still change

  explicit WindowTotals(std::size_t domains) : domains_(domains) {}

  // In the order in which a thread's windows end.
  void add(std::uint32_t name, HostTime begin, HostTime end);

  // Resolves for good what lies before `until`, and forgets the windows.
  void settle(HostTime until, const Ledgers& ledgers);

  // All windows so far; those not settled as the ledgers have them now. Absent for a name without
  // a window.
  std::optional<WindowTotal> total(std::uint32_t name, const Ledgers& ledgers) const;

  // When the latest window of `name` ended; absent without one.
  std::optional<HostTime> latest_end(std::uint32_t name) const;

 private:
  struct Sum {  // in one domain
    model::WindowSum windows;
    std::string missing;  // why a part of it could not be had
  };
  struct Name {
    std::uint64_t count = 0;
    std::uint64_t resolved = 0;
    Duration length{};
    HostTime latest_end{};
    WindowChains chains;
    std::vector<WindowChain> pending;  // ended
    std::vector<Sum> sums;
  };
  static void resolve_chain(Name& name, const WindowChain& chain, State state,
                            const Ledgers& ledgers);
  static void resolve_pending(Name& name, HostTime until, State state, const Ledgers& ledgers);
  static void resolve_pauses(Name& name, WindowChain& chain, HostTime until,
                             const Ledgers& ledgers);

  std::size_t domains_;
  std::unordered_map<std::uint32_t, Name> names_;
};

// The energy of all short windows of one name so far, from the power that they cause together
// (analysis/repeated/repeated_windows.h), in bounded memory.
// Windows are taken together in blocks: of a minute, or of up to four minutes while a name has too
// few windows for a regression. A block of less than ten seconds is fitted with the one before it.
// Errors of blocks add linearly: windows of one name err alike. A name has no total here, for good,
// after a block in which its windows were long or few or the sensor observed too little of them;
// and no name has one after a block of more than 50,000 windows.
//
// Thread safety: none.
class RepeatedTotals {
 public:
  using Ledgers = std::vector<EnergyLedger*>;  // by domain; nullptr: not possible

  // In the order in which a thread's windows end.
  void add(std::uint32_t name, HostTime begin, HostTime end);

  // Ends the block where it is long enough. Until `until` all windows and readings are known.
  void settle(HostTime until, const Ledgers& ledgers);

  // All windows of the name so far, in one domain. A fit: tens of
  // milliseconds.
  std::optional<model::Measurement> total(std::uint32_t name, std::size_t domain,
                                          const Ledgers& ledgers) const;

 private:
  struct Span {
    std::uint32_t name = 0;
    HostTime begin{};
    HostTime end{};
  };
  using Key = std::pair<std::uint32_t, std::size_t>;  // name and domain

  void begin_block(HostTime first);
  bool is_due(HostTime end) const;
  void end_block(HostTime end, const Ledgers& ledgers);
  Duration open_length() const;  // of the block so far
  std::vector<model::Window> windows_since(HostTime t) const;
  void give_up();

  std::vector<Span> spans_;  // of this block and the one before
  std::size_t in_block_ = 0;
  HostTime before_{};  // where the block before began
  HostTime begin_{};   // where this one begins; the epoch: with its first window
  bool given_up_ = false;
  std::map<Key, model::WindowSum> ended_;  // of the blocks that ended
  std::set<Key> without_;
  std::set<std::uint32_t> late_;  // names with a window that ended after its block
};

}  // namespace jouleprof::analysis
