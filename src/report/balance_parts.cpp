#include "report/balance_parts.h"

#include <utility>

#include "report/total.h"

namespace jouleprof::report {
namespace {

using model::Measurement;

constexpr std::string_view kGrey = "#8e9aa8", kBlue = "#5fb3e4", kOrange = "#e69f00",
                           kSky = "#a6d5ef", kYellow = "#f0e442", kPink = "#cc79a7",
                           kStone = "#b9b3a9";

class Parts {
 public:
  void add(std::string_view label, std::string_view colour, const std::optional<Energy>& energy,
           std::optional<Measurement> level = {}) {
    if (!energy || *energy == Energy{}) return;
    all_.push_back({label, colour, *energy, std::move(level)});
  }
  void add(std::string_view label, std::string_view colour, const Measurement& level) {
    add(label, colour, level.energy, level);
  }
  std::vector<BalancePart> take() { return std::move(all_); }

 private:
  std::vector<BalancePart> all_;
};

// Not divided among processes: by level, as far as those are known.
void add_levels(Parts& parts, const model::DomainProfile& domain) {
  const auto& [rest, held, active, idle, held_time, reason] = domain.levels;
  if (!rest) return parts.add("energy", kOrange, *domain.energy);
  parts.add("rest", kGrey, *rest);
  if (held && active) {
    parts.add("held", kBlue, *held);
    parts.add("dynamic, not attributed", kOrange, *active);
  } else {
    parts.add("dynamic, not attributed", kOrange, domain.energy->energy - rest->energy);
  }
}

}  // namespace

std::vector<BalancePart> balance_parts(const model::Profile& profile,
                                       const model::DomainProfile& domain) {
  Parts parts;
  if (!domain.energy) return {};
  const auto processes = processes_of(profile, domain);
  if (!processes || !domain.idle_part) {
    add_levels(parts, domain);
    return parts.take();
  }
  Energy kernels, between, held;
  for (const auto& process : profile.processes) {
    for (const auto& share : process.shares) {
      if (share.domain != domain.domain.id) continue;
      kernels += share.kernels.value_or(Energy{});
      between += share.idle_between.value_or(Energy{});
      held += share.held.value_or(Energy{});
    }
  }
  const auto& levels = domain.levels;
  parts.add(levels.rest ? "rest" : "idle", kGrey, domain.idle_part, levels.rest);
  // The interval is that of all held energy.
  const bool is_all_held = levels.held && levels.held->energy == held;
  parts.add("held", kBlue, held, is_all_held ? levels.held : std::nullopt);
  parts.add("kernels", kOrange, kernels);
  parts.add("processes", kOrange, *processes - kernels - between - held);
  parts.add("idle between launches", kYellow, between);
  parts.add("other processes", kPink, domain.others);
  const bool is_all_unowned = levels.held && levels.held->energy == domain.held_unowned;
  parts.add("held, unowned", kSky, domain.held_unowned,
            is_all_unowned ? levels.held : std::nullopt);
  parts.add("unattributed", kStone, domain.unattributed);
  return parts.take();
}

}  // namespace jouleprof::report
