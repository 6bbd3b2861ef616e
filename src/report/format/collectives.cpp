#include "report/format/collectives.h"

#include <fmt/format.h>

#include "report/format/traced.h"

namespace jouleprof::report {

std::string rank_name(const model::CollectiveRank& rank) {
  return rank.rank.global ? fmt::format("rank {}", *rank.rank.global)
                          : fmt::format("pid {}", rank.pid);
}

Result<const model::CollectiveProfile*> traced_collectives(const analysis::Run& run,
                                                           const analysis::Part& part) {
  if (const auto activity = traced_activity(run, part); !activity) {
    return tl::unexpected(activity.error());
  }
  const auto& made = run.collectives(part);
  if (!made) return forward_error(made);
  if (!made->empty()) return &*made;
  std::string why = "no kernel of a collective operation (NCCL, RCCL, NVSHMEM) was traced";
  for (const auto& problem : made->problems) why += "\n  " + problem;
  return fail(Errc::kUnavailable, why);
}

}  // namespace jouleprof::report
