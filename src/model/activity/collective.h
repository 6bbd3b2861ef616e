// Collective operations of several ranks: which kernels perform them, and what they took.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/process/process.h"
#include "model/profile.h"

namespace jouleprof::model {

// The operation of a kernel of NCCL, RCCL, NVSHMEM or a framework, as the library spells it:
// "AllReduce", "SendRecv"; "other" where the name does not say. Empty: not such a kernel. `name`:
// mangled or readable. The view is of `name` or static.
inline std::string_view collective_kind(std::string_view name) {
  // The operation follows. NCCL 2.19 and newer; 2.27 and newer for symmetric memory; older ones and
  // RCCL.
  static constexpr std::array<std::string_view, 5> kPrefixes{
      "ncclDevKernel_", "ncclSymDevKernel_", "ncclSymkDevKernel_", "ncclKernel_", "mscclKernel_"};
  // Kernels of PyTorch's symmetric memory and of vLLM.
  static constexpr std::array<std::string_view, 3> kAllReduces{
      "_shot_all_reduce", "multimem_all_reduce", "cross_device_reduce"};
  static constexpr std::array<std::string_view, 3> kOthers{"nccl", "rccl", "nvshmem"};
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (const std::string_view prefix : kPrefixes) {
    const auto at = name.find(prefix);
    if (at == name.npos) continue;
    const std::string_view rest = name.substr(at + prefix.size());
    const auto end = std::ranges::find_if_not(rest, is_letter);
    const std::string_view kind = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    return kind.empty() ? "other" : kind;
  }
  const auto contains = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (std::ranges::any_of(kAllReduces, contains)) return "AllReduce";
  if (std::ranges::any_of(kOthers, contains)) return "other";
  return {};
}

// Whether no rank can finish the operation before all ranks have begun it, because each needs data
// of all.
inline bool is_synchronising(std::string_view kind) {
  return kind == "AllReduce" || kind == "AllGather" || kind == "ReduceScatter" ||
         kind == "AllToAll" || kind == "AlltoAll";
}

// --- What collective operations took: transfers, and waiting for the rank that came last ---

// Time in kernels of collectives. Their energy is divided by time; all three sum exactly to it.
struct CollectiveTimes {
  std::uint64_t calls = 0;
  std::uint64_t matched = 0;                   // of `calls`: found with all ranks
  Duration transfer{};                         // of matched calls, once all ranks had begun
  Duration waiting{};                          // of matched calls, until all ranks had begun
  Duration unsplit{};                          // of all other calls
  std::optional<Measurement> transfer_energy;  // active energy; absent: the rank has no figure
  std::optional<Measurement> waiting_energy;
  std::optional<Measurement> unsplit_energy;
};

// One kind of operation.
struct CollectiveKind : CollectiveTimes {
  std::string name;  // "AllReduce"
};

// A rank, or a GPU of a process that has several.
struct CollectiveRank : CollectiveTimes {
  std::uint32_t trace = 0;  // index into Recording::traces
  pid_t pid = 0;
  Rank rank;
  DomainId domain{};
  std::string device;                 // "gpu0"
  std::vector<CollectiveKind> kinds;  // by name; they sum to the rank's
  // Matched calls in which it came last: how many, and how long all other ranks waited in them.
  std::uint64_t last = 0;
  Duration waited_for{};
  std::optional<Energy> waited_for_energy;
};

struct CollectiveProfile {
  std::vector<CollectiveRank> ranks;  // by number, then pid
  // Median over matched calls of the longest time between the ends of two ranks: of the order of
  // the error of the ranks' clocks.
  std::optional<Duration> end_spread;
  std::vector<std::string> problems;  // ranks without a trace, calls that were not matched

  bool empty() const { return ranks.empty(); }
  bool has_split() const { return end_spread.has_value(); }
  // For which the others waited longest; nullptr: calls were not matched.
  const CollectiveRank* straggler() const {
    const CollectiveRank* most = nullptr;
    for (const auto& rank : ranks) {
      if (rank.last > 0 && (most == nullptr || rank.waited_for > most->waited_for)) most = &rank;
    }
    return most;
  }
};

}  // namespace jouleprof::model
