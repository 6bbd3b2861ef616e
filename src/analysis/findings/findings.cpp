#include "analysis/findings/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "analysis/levels/domains.h"
#include "model/activity/collective.h"
#include "model/device/sensor.h"
#include "model/recording.h"
#include "model/window_sum.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;
using model::ActivityKind;
using model::ActivityProfile;
using model::ActivityRow;
using model::DomainProfile;
using model::Finding;
using model::Measurement;

constexpr std::size_t kMost = 5;
constexpr int kFewestReadings = 10;
constexpr double kNoUse = 0.005;  // of utilisation
constexpr Duration kKept = 2s;    // after the last launch
constexpr double kMuchCpu = 0.3;  // of the machine's energy
constexpr const char* kAboveRest = ": the energy that it added to that at rest";
constexpr double kShortLaunch = 20e-6;  // seconds: about what one costs the host

// A share of readings, with half of its 95 % interval.
struct Share {
  double value = 0;
  double error = 1;

  static Share of(int hits, int all) {
    const double p = static_cast<double>(hits) / all;
    // Agresti and Coull (1998): two more of each kind.
    const double n = all + 4;
    const double centre = (hits + 2) / n;
    return {p, 1.96 * std::sqrt(centre * (1 - centre) / n)};
  }
};

constexpr double kLeastFindingShare = 0.05;

class BoardFindings {
 public:
  BoardFindings(const model::Recording& recording, const model::Profile& profile,
                const DomainProfile& domain, const model::ActivityProfile* activity,
                const BoardLevels& levels, HostTime program_end, std::vector<Finding>& out)
      : recording_(recording),
        profile_(profile),
        domain_(domain),
        activity_(activity),
        levels_(levels),
        program_end_(program_end),
        out_(out) {}

  void add() {
    add_waiting();
    add_limits();
  }

 private:
  template <class Hit>
  std::optional<Share> share_of(std::string_view gauge, Hit hit) const {
    int hits = 0;
    int all = 0;
    for (const auto& r :
         gauge_of(recording_, domain_.domain, gauge, profile_.begin, profile_.end)) {
      ++all;
      hits += hit(r.value);
    }
    return all >= kFewestReadings ? std::optional(Share::of(hits, all)) : std::nullopt;
  }

  void add_finding(const char* code, std::string text, std::string next_step, Measurement energy,
                   bool estimated) {
    const double share = energy.energy.joules() / domain_.energy->energy.joules();
    if (share < kLeastFindingShare || energy.low() <= Energy{}) return;
    out_.push_back({code, domain_.domain.device, std::move(text), std::move(next_step),
                    std::move(energy), share, estimated});
  }

  // For how long a context held the board after the program's last launch: 0 in a part of the work
  // that other launches follow.
  double kept_seconds() const {
    const bool is_part = profile_.end < program_end_;
    for (const auto& trace : recording_.traces) {
      for (const auto& chunk : trace.chunks) {
        const bool later = chunk.end > profile_.end && chunk.begin < program_end_;
        if (is_part && later && is_on(recording_, trace, chunk, domain_.domain)) return 0;
      }
    }
    return seconds(levels_.held_time(activity_->end, profile_.end).value_or(Duration{}));
  }

  // Of the held energy, what is not of processes outside of the command.
  double own_part(Energy held) const {
    if (!domain_.others || held <= Energy{}) return 1;  // it was not divided
    Energy own = domain_.held_unowned.value_or(Energy{});
    for (const auto& p : profile_.processes) {
      for (const auto& share : p.shares) {
        if (share.domain == domain_.domain.id) own += share.held.value_or(Energy{});
      }
    }
    return std::clamp(own.joules() / held.joules(), 0.0, 1.0);
  }

  // A part of a level's energy, whose own 95 % interval is `joules` wide to each side.
  static Measurement part_of(Measurement level, double part, double joules) {
    const auto scaled = [part](Energy energy) { return Energy::joules(part * energy.joules()); };
    level.energy = scaled(level.energy);
    level.offset = scaled(level.offset);
    level.repeatability = Energy::joules(std::hypot(scaled(level.repeatability).joules(), joules));
    level.error = Energy::joules(std::hypot(scaled(level.error).joules(), joules));
    return level;
  }

  // Joules are those of the balance: a part of the held energy, by time. Of a board that others
  // held, too, it is the command's part.
  void add_waiting() {
    auto levels = domain_.levels;
    if (!levels.held_time || !domain_.held_power || *levels.held_time <= Duration{}) return;
    if (!levels.held) return;
    const double own = own_part(levels.held->energy);
    if (own <= 0) return;
    *levels.held = part_of(*levels.held, own, 0);
    const double held = seconds(*levels.held_time);
    const double watts = std::max(levels.held->energy.joules(), 0.0) / held;
    const bool assumed = !domain_.held_power->observed;
    if (activity_ == nullptr) {
      const auto idle =
          share_of(model::gauge::kGpuUtilisation, [](double value) { return value <= kNoUse; });
      if (!idle) return;
      const double length = seconds(profile_.duration());
      // Readings without use outside of the held time are of a board at rest.
      const double waiting = std::max(idle->value * length - (length - held), 0.0);
      add_finding("waiting",
                  fmt::format("a context held the GPU for {:.1f} s while nothing ran, {:.0f} % of "
                              "its time, by readings of utilisation{}",
                              waiting, 100 * waiting / held, kAboveRest),
                  "Record with `jouleprof run --kernels` to learn what it waits for.",
                  part_of(*levels.held, waiting / held, watts * idle->error * length), true);
      return;
    }
    double busy = seconds(activity_->unrecorded);
    for (const auto& p : activity_->by_process) busy += seconds(p.busy);
    const double after = kept_seconds();
    const double kept = after >= seconds(kKept) ? std::min(after, held) : 0.0;
    const double waiting = std::max(held - busy - kept, 0.0);
    const auto launches = static_cast<double>(activity_->launches);
    const bool is_short =
        launches > 0 && activity_->unrecorded == Duration{} && busy / launches < kShortLaunch;
    add_finding(
        "waiting",
        fmt::format(
            "a context held the GPU for {:.1f} s while nothing ran, {:.0f} % of its time{}{}",
            waiting, 100 * waiting / held, kAboveRest,
            is_short
                ? fmt::format("; its launches take {:.1f} us on average", 1e6 * busy / launches)
                : ""),
        is_short
            ? "The host cannot launch faster: use larger batches, CUDA graphs or torch.compile."
            : "Use more data-loading workers or larger batches, or release the GPU.",
        part_of(*levels.held, waiting / held, 0), assumed);
    if (kept > 0) {
      add_finding("context_kept",
                  fmt::format("a context held the GPU for {:.1f} s after the last launch{}", kept,
                              kAboveRest),
                  "End the process, or move what follows into another one.",
                  part_of(*levels.held, kept / held, 0), assumed);
    }
  }

  void add_limits() {
    if (!domain_.levels.active) return;
    const auto& active = *domain_.levels.active;
    const auto add = [&](const char* code, const char* what, const char* next, auto is_limited) {
      const auto share = share_of(model::gauge::kClockEventReasons, [&](double value) {
        return value >= 0 && is_limited(model::ClockReasons::of_gauge(value));
      });
      if (!share || share->value <= share->error) return;
      const double busy_error = share->error * active.energy.joules();
      add_finding(code,
                  fmt::format("{} reduced the clocks in {:.0f} % of the readings", what,
                              100 * share->value),
                  next, part_of(active, share->value, busy_error), true);
    };
    add("power_limit", "the power limit",
        "Find the limit with the least energy: `jouleprof sweep --knob power -- COMMAND`.",
        [](const model::ClockReasons& r) { return r.limited_by_power(); });
    add("thermal_limit", "heat", "Improve the cooling, or lower the power limit.",
        [](const model::ClockReasons& r) { return r.limited_by_heat(); });
  }

  const model::Recording& recording_;
  const model::Profile& profile_;
  const DomainProfile& domain_;
  const model::ActivityProfile* activity_;
  const BoardLevels& levels_;
  HostTime program_end_;
  std::vector<Finding>& out_;
};

// Only where GPUs were measured, too: without them, all energy is the processors'. Nor where one of
// them has no energy: then the share of the processors is unknown.
void add_processors(const model::Profile& profile, std::vector<Finding>& out) {
  Measurement cpu;
  Energy gpu;
  bool estimated = false;
  for (const auto& d : profile.domains) {
    if (!d.domain.visible) continue;
    const bool is_gpu = d.domain.kind == model::DomainKind::kGpu;
    if (is_gpu && !d.domain.parent && !d.energy) return;
    if (!d.energy) continue;
    if (is_gpu) gpu += d.energy->energy;
    if (d.domain.kind != model::DomainKind::kCpu) continue;
    add(cpu, *d.energy);
    estimated = estimated || d.energy->provenance == model::Provenance::kEstimated;
  }
  const double all = (cpu.energy + gpu).joules();
  if (gpu <= Energy{} || cpu.low().joules() < kMuchCpu * all) return;
  out.push_back({"processors", "", "the processors take a large part of the energy",
                 "Look at the process table: fewer busy-waiting threads and workers lower it.", cpu,
                 cpu.energy.joules() / all, estimated});
}

// --- Findings from the energies of kernels and layers ---

constexpr double kManyTimes = 3;  // the median energy per multiply-accumulate
constexpr std::size_t kFewestLayers = 5;

// Errors of rows are added linearly: they share the regression.
struct Sum {
  Measurement energy;
  std::uint64_t launches = 0;
};

template <class Which>
Sum sum_of(const ActivityProfile& activity, Which which) {
  Sum sum;
  for (const auto& row : activity.by_kernel) {
    if (!row.energy || !row.kernel || !which(*row.kernel)) continue;
    add(sum.energy, *row.energy);
    sum.launches += row.launches;
  }
  return sum;
}

double share_of(const ActivityProfile& activity, Energy energy) {
  const Energy all = activity.measured.energy;
  return all > Energy{} ? energy.joules() / all.joules() : 0.0;
}

void add(const ActivityProfile& activity, const char* code, const Sum& sum, std::string text,
         const char* next_step, std::vector<model::Finding>& out) {
  const double share = share_of(activity, sum.energy.energy);
  if (share < kLeastFindingShare || sum.energy.low() <= Energy{}) return;
  out.push_back(
      {code, activity.domain.device, std::move(text), next_step, sum.energy, share, false});
}

// Energy per multiply-accumulate of leaf layers that were resolved.
void add_layer(const ActivityProfile& activity, std::vector<model::Finding>& out) {
  struct Cost {
    const ActivityRow* row;
    double joules;  // of one multiply-accumulate
  };
  std::vector<Cost> costs;
  for (const auto& row : activity.by_layer) {
    if (!row.energy || !row.macs || *row.macs <= 0 || row.count == 0 || !row.resolvable) continue;
    const double macs = *row.macs * static_cast<double>(row.count);
    costs.push_back({&row, row.energy->energy.joules() / macs});
  }
  if (costs.size() < kFewestLayers) return;
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end(),
                   [](const Cost& a, const Cost& b) { return a.joules < b.joules; });
  const double median = middle->joules;
  for (const Cost& cost : costs) {
    const auto& m = *cost.row->energy;
    const double times = cost.joules / median;
    const double least = times * m.low().joules() / std::max(m.energy.joules(), 1e-12);
    if (median <= 0 || least < kManyTimes) continue;
    add(activity, "layer", {m, cost.row->launches},
        fmt::format("layer {} takes {:.1f} times the energy per multiply-accumulate of the median "
                    "layer",
                    cost.row->name, times),
        "Look at its shapes and data type: small or unaligned sizes and 32-bit floats keep tensor "
        "cores idle.",
        out);
  }
}

// Of ranks on this GPU.
void add_waiting_ranks(const ActivityProfile& activity, const model::CollectiveProfile& collectives,
                       std::vector<model::Finding>& out) {
  Sum waiting;
  Sum rest;
  Duration waited{};
  for (const auto& rank : collectives.ranks) {
    if (rank.domain != activity.domain.id || !rank.waiting_energy) continue;
    waiting.launches += rank.matched;
    add(waiting.energy, *rank.waiting_energy);
    waited += rank.waiting;
    rest.launches += rank.calls;
    for (const auto* part : {&*rank.transfer_energy, &*rank.unsplit_energy}) {
      add(rest.energy, *part);
    }
  }
  const auto* straggler = collectives.straggler();
  add(activity, "collective_waiting", waiting,
      fmt::format("{} collectives waited {:.1f} s for slower ranks{}", waiting.launches,
                  seconds(waited),
                  straggler != nullptr && straggler->rank.global
                      ? fmt::format(", longest for rank {}", *straggler->rank.global)
                      : ""),
      "Balance the ranks' batches and data loading; `report --by collective` has the times.", out);
  add(activity, "collectives", rest, fmt::format("{} collectives transferred data", rest.launches),
      "Overlap communication with computation, and use larger buckets.", out);
}

void add_collectives(const ActivityProfile& activity, const model::CollectiveProfile* collectives,
                     std::vector<model::Finding>& out) {
  if (collectives != nullptr && collectives->has_split()) {
    return add_waiting_ranks(activity, *collectives, out);
  }
  const Sum sum = sum_of(activity, [](const auto& k) {
    return k.kind == ActivityKind::kKernel && !model::collective_kind(k.name).empty();
  });
  add(activity, "collectives", sum,
      fmt::format("{} kernels of collectives communicated, or waited for the slowest rank",
                  sum.launches),
      "Compare the ranks with `report --by layer`: balance their batches, and overlap "
      "communication with computation.",
      out);
}

// Of the launches of one GPU.
void add_kernel_findings(const ActivityProfile& activity,
                         const model::CollectiveProfile* collectives,
                         std::vector<model::Finding>& out) {
  const Sum copies =
      sum_of(activity, [](const auto& k) { return k.kind == ActivityKind::kMemcpy; });
  add(activity, "copies", copies,
      fmt::format("{} memory copies took energy above idle", copies.launches),
      "Keep tensors on the GPU; copy from pinned memory, in larger pieces, while kernels run.",
      out);
  add_collectives(activity, collectives, out);
  add_layer(activity, out);
}

}  // namespace

std::vector<Finding> findings_of(const model::Recording& recording, const model::Profile& profile,
                                 std::span<const model::ActivityProfile> activity,
                                 std::span<const BoardLevels> levels, HostTime program_end,
                                 const model::CollectiveProfile* collectives) {
  std::vector<Finding> out;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto& d = profile.domains[i];
    if (d.domain.kind != model::DomainKind::kGpu || !d.energy || d.energy->energy <= Energy{} ||
        !d.domain.visible) {
      continue;
    }
    const auto traced =
        std::ranges::find_if(activity, [&](const auto& a) { return a.domain.id == d.domain.id; });
    BoardFindings(recording, profile, d, traced == activity.end() ? nullptr : &*traced, levels[i],
                  program_end, out)
        .add();
    if (traced != activity.end()) add_kernel_findings(*traced, collectives, out);
  }
  add_processors(profile, out);
  std::ranges::stable_sort(
      out, [](const Finding& a, const Finding& b) { return a.energy.energy > b.energy.energy; });
  if (out.size() > kMost) out.resize(kMost);
  return out;
}

}  // namespace jouleprof::analysis
