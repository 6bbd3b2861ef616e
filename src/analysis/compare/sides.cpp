#include "analysis/compare/sides.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "model/device/sensor.h"
#include "model/recording.h"

namespace jouleprof::analysis {
namespace {

constexpr Duration kLongestPause = std::chrono::hours{1};

struct Placed {
  const RunFigures* run;
  bool is_before;
  std::size_t place;
};

bool is_joined(const Placed& a, const Placed& b) {
  return a.is_before == b.is_before && a.run->host == b.run->host &&
         a.run->boot_id == b.run->boot_id &&
         *b.run->started - (*a.run->started + a.run->length) <= kLongestPause;
}

std::vector<std::size_t> all_of(const std::vector<RunFigures>& runs) {
  std::vector<std::size_t> places(runs.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

}  // namespace

Blocks blocks_of(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after) {
  std::vector<Placed> placed;
  for (const auto* side : {&before, &after}) {
    for (std::size_t i = 0; i < side->size(); ++i) {
      placed.push_back({&(*side)[i], side == &before, i});
    }
  }
  const auto is_timed = [](const Placed& p) { return p.run->started.has_value(); };
  if (!std::ranges::all_of(placed, is_timed)) {
    return {{all_of(before)}, {all_of(after)}};
  }
  std::ranges::stable_sort(
      placed, [](const Placed& a, const Placed& b) { return *a.run->started < *b.run->started; });
  Blocks blocks;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    auto& list = placed[i].is_before ? blocks.before : blocks.after;
    if (i == 0 || !is_joined(placed[i - 1], placed[i])) list.emplace_back();
    list.back().push_back(placed[i].place);
  }
  return blocks;
}

std::vector<double> block_means(const std::vector<std::vector<std::size_t>>& blocks,
                                const std::vector<double>& values) {
  std::vector<double> means;
  for (const auto& block : blocks) {
    double sum = 0;
    for (const std::size_t place : block) sum += values.at(place);
    means.push_back(sum / static_cast<double>(block.size()));
  }
  return means;
}

namespace {

using Key = std::pair<std::string, std::string>;  // name and detail

const FigureRow* find(const RunFigures& run, const Key& key) {
  for (const auto& row : run.rows) {
    if (row.name == key.first && row.detail == key.second) return &row;
  }
  return nullptr;
}

bool any_has(const std::vector<RunFigures>& runs, const Key& key) {
  return std::ranges::any_of(runs,
                             [&](const RunFigures& run) { return find(run, key) != nullptr; });
}

// A layer's detail is "Type [shapes]". The place where its shapes begin; npos: it is no layer's.
std::size_t shapes_in(const std::string& detail) { return detail.find(" ["); }

void pair_replaced(RowPairs& out) {
  std::map<Key, std::vector<const UnmatchedRow*>> places;
  for (const auto& each : out.unmatched) {
    const std::size_t shapes = shapes_in(each.row.detail);
    if (shapes == std::string::npos) continue;
    places[{each.row.name, each.row.detail.substr(shapes)}].push_back(&each);
  }
  std::set<Key> paired;
  for (const auto& [place, sides] : places) {
    if (sides.size() != 2 || sides[0]->before == sides[1]->before) continue;
    const FigureRow& before = (sides[0]->before ? sides[0] : sides[1])->row;
    const FigureRow& after = (sides[0]->before ? sides[1] : sides[0])->row;
    const std::string type = before.detail.substr(0, shapes_in(before.detail));
    out.pairs.push_back({before.name, type + " -> " + after.detail, before.detail, after.detail});
    paired.insert({{before.name, before.detail}, {after.name, after.detail}});
  }
  const auto is_paired = [&](const UnmatchedRow& each) {
    return paired.count({each.row.name, each.row.detail}) > 0;
  };
  out.unmatched.erase(std::remove_if(out.unmatched.begin(), out.unmatched.end(), is_paired),
                      out.unmatched.end());
}

}  // namespace

Figure RowPair::energy_in(const RunFigures& run) const {
  const FigureRow* found = find(run, {name, detail_before});
  if (!found) found = find(run, {name, detail_after});
  return found ? found->energy : Figure{{}, 0, {}, false, "absent"};
}

RowPairs pair_rows(const std::vector<RunFigures>& before, const std::vector<RunFigures>& after) {
  RowPairs out;
  std::set<Key> seen;
  for (const auto* side : {&before, &after}) {
    const auto& other = side == &before ? after : before;
    for (const auto& run : *side) {
      for (const auto& row : run.rows) {
        const Key key{row.name, row.detail};
        if (!seen.insert(key).second) continue;
        if (any_has(other, key)) {
          out.pairs.push_back({row.name, row.detail, row.detail, row.detail});
        } else {
          out.unmatched.push_back({side == &before, row});
        }
      }
    }
  }
  pair_replaced(out);
  return out;
}

namespace {

using Runs = std::vector<RunFigures>;

constexpr std::string_view kCallsOf = "calls of ";
constexpr double kSameWork = 0.001;  // ratio
constexpr double kSameLimit = 1;     // W
constexpr double kSameClock = 0.02;  // ratio
constexpr double kSameCelsius = 5;   // K
constexpr double kMostHeat = 0.02;   // share of the readings

// The mean over the runs that have it.
std::optional<double> mean_of(const Runs& runs,
                              const std::function<std::optional<double>(const RunFigures&)>& of) {
  double sum = 0;
  int count = 0;
  for (const auto& run : runs) {
    if (const auto value = of(run)) {
      sum += *value;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

class Checks {
 public:
  Checks(const Runs& before, const Runs& after) : before_(before), after_(after) {}

  std::vector<Condition> all() {
    check_each();
    check_domains();
    check_work();
    check_limits();
    check_state();
    return std::move(found_);
  }

 private:
  template <typename... Values>
  void add(bool blocks, const char* code, fmt::format_string<Values...> text, Values&&... values) {
    found_.push_back({code, fmt::format(text, std::forward<Values>(values)...), blocks});
  }

  void check_each() {
    bool simulated = false;
    std::set<bool> traced;
    for (const Runs* side : {&before_, &after_}) {
      for (const auto& run : *side) {
        const auto& c = run.conditions;
        if (c.exit_status.value_or(0) != 0) {
          add(true, "failed_run", "{} ended with status {}", run.name, *c.exit_status);
        }
        if (!c.complete) add(true, "cut_off", "{} was cut off before its end", run.name);
        simulated = simulated || c.simulated;
        traced.insert(c.traced);
      }
    }
    if (traced.size() > 1) {
      add(true, "tracing_differs", "kernels or layers of some runs were traced, which costs time");
    }
    if (simulated) add(false, "simulated", "the energies are of a simulated device");
  }

  void check_domains() {
    std::set<std::vector<std::string>> labels;
    std::set<bool> of_command;
    std::set<std::string> boots[2];
    for (const Runs* side : {&before_, &after_}) {
      for (const auto& run : *side) {
        auto& list = boots[side == &after_ ? 1 : 0];
        list.insert(run.boot_id);
        of_command.insert(run.is_command);
        std::vector<std::string> own;
        for (const auto& [label, identity] : run.boards) own.push_back(label);
        labels.insert(std::move(own));
      }
    }
    if (of_command.size() > 1) {
      add(true, "scope_differs",
          "the energies are of the command in one run and of whole devices in another: compare "
          "both with --whole-machine");
    }
    if (labels.size() > 1) {
      add(true, "domains_differ", "the energies are of {} in one run and of {} in another",
          fmt::join(*labels.begin(), " and "), fmt::join(*labels.rbegin(), " and "));
    } else if (!is_same_board(before_, after_)) {
      add(false, "board_differs",
          "the runs used different boards, or do not say which: the calibration error of their "
          "sensors does not cancel");
    }
    if (boots[0] != boots[1]) {
      add(false, "boot_differs",
          "the machine or its boot differs, so that the driver may differ, too");
    }
  }

  void check_work() {
    std::set<std::string> names;
    for (const Runs* side : {&before_, &after_}) {
      for (const auto& run : *side) {
        for (const auto& [name, count] : run.conditions.work) names.insert(name);
      }
    }
    for (const auto& name : names) {
      const auto count = [&](const RunFigures& run) -> std::optional<double> {
        const auto it = run.conditions.work.find(name);
        return it == run.conditions.work.end() ? 0 : it->second;
      };
      const double a = *mean_of(before_, count);
      const double b = *mean_of(after_, count);
      if (std::abs(a - b) <= kSameWork * std::max(a, b)) continue;
      // A model of one side only may have another name there, and a window that is not within the
      // compared ones may be left out of one side.
      const bool is_one_sided = a == 0 || b == 0;
      const bool blocks =
          !is_one_sided || !(before_.front().conditions.per_unit || name.starts_with(kCallsOf));
      add(blocks, "work_differs", "{}: {:g} before, {:g} after", name, a, b);
    }
  }

  void check_limits() {
    std::set<std::string> devices;
    for (const auto& run : before_) {
      for (const auto& [device, watts] : run.conditions.power_limits) devices.insert(device);
    }
    for (const auto& device : devices) {
      const auto watts = [&](const RunFigures& run) -> std::optional<double> {
        const auto it = run.conditions.power_limits.find(device);
        return it == run.conditions.power_limits.end() ? std::nullopt : std::optional(it->second);
      };
      const auto a = mean_of(before_, watts);
      const auto b = mean_of(after_, watts);
      if (a && b && std::abs(*a - *b) > kSameLimit) {
        add(true, "limit_differs", "the power limit of {} was {:g} W before and {:g} W after",
            device, *a, *b);
      }
    }
  }

  void check_state() {
    const auto clock = [](const RunFigures& run) { return run.conditions.sm_megahertz; };
    const auto celsius = [](const RunFigures& run) { return run.conditions.start_celsius; };
    const auto heat = [](const RunFigures& run) { return run.conditions.limited_by_heat; };
    const auto clocks = std::pair(mean_of(before_, clock), mean_of(after_, clock));
    if (clocks.first && clocks.second &&
        std::abs(*clocks.first - *clocks.second) > kSameClock * *clocks.first) {
      add(false, "clock_differs", "the mean SM clock was {:.0f} MHz before and {:.0f} MHz after",
          *clocks.first, *clocks.second);
    }
    const auto degrees = std::pair(mean_of(before_, celsius), mean_of(after_, celsius));
    if (degrees.first && degrees.second &&
        std::abs(*degrees.first - *degrees.second) > kSameCelsius) {
      add(false, "temperature_differs", "GPUs began at {:.0f} C before and at {:.0f} C after",
          *degrees.first, *degrees.second);
    }
    for (const bool first : {true, false}) {
      const auto share = mean_of(first ? before_ : after_, heat);
      if (share && *share > kMostHeat) {
        add(false, "slowed_by_heat", "heat lowered the clocks in {:.0f} % of the readings {}",
            100 * *share, first ? "before" : "after");
      }
    }
  }

  const Runs& before_;
  const Runs& after_;
  std::vector<Condition> found_;
};

}  // namespace

std::vector<Condition> conditions_between(const Runs& before, const Runs& after) {
  return Checks(before, after).all();
}

bool is_same_board(const Runs& before, const Runs& after) {
  const auto same = [&](const RunFigures& run) { return run.boards == before.front().boards; };
  return std::ranges::all_of(before, same) && std::ranges::all_of(after, same);
}

namespace {

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ > 0 ? std::optional(sum_ / static_cast<double>(count_)) : std::nullopt;
  }

 private:
  double sum_ = 0;
  std::size_t count_ = 0;
};

void read_gauges(const model::Recording& recording, const PartSpan& span, Conditions& out) {
  Mean clock;
  Mean heat;
  for (const auto& gpu : recording.domains) {
    if (gpu.kind != model::DomainKind::kGpu || gpu.parent || !gpu.visible) continue;
    const auto readings = [&](std::string_view name) {
      return gauge_of(recording, gpu, name, span.begin, span.end);
    };
    for (const auto& r : readings(model::gauge::kSmClock)) clock.add(r.value * 1e-6);
    for (const auto& r : readings(model::gauge::kClockEventReasons)) {
      heat.add(model::ClockReasons::of_gauge(r.value).limited_by_heat() ? 1 : 0);
    }
    Mean limit;
    for (const auto& r : readings(model::gauge::kPowerLimit)) limit.add(r.value);
    if (const auto watts = limit.value()) out.power_limits[gpu.device] = *watts;
    const auto celsius = readings(model::gauge::kTemperature);
    if (!celsius.empty()) {
      const double first = celsius.front().value;
      out.start_celsius = std::max(out.start_celsius.value_or(first), first);
    }
  }
  out.sm_megahertz = clock.value();
  out.limited_by_heat = heat.value();
}

}  // namespace

Conditions conditions_of(const Run& run, const model::Profile& profile,
                         const std::vector<model::ActivityProfile>& activity) {
  Conditions out;
  if (const auto span = run.span()) read_gauges(run.recording(), *span, out);
  out.exit_status = profile.run.exit_status;
  out.complete = profile.run.complete;
  out.simulated = profile.simulated;
  out.traced = !run.recording().traces.empty();
  for (const auto& group : profile.windows) {
    if (!group.imported) out.work["windows " + group.name] += static_cast<double>(group.count);
  }
  for (const auto& device : activity) {
    for (const auto& row : device.by_layer) {
      const bool is_model = row.parent == model::kNone && row.count > 0;
      if (is_model) out.work[std::string(kCallsOf) + row.name] += static_cast<double>(row.count);
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
