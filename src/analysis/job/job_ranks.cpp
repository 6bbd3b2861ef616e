#include "analysis/job/job_ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/job/job_sums.h"
#include "base/text.h"

namespace jouleprof::analysis {
namespace {

constexpr std::uint32_t kMostRanks = 1'000'000;  // more are no numbers of a launcher
constexpr std::size_t kShownRanges = 8;
constexpr std::size_t kShownMachines = 3;
// Launchers start the ranks of a job within seconds, and wait minutes for some to connect.
constexpr double kClocksApart = 60;
// Slurm's numbers of steps that are no step of tasks: batch, extern and the like.
constexpr std::int64_t kFirstSpecialStep = 4'294'967'280;

// "0-3, 7": of ascending numbers.
std::string ranges_text(const std::vector<std::uint32_t>& numbers) {
  std::vector<std::string> ranges;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < numbers.size() && ranges.size() < kShownRanges;) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(last == i ? fmt::format("{}", numbers[i])
                               : fmt::format("{}-{}", numbers[i], numbers[last]));
    i = shown = last + 1;
  }
  std::string text = fmt::format("{}", fmt::join(ranges, ", "));
  if (shown < numbers.size()) text += fmt::format(" and {} more", numbers.size() - shown);
  return text;
}

std::string name_of(const RankGroup& group) {
  std::string text = group.launcher.empty() ? "unknown launcher" : group.launcher;
  if (!group.job.empty()) text += ", job " + group.job;
  if (!group.step.empty()) text += ", step " + group.step;
  return text;
}

// A process of several that a launcher numbered. A batch script has the variables of a task without
// being one of several.
bool is_of_several(const model::Rank& rank) {
  const auto world = rank.world_size.value_or(1);
  if (!rank.global || world < 2 || world > kMostRanks) return false;
  if (rank.launcher != "slurm") return true;
  const auto step = parse_integer(rank.step);
  return step && *step < kFirstSpecialStep;
}

}  // namespace

std::size_t RankCensus::machine_of(const model::RunInfo& run) {
  const auto is_same = [&](const auto& machine) {
    return machine.second == run.boot_id && (!run.boot_id.empty() || machine.first == run.host);
  };
  const auto known = std::ranges::find_if(machines_, is_same);
  if (known != machines_.end()) return static_cast<std::size_t>(known - machines_.begin());
  machines_.emplace_back(run.host, run.boot_id);
  return machines_.size() - 1;
}

void RankCensus::add(const std::string& name, const model::Recording& recording) {
  const auto& run = recording.run;
  Times times;
  times.begin = run.work_begin.value_or(HostTime{});
  times.end = run.work_end.value_or(times.begin);
  if (run.work_begin && run.work_end && !recording.clock_points.empty()) {
    const ClockMap clock(recording.clock_points);
    times.real_begin = clock.to_real(times.begin);
    times.real_end = clock.to_real(times.end);
  }
  std::map<Key, std::set<std::uint32_t>> found;
  const auto note = [&](const model::Rank& rank) {
    if (!is_of_several(rank)) return;
    found[{rank.launcher, rank.job, rank.step, *rank.world_size}].insert(*rank.global);
  };
  note(run.rank);
  for (const auto& process : recording.processes) note(process.rank);
  for (const auto& trace : recording.traces) note(trace.rank);
  if (found.empty()) return;
  const std::size_t machine = machine_of(run);
  for (const auto& [key, numbers] : found) {
    for (const auto number : numbers) groups_[key][number].push_back({machine, name, times});
  }
}

std::vector<std::string> RankCensus::machine_names() const {
  const auto distinct = distinct_names(machines_);
  std::vector<std::string> names;
  for (const auto& [name, boot] : machines_) {
    const auto known = distinct.find(boot);
    names.push_back(known == distinct.end() ? name : known->second);
  }
  return names;
}

RankCensus::Found RankCensus::finish(const std::set<std::string>& aligned) const {
  Found out;
  const auto names = machine_names();
  for (const auto& [key, ranks] : groups_) {
    RankGroup group;
    std::tie(group.launcher, group.job, group.step, group.world_size) = key;
    for (std::uint32_t number = 0; number < group.world_size; ++number) {
      if (ranks.count(number) == 0) group.missing.push_back(number);
    }
    group.present = group.world_size - group.missing.size();
    for (const auto& [number, seen] : ranks) {
      const bool is_repeated = std::ranges::any_of(seen, [&s = seen](const Seen& a) {
        return std::ranges::any_of(s, [&](const Seen& b) {
          if (&a == &b) return false;
          return a.machine != b.machine ||
                 (a.times.begin < b.times.end && b.times.begin < a.times.end);
        });
      });
      if (is_repeated) group.repeated.push_back(number);
    }
    if (!group.is_whole()) {
      out.warnings.push_back(fmt::format(
          "{} of {} ranks ({}) are in the recordings. Missing: {}. Energy of machines that only "
          "they used is not in the total.",
          group.present, group.world_size, name_of(group), ranges_text(group.missing)));
    }
    if (!group.repeated.empty()) out.warnings.push_back(repeated_text(group, ranks, names));
    auto clocks = clocks_text(group, ranks, names, aligned);
    if (!clocks.empty()) out.warnings.push_back(std::move(clocks));
    out.groups.push_back(std::move(group));
  }
  std::ranges::stable_sort(out.groups, std::ranges::greater{}, &RankGroup::world_size);
  return out;
}

std::string RankCensus::repeated_text(const RankGroup& group, const Ranks& ranks,
                                      const std::vector<std::string>& names) const {
  std::vector<std::string> places;
  for (const auto& seen : ranks.at(group.repeated.front())) {
    if (places.size() == kShownMachines) break;
    places.push_back(fmt::format("{} of {}", seen.name, names[seen.machine]));
  }
  return fmt::format(
      "{} {} of {} ({}) {} in several recordings, such as {}. These are recordings of several "
      "runs, "
      "or of processes with one number.",
      group.repeated.size() == 1 ? "rank" : "ranks", ranges_text(group.repeated), group.world_size,
      name_of(group), group.repeated.size() == 1 ? "is" : "are", fmt::join(places, " and "));
}

// Ranks of one step begin and end together. A machine that does both later has another time of day.
std::string RankCensus::clocks_text(const RankGroup& group, const Ranks& ranks,
                                    const std::vector<std::string>& names,
                                    const std::set<std::string>& aligned) const {
  // Without a number of the job, recordings that have a rank twice are of several runs.
  if (group.step.empty() && !group.repeated.empty()) return {};
  struct Span {
    RealTime begin = RealTime::max();
    RealTime end = RealTime::min();
  };
  std::map<std::size_t, Span> spans;
  for (const auto& [number, all] : ranks) {
    for (const auto& seen : all) {
      if (!seen.times.real_begin || aligned.count(machines_[seen.machine].second) > 0) continue;
      auto& span = spans[seen.machine];
      span.begin = std::min(span.begin, *seen.times.real_begin);
      span.end = std::max(span.end, *seen.times.real_end);
    }
  }
  if (spans.size() < 2) return {};
  std::vector<std::pair<Span, std::size_t>> sorted;
  for (const auto& [machine, span] : spans) sorted.emplace_back(span, machine);
  std::ranges::sort(sorted,
                    [](const auto& a, const auto& b) { return a.first.begin < b.first.begin; });
  const auto& [middle, reference] = sorted[(sorted.size() - 1) / 2];
  std::vector<std::string> apart;
  std::size_t count = 0;
  for (const auto& [span, machine] : sorted) {
    const double begins = seconds(span.begin - middle.begin);
    const double ends = seconds(span.end - middle.end);
    const bool is_one_way = (begins > 0) == (ends > 0);
    if (!is_one_way || std::min(std::abs(begins), std::abs(ends)) < kClocksApart) continue;
    if (++count > kShownMachines) continue;
    apart.push_back(fmt::format("{} began {:.0f} s and ended {:.0f} s {} {}", names[machine],
                                std::abs(begins), std::abs(ends), begins > 0 ? "after" : "before",
                                names[reference]));
  }
  if (count == 0) return {};
  std::string all = fmt::format("{}", fmt::join(apart, "; "));
  if (count > apart.size()) all += fmt::format("; {} more machines", count - apart.size());
  return fmt::format(
      "by their wall clocks, {} ({}). Ranks run at the same time: check the clocks. Elapsed time "
      "is wrong by as much; energies do not depend on it.",
      all, name_of(group));
}

}  // namespace jouleprof::analysis
