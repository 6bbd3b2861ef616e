#include "analysis/profile_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "analysis/activity/replay_time.h"
#include "analysis/energy_split.h"
#include "analysis/findings/findings.h"
#include "analysis/levels/domains.h"
#include "analysis/processes/processes.h"
#include "analysis/processes/recorded_use.h"
#include "analysis/recording_checks.h"
#include "analysis/timeline/locked_load.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/timeline/timeline.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr double kLeastDoubt = 0.005;  // of the energy, that a locked load adds

class ProfileBuilder {
 public:
  explicit ProfileBuilder(const ProfileInput& input)
      : input_(input),
        recording_(input.recording),
        timelines_(input.timelines),
        work_(input.work),
        begin_(input.begin),
        end_(input.end),
        processes_(input.recording, input.begin, input.end) {}

  model::Profile build() {
    profile_.run = recording_.run;
    profile_.begin = begin_;
    profile_.end = end_;
    if (!recording_.clock_points.empty()) {
      profile_.start_time = ClockMap(recording_.clock_points).to_real(begin_);
    }
    profile_.overhead = recording_.overhead;
    profile_.simulated = model::is_simulated(recording_);
    profile_.command_reason = no_command_reason(recording_);
    for (auto& text : recording_warnings(recording_, begin_, end_)) warn(std::move(text));
    add_process_list();
    for (std::size_t i = 0; i < recording_.domains.size(); ++i) {
      profile_.domains.push_back(domain_profile(i));
    }
    widen_by_socket(profile_.domains);
    finish_processes();
    for (auto& text : replay_warnings(recording_, timelines_, begin_, end_, work_.end)) {
      warn(std::move(text));
    }
    if (input_.slicer) {
      processes_.each_cpu_time([this](HostTime a, HostTime b, std::size_t process, Duration time) {
        input_.slicer->add_cpu_time(process, a, b, time);
      });
    }
    profile_.windows = window_groups(recording_, timelines_, input_.levels, input_.common, part());
    profile_.findings = findings_of(recording_, profile_, input_.activity, input_.levels,
                                    work_.program_end, input_.collectives);
    return std::move(profile_);
  }

 private:
  void warn(std::string text) {
    auto& all = profile_.warnings;
    if (std::ranges::find(all, text) == all.end()) all.push_back(std::move(text));
  }

  // The requested part of the work; absent: all of it.
  std::optional<RecordedSpan> part() const {
    if (begin_ == work_.begin && end_ == work_.program_end) return std::nullopt;
    return RecordedSpan{begin_, end_};
  }

  model::DomainProfile domain_profile(std::size_t index) {
    const model::Domain& domain = recording_.domains[index];
    auto& known = timelines_[index];
    model::DomainProfile out;
    out.domain = domain;
    if (!known) {
      out.reason = unavailable_reason(recording_, domain);
      if (!part()) add_reported(out);
      return out;
    }
    EnergyTimeline& timeline = *known;
    const auto energy = timeline.energy(begin_, end_);
    if (!energy) {
      out.reason = why_short(timeline, domain, energy, out.least);
      warn(fmt::format("{}: {}", label_of(domain), out.reason));
      return out;
    }
    out.reason =
        why_no_wall(recording_, timelines_, index, {begin_, end_}, {work_.begin, work_.end});
    if (!out.reason.empty()) {
      warn(fmt::format("{}: {}", label_of(domain), out.reason));
      return out;
    }
    out.energy = *energy;
    if (const auto late = late_wall(recording_, timelines_, index, {work_.begin, work_.end})) {
      widen(*out.energy, late->error);
      warn(fmt::format(
          "{}: the meter showed less than the sensors of the machine's parts for {:.1f} "
          "s: it is late, or the mean of a longer time; {:.4g} J are in the interval "
          "for that. mean=TIME of --wall-meter says how long its mean is",
          label_of(domain), seconds(late->late), late->error.joules()));
    }
    add_sampling_error(out, timeline, index);
    const double length = seconds(end_ - begin_);
    if (length > 0) out.mean_power = energy->energy / (end_ - begin_);
    if (const auto peak = timeline.peak(begin_, end_)) {
      out.peak_power = peak->power;
      out.peak_window = peak->window;
    }
    out.balance.counter = timeline.counter_only(begin_, end_);
    out.balance.integral = timeline.samples_only(begin_, end_);
    if (index < input_.levels.size()) {
      const Energy processes = add_levels(out, timeline, input_.levels[index]);
      out.command = command_energy(recording_, out, processes, input_.levels[index]);
    }
    check(out, timeline);
    return out;
  }

  void add_reported(model::DomainProfile& out) {
    const auto& windows = recording_.imported_windows;
    if (windows.empty()) return;
    const auto sum = reported_energy(windows, out.domain.id);
    if (!sum) {
      out.reason += "; " + sum.error().message;
      return;
    }
    out.reported = sum->energy;
    out.reported_lacks_windows = sum->lacking > 0;
    if (sum->within == 0) return;
    warn(fmt::format("{}: {} of {} windows lie{} within others, and {} energy is not added again",
                     label_of(out.domain), sum->within, sum->within + sum->windows,
                     sum->within == 1 ? "s" : "", sum->within == 1 ? "its" : "their"));
  }

  // Of a load that is locked to the sensor's samples.
  void add_sampling_error(model::DomainProfile& out, EnergyTimeline& timeline, std::size_t index) {
    if (out.domain.kind != model::DomainKind::kGpu || out.domain.parent) return;
    for (const auto& activity : input_.activity) {
      if (activity.domain.id != out.domain.id) continue;
      // By as much as attribution found for the same.
      const auto alone = timeline.energy(activity.begin, activity.end);
      if (!alone || activity.replay_time > Duration{}) return;
      const double more = std::pow(activity.measured.repeatability.joules(), 2) -
                          std::pow(alone->repeatability.joules(), 2);
      const double least = std::pow(kLeastDoubt * out.energy->energy.joules(), 2);
      if (more > least) widen(*out.energy, Energy::joules(std::sqrt(more)));
      return;
    }
    const bool known = index < input_.levels.size() && input_.levels[index].rest;
    const double rest = known ? input_.levels[index].rest->power.watts() : 0.0;
    const auto lock = suspected_lock(recording_, out.domain, timeline, begin_, end_, rest);
    if (!lock) return;
    const double active =
        std::max(out.energy->energy.joules() - rest * seconds(end_ - begin_), 0.0);
    const Energy error = Energy::joules(lock->error * active);
    widen(*out.energy, error);
    warn(fmt::format(
        "{}: {}, so the energy is uncertain by {:.3g} J: a sensor whose samples are {:.0f} ms "
        "apart "
        "may see the same phase of each. `run --kernels` shows which; a period that varies by a "
        "millisecond is measured right",
        label_of(out.domain),
        lock->by_windows
            ? fmt::format("windows begin every {:.2f} ms, at a rate that the samples divide",
                          1e3 * lock->period)
            : fmt::format(
                  "power hardly varies although the GPU was busy for a part of the time, as "
                  "where work repeats every {:.0f} ms or a part of that",
                  1e3 * lock->period),
        error.joules(), 1e3 * seconds(*timeline.sensors().power->traits.refresh)));
  }

  std::string why_short(EnergyTimeline& timeline, const model::Domain& domain,
                        const Result<model::Measurement>& energy,
                        std::optional<model::Measurement>& least) const {
    const Error& error = energy.error();
    const auto extent = timeline.extent();
    const bool ends = extent && extent->end < end_;
    const HostTime since = ends ? extent->end - 5s : begin_;
    std::string cause;
    for (const auto& f : recording_.readings.failures) {
      for (const auto& s : recording_.sensors) {
        const bool of_power = s.id == f.sensor && s.domain == domain.id &&
                              s.kind != model::SensorKind::kGauge && f.at >= since && f.at <= end_;
        if (of_power && cause.empty()) cause = f.error.message;
      }
    }
    std::string amount;
    const HostTime from = extent ? std::max(begin_, extent->begin) : begin_;
    const HostTime to = ends ? extent->end : end_;
    if (extent && from >= to) {
      least.emplace();  // a part without readings has no upper bound either
      least->provenance = model::Provenance::kUnavailable;
    } else if (const auto known = from > begin_ || ends ? timeline.energy(from, to) : energy) {
      least = *known;
      amount = fmt::format("{} {:.3f} J", ends ? ", after" : ", and show", known->energy.joules());
    }
    if (!ends && !least) return error.message + (cause.empty() ? "" : "; a read failed: " + cause);
    const double at = work_.seconds_of(ends ? to : extent->begin);
    return fmt::format("its readings {} {:.1f} s {} the work began{}{}{}", ends ? "end" : "begin",
                       std::abs(at), at < 0 ? "before" : "after", amount, cause.empty() ? "" : ": ",
                       cause);
  }

  // The energy of the command's processes.
  Energy add_levels(model::DomainProfile& out, EnergyTimeline& timeline,
                    const BoardLevels& levels) {
    for (const auto& text : levels.warnings) warn(text);
    out.levels = levels.split(*out.energy, begin_, end_);
    out.rest_power = levels.rest;
    out.held_power = levels.held;
    const auto& parts = out.levels;
    if (parts.active && parts.active->high() == Energy{}) {
      warn(
          fmt::format("{}: its power was lower than the idle power that was learnt, by {:.3f} J in "
                      "all; its levels cannot be trusted",
                      label_of(out.domain), -parts.active->energy.joules()));
    }
    const auto split = DomainSplitter(input_, processes_).split(out, timeline, levels);
    return split ? add_split(out, *split) : Energy{};
  }

  Energy add_split(model::DomainProfile& out, const TracedSplit& split) {
    out.others = split.others;
    if (out.levels.rest && out.levels.held) out.held_unowned = split.held_unowned;
    out.within_command = split.within_command;
    out.unattributed = split.unattributed;
    const bool has_command = no_command_reason(recording_).empty();
    if (has_command) out.command_bounds = split.command_bounds;
    Energy parts = out.idle_part.value_or(Energy{}) + split.within_command + split.others +
                   split.held_unowned + split.unattributed;
    Energy own = split.within_command;
    for (std::size_t i = 0; i < split.shares.size(); ++i) {
      if (!split.shares[i]) continue;
      parts += split.shares[i]->energy;
      if (place_[i] < 0) continue;
      own += split.shares[i]->energy;
      profile_.processes[static_cast<std::size_t>(place_[i])].shares.push_back(*split.shares[i]);
    }
    out.balance.parts = parts;
    if (has_command && split.contested > Energy{} &&
        200 * split.contested.microjoules() > out.energy->energy.microjoules()) {
      warn(fmt::format(
          "{}: for {:.3g} s processes of the command and others can both have used it, and no "
          "list, utilisation or CPU time separates them; {:.4g} J of that time are unattributed",
          label_of(out.domain), seconds(split.contested_time), split.contested.joules()));
    }
    return own;
  }

  void check(const model::DomainProfile& out, EnergyTimeline& timeline) {
    const std::string device = label_of(out.domain);
    const Duration length = end_ - begin_;
    for (const Note& note : timeline.notes()) {
      if (note.last < begin_ - 1s || note.at > end_ + 1s) continue;
      if (note.last == HostTime::max()) {
        warn(fmt::format("{}: {}", device, note.text));
        continue;
      }
      const double first = work_.seconds_of(note.at), last = work_.seconds_of(note.last);
      warn(note.count == 1 ? fmt::format("{}: at {:.1f} s: {}", device, first, note.text)
                           : fmt::format("{}: {} times from {:.1f} to {:.1f} s: {}", device,
                                         note.count, first, last, note.text));
    }
    for (auto& text : failed_read_warnings(recording_, device, timeline.sensors(), {begin_, end_},
                                           work_.begin)) {
      warn(std::move(text));
    }
    const Energy doubt = timeline.disagreement(begin_, end_);
    if (out.energy && doubt > Energy{} &&
        200 * doubt.microjoules() > out.energy->energy.microjoules()) {
      warn(fmt::format(
          "{}: energy counter and power samples differ by {:.4g} J ({:.1f} %), more than their "
          "calibration errors allow; the counter is used where it counts, because it has no time "
          "without measurement, and the interval contains both",
          device, doubt.joules(), 100 * doubt.joules() / out.energy->energy.joules()));
    } else if (out.balance.counter && out.balance.integral && length >= 2s &&
               *out.balance.counter > Energy{}) {
      const double apart = out.balance.integral->joules() - out.balance.counter->joules();
      // The counter is interpolated at both ends, by up to half a refresh period each.
      const double ends = out.peak_power ? 0.1 * out.peak_power->watts() : 0;
      if (std::abs(apart) > 0.02 * out.balance.counter->joules() + ends) {
        warn(fmt::format(
            "{}: the integral of the power samples differs by {:+.1f} % from the energy "
            "counter; the counter's value is used, and the interval contains both",
            device, 100 * apart / out.balance.counter->joules()));
      }
    }
    if (const auto hidden = timeline.hidden(begin_, end_);
        out.energy && 50 * hidden.energy.microjoules() > out.energy->energy.microjoules()) {
      warn(fmt::format(
          "{}: its power sensor sees part of the time, and the load seems to run at a fixed "
          "rate{}: "
          "the samples may miss or repeat {:.4g} J, which is in the interval; an energy counter, "
          "or "
          "a load without a fixed period, avoids it",
          device,
          hidden.period > Duration{}
              ? fmt::format(" (the samples recur every {:.3g} s)", seconds(hidden.period))
              : "",
          hidden.energy.joules()));
    }
    const Duration missing = timeline.missing_samples(begin_, end_);
    if (missing > Duration{} && 50 * missing > length) {
      warn(fmt::format("{}: no power samples for {:.3f} s of the span", device, seconds(missing)));
    }
    if (length > Duration{} && length < timeline.resolution()) {
      warn(fmt::format(
          "{}: the span of {:.1f} ms is shorter than its sensors' resolution ({:.1f} ms)", device,
          seconds(length) * 1e3, seconds(timeline.resolution()) * 1e3));
    }
  }

  // What a process that lives less than a second holds in its first quarter is no peak: it may have
  // just begun to load.
  static bool is_early_in_brief_life(const model::Process& process, HostTime at) {
    if (!process.end || *process.end - process.start >= std::chrono::seconds{1}) return false;
    return at < process.start + (*process.end - process.start) / 4;
  }

  void add_process_list() {
    place_.assign(recording_.processes.size(), -1);
    for (std::size_t i = 0; i < recording_.processes.size(); ++i) {
      if (!recording_.processes[i].in_tree) continue;
      place_[i] = static_cast<std::ptrdiff_t>(profile_.processes.size());
      model::ProcessProfile p;
      p.process = recording_.processes[i];
      p.cpu_time = processes_.use().cpu_time[i];
      p.mean_sm_utilisation = processes_.use().compute_utilisation[i];
      profile_.processes.push_back(std::move(p));
    }
    std::unordered_map<std::uint32_t, model::ProcessProfile*> by_id;
    for (auto& p : profile_.processes) by_id[static_cast<std::uint32_t>(p.process.id)] = &p;
    const auto peak = [](std::optional<std::uint64_t>& to, const std::optional<std::uint64_t>& x) {
      if (x) to = std::max(to.value_or(0), *x);
    };
    std::unordered_set<std::uint32_t> observed;  // late enough for a peak
    for (const auto& r : recording_.process_readings.processes) {
      const auto p = by_id.find(static_cast<std::uint32_t>(r.process));
      if (p == by_id.end() || r.at < begin_ || r.at > end_) continue;
      peak(p->second->peak_pss_bytes, r.pss_bytes);
      peak(p->second->peak_uss_bytes, r.uss_bytes);
      peak(p->second->peak_rss_bytes, r.rss_bytes);
      if (r.rss_bytes && !is_early_in_brief_life(p->second->process, r.at)) {
        observed.insert(static_cast<std::uint32_t>(r.process));
      }
    }
    for (auto& p : profile_.processes) {
      if (!observed.contains(static_cast<std::uint32_t>(p.process.id))) p.peak_rss_bytes.reset();
    }
    for (const auto& r : recording_.process_readings.gpu_processes) {
      const auto p = by_id.find(static_cast<std::uint32_t>(r.process));
      if (p == by_id.end() || r.at < begin_ || r.at > end_) continue;
      peak(p->second->peak_gpu_memory_bytes, r.memory_bytes);
    }
  }

  void finish_processes() {
    const auto total = [&](const model::ProcessProfile& p) {
      Energy sum;
      for (const auto& share : p.shares) {
        for (const auto& d : profile_.domains) {
          if (d.domain.id == share.domain && !d.domain.parent) sum += share.energy;
        }
      }
      return sum;
    };
    for (auto& p : profile_.processes) {
      if (profile_.simulated) p.provenance = model::Provenance::kSimulated;
    }
    std::ranges::stable_sort(profile_.processes,
                             [&](const auto& a, const auto& b) { return total(a) > total(b); });
  }

  const ProfileInput& input_;
  const model::Recording& recording_;
  Timelines& timelines_;
  WorkSpan work_;
  HostTime begin_, end_;
  ProcessSplitter processes_;
  model::Profile profile_;
  std::vector<std::ptrdiff_t>
      place_;  // by process of the recording: its index in the profile; -1: none
};

}  // namespace

model::Profile build_profile(const ProfileInput& input) { return ProfileBuilder(input).build(); }

std::optional<WorkSpan> work_span(const model::Recording& recording, Timelines& timelines) {
  const auto recorded = recorded_span(recording);
  if (!recorded) return std::nullopt;
  WorkSpan work;
  work.recorded = *recorded;
  work.begin = recording.run.work_begin ? *recording.run.work_begin
                                        : common_begin(timelines, recorded->begin);
  work.end =
      recording.run.work_end
          ? *recording.run.work_end
          : std::max(common_end(recording, timelines, {work.begin, recorded->end}), work.begin);
  work.program_end = program_end(recording, work.end);
  return work;
}

}  // namespace jouleprof::analysis
