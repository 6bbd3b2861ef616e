#include "model/activity/collective.h"

#include <algorithm>
#include <array>
#include <utility>

namespace jouleprof::model {
namespace {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The operation follows. NCCL 2.19 and newer; 2.27 and newer for symmetric memory; older ones and
// RCCL.
constexpr std::array<std::string_view, 5> kPrefixes{
    "ncclDevKernel_", "ncclSymDevKernel_", "ncclSymkDevKernel_", "ncclKernel_", "mscclKernel_"};
// Kernels of PyTorch's symmetric memory and of vLLM.
constexpr std::array<std::string_view, 3> kAllReduces{"_shot_all_reduce", "multimem_all_reduce",
                                                      "cross_device_reduce"};
constexpr std::array<std::string_view, 3> kOthers{"nccl", "rccl", "nvshmem"};

}  // namespace

std::string_view collective_kind(std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    const auto at = name.find(prefix);
    if (at == name.npos) continue;
    const std::string_view rest = name.substr(at + prefix.size());
    const auto end = std::find_if_not(rest.begin(), rest.end(), is_letter);
    const std::string_view kind = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
    return kind.empty() ? "other" : kind;
  }
  const auto contains = [name](std::string_view part) { return name.find(part) != name.npos; };
  if (std::any_of(kAllReduces.begin(), kAllReduces.end(), contains)) return "AllReduce";
  if (std::any_of(kOthers.begin(), kOthers.end(), contains)) return "other";
  return {};
}

bool is_synchronising(std::string_view kind) {
  return kind == "AllReduce" || kind == "AllGather" || kind == "ReduceScatter" ||
         kind == "AllToAll" || kind == "AlltoAll";
}

}  // namespace jouleprof::model
