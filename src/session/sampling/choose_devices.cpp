#include "session/sampling/choose_devices.h"

#include <fmt/format.h>

#include <algorithm>

namespace jouleprof::session {
namespace {

using model::DomainKind;

Result<std::vector<bool>> choose_gpus(const std::vector<model::Domain>& domains,
                                      const DeviceChoice::Gpus& gpus,
                                      const std::vector<model::DomainId>& order) {
  std::vector<model::DomainId> boards;
  for (const int index : gpus.indices) {
    if (index < 0 || static_cast<std::size_t>(index) >= order.size()) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("GPU index {} does not exist: CUDA shows {} here", index,
                              order.size() == 1 ? "1 GPU" : fmt::format("{} GPUs", order.size())));
    }
    boards.push_back(order[static_cast<std::size_t>(index)]);
  }
  const auto is_board = [&](model::DomainId id) {
    return std::find(boards.begin(), boards.end(), id) != boards.end();
  };
  std::vector<bool> chosen;
  for (const auto& d : domains) {
    const bool is_processor = d.kind == DomainKind::kCpu || d.kind == DomainKind::kDram;
    chosen.push_back(is_board(d.id) || (d.parent && is_board(*d.parent)) ||
                     (gpus.with_processors && is_processor));
  }
  return chosen;
}

}  // namespace

Result<ChosenDevices> choose_devices(std::vector<model::Domain>& domains,
                                     const DeviceChoice& choice, const Environment& environment) {
  ChosenDevices out;
  auto selected = select_devices(domains, choice.words);
  out.visibility = apply_visibility(domains, environment);
  if (selected && choice.gpus) {
    selected = choose_gpus(domains, *choice.gpus, out.visibility.order);
  }
  if (!selected) return forward_error(selected);
  out.chosen = std::move(*selected);
  for (std::size_t i = 0; i < domains.size(); ++i) {
    if (!domains[i].visible && !choice.is_named()) out.chosen[i] = false;
  }
  return out;
}

}  // namespace jouleprof::session
