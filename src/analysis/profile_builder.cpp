#include "analysis/profile_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <unordered_map>

#include "analysis/processes/idle.h"
#include "analysis/processes/processes.h"
#include "analysis/recording_checks.h"
#include "analysis/replay_warnings.h"
#include "analysis/timeline/recording_timelines.h"
#include "analysis/timeline/timeline.h"
#include "analysis/timeline/unavailable_reason.h"
#include "analysis/windows/windows.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

class ProfileBuilder {
 public:
  ProfileBuilder(const model::Recording& recording, Timelines& timelines, const WorkSpan& work,
                 HostTime begin, HostTime end)
      : recording_(recording),
        timelines_(timelines),
        work_(work),
        begin_(begin),
        end_(end),
        processes_(recording, begin, end) {}

  model::Profile build() {
    profile_.run = recording_.run;
    profile_.begin = begin_;
    profile_.end = end_;
    profile_.start_time = ClockMap(recording_.clock_points).to_real(begin_);
    profile_.overhead = recording_.overhead;
    for (const auto& s : recording_.sensors) {
      profile_.simulated = profile_.simulated || s.provenance == model::Provenance::kSimulated;
    }
    for (auto& text : recording_warnings(recording_, begin_, end_)) warn(std::move(text));
    add_process_list();
    for (std::size_t i = 0; i < recording_.domains.size(); ++i) {
      profile_.domains.push_back(domain_profile(recording_.domains[i], timelines_[i]));
    }
    finish_processes();
    for (auto& text : replay_warnings(recording_, timelines_, begin_, end_, work_.end)) {
      warn(std::move(text));
    }
    profile_.windows = window_groups(recording_, timelines_, part());
    return std::move(profile_);
  }

 private:
  void warn(std::string text) {
    auto& all = profile_.warnings;
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
  }

  // The requested part of the work; absent: all of it.
  std::optional<RecordedSpan> part() const {
    if (begin_ == work_.begin && end_ == work_.program_end) return std::nullopt;
    return RecordedSpan{begin_, end_};
  }

  model::DomainProfile domain_profile(const model::Domain& domain,
                                      std::optional<EnergyTimeline>& known) {
    model::DomainProfile out;
    out.domain = domain;
    if (!known) {
      out.reason = unavailable_reason(recording_, domain);
      return out;
    }
    EnergyTimeline& timeline = *known;
    const auto energy = timeline.energy(begin_, end_);
    if (!energy) {
      out.reason = why_short(timeline, domain, energy.error());
      warn(fmt::format("{}: {}", domain.device, out.reason));
      return out;
    }
    out.energy = *energy;
    const double length = seconds(end_ - begin_);
    if (length > 0) out.mean_power = energy->energy / (end_ - begin_);
    if (const auto peak = timeline.peak(begin_, end_)) {
      out.peak_power = peak->power;
      out.peak_window = peak->window;
    }
    out.balance.counter = timeline.counter_only(begin_, end_);
    out.balance.integral = timeline.samples_only(begin_, end_);
    add_idle(out, timeline);
    check(out, timeline);
    return out;
  }

  std::string why_short(EnergyTimeline& timeline, const model::Domain& domain,
                        const Error& error) const {
    const auto extent = timeline.extent();
    if (!extent || extent->end >= end_ || extent->end <= begin_) return error.message;
    std::string cause;
    for (const auto& f : recording_.readings.failures) {
      for (const auto& s : recording_.sensors) {
        const bool of_power = s.id == f.sensor && s.domain == domain.id &&
                              s.kind != model::SensorKind::kGauge && f.at >= extent->end - 5s;
        if (of_power && cause.empty()) cause = f.error.message;
      }
    }
    const auto until = timeline.energy(begin_, extent->end);
    return fmt::format("its readings end {:.1f} s after the work began{}{}{}",
                       work_.seconds_of(extent->end),
                       until ? fmt::format(", after {:.3f} J", until->energy.joules()) : "",
                       cause.empty() ? "" : ": ", cause);
  }

  void add_idle(model::DomainProfile& out, EnergyTimeline& timeline) {
    auto idle = idle_power(timeline, out.domain, recording_, work_.begin, work_.end);
    for (auto& text : idle.warnings) warn(std::move(text));
    if (!idle.power) return;
    model::Measurement m = *out.energy;
    m.energy = idle.power->power * (end_ - begin_);
    m.repeatability = idle.power->error * (end_ - begin_);
    const double gain = gain_error(*out.energy);
    m.error = Energy::joules(std::hypot(m.repeatability.joules(), gain * m.energy.joules()));
    out.idle = m;
    out.idle_part = std::min(m.energy, out.energy->energy);

    const DomainSplit split = processes_.split({out.domain, out.energy->energy, *out.idle_part,
                                                [&](HostTime a, HostTime b) {
                                                  const auto part = timeline.energy(a, b);
                                                  return part ? part->energy : Energy{};
                                                },
                                                idle.power->power});
    out.others = split.others;
    out.unattributed = split.unattributed;
    Energy parts = *out.idle_part + split.others + split.unattributed;
    for (std::size_t i = 0; i < split.shares.size(); ++i) {
      parts += split.shares[i];
      if (split.shares[i] == Energy{} || place_[i] < 0) continue;
      profile_.processes[static_cast<std::size_t>(place_[i])].shares.push_back(
          {out.domain.id, split.shares[i]});
    }
    out.balance.parts = parts;
  }

  // The calibration error of a measurement.
  static double gain_error(const model::Measurement& m) {
    if (m.energy <= Energy{}) return 0;
    const double all = m.error.joules();
    const double own = m.repeatability.joules();
    return std::sqrt(std::max(all * all - own * own, 0.0)) / m.energy.joules();
  }

  void check(const model::DomainProfile& out, EnergyTimeline& timeline) {
    const std::string& device = out.domain.device;
    const Duration length = end_ - begin_;
    for (const Note& note : timeline.notes()) {
      if (note.at < begin_ - 1s || note.at > end_ + 1s) continue;
      warn(fmt::format("{}: at {:.1f} s: {}", device, work_.seconds_of(note.at), note.text));
    }
    if (out.balance.counter && out.balance.integral && length >= 2s &&
        *out.balance.counter > Energy{}) {
      const double apart = out.balance.integral->joules() - out.balance.counter->joules();
      // The counter is interpolated at both ends, by up to half a refresh period each.
      const double ends = out.peak_power ? 0.1 * out.peak_power->watts() : 0;
      if (std::abs(apart) > 0.02 * out.balance.counter->joules() + ends) {
        warn(fmt::format(
            "{}: the integral of the power samples differs by {:+.1f} % from the energy "
            "counter; the counter's value is used",
            device, 100 * apart / out.balance.counter->joules()));
      }
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
    for (const auto& r : recording_.process_readings.processes) {
      const auto p = by_id.find(static_cast<std::uint32_t>(r.process));
      if (p == by_id.end() || r.at < begin_ || r.at > end_) continue;
      peak(p->second->peak_pss_bytes, r.pss_bytes);
      peak(p->second->peak_uss_bytes, r.uss_bytes);
    }
    for (const auto& r : recording_.process_readings.gpu_processes) {
      const auto p = by_id.find(static_cast<std::uint32_t>(r.process));
      if (p == by_id.end() || r.at < begin_ || r.at > end_) continue;
      peak(p->second->peak_gpu_memory_bytes, r.memory_bytes);
    }
  }

  void finish_processes() {
    if (processes_.saw_unknown_utilisation()) {
      warn(
          "several processes shared a GPU and not all of their utilisations are known; its dynamic "
          "energy of that time is unattributed");
    }
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
    std::stable_sort(profile_.processes.begin(), profile_.processes.end(),
                     [&](const auto& a, const auto& b) { return total(a) > total(b); });
  }

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

model::Profile build_profile(const model::Recording& recording, Timelines& timelines,
                             const WorkSpan& work, HostTime begin, HostTime end) {
  return ProfileBuilder(recording, timelines, work, begin, end).build();
}

}  // namespace jouleprof::analysis
