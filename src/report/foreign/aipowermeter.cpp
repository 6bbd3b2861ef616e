#include "report/foreign/aipowermeter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "report/format/format.h"
#include "report/json/values.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

using model::Domain;
using model::DomainKind;
using model::PowerStep;
using model::ProcessId;
using model::Recording;

constexpr const char* kSegmentEnd = "\"END OF RECORDING SEGMENT\"\n";
// Wall clocks drift and are corrected by less.
constexpr Duration kLeastStep = std::chrono::milliseconds{100};
constexpr Duration kShortest = std::chrono::microseconds{100};  // segment: dates have microseconds

// The mean over what the curve covers of [begin, end]; nothing where that is less than half.
std::optional<double> mean_watts(const std::vector<PowerStep>& steps, HostTime begin,
                                 HostTime end) {
  const auto first =
      std::ranges::partition_point(steps, [&](const PowerStep& s) { return s.end <= begin; });
  double joules = 0;
  Duration covered{};
  for (auto s = first; s != steps.end() && s->begin < end; ++s) {
    const Duration part = std::min(s->end, end) - std::max(s->begin, begin);
    joules += s->power.watts() * seconds(part);
    covered += part;
  }
  if (covered <= Duration{} || 2 * covered < end - begin) return std::nullopt;
  return joules / seconds(covered);
}

// A domain with its curve. GPUs are numbered by the digits at the end of their device's name.
struct Drawn {
  const Domain* domain;
  const std::vector<PowerStep>* steps;
  model::Provenance provenance;
};

std::string gpu_number(const Domain& d) {
  const auto digits = d.device.find_last_not_of("0123456789");
  const auto begin = digits == std::string::npos ? 0 : digits + 1;
  return begin < d.device.size() ? d.device.substr(begin)
                                 : std::to_string(static_cast<std::uint32_t>(d.id));
}

// The latest reading at or before a time, for each key; readings are taken up as time goes on.
template <typename Key, typename Reading>
class Latest {
 public:
  template <typename KeyOf>
  Latest(std::vector<Reading> readings, KeyOf key_of)
      : readings_(std::move(readings)), key_of_(std::move(key_of)) {
    std::ranges::stable_sort(readings_, {}, &Reading::at);
  }
  const std::map<Key, Reading>& at(HostTime t) {
    for (; next_ < readings_.size() && readings_[next_].at <= t; ++next_) {
      latest_.insert_or_assign(key_of_(readings_[next_]), readings_[next_]);
    }
    return latest_;
  }

 private:
  std::vector<Reading> readings_;
  std::function<Key(const Reading&)> key_of_;
  std::size_t next_ = 0;
  std::map<Key, Reading> latest_;
};

// CPU time so far, straight between two readings; absent outside of them.
class CpuTime {
 public:
  void add(HostTime at, Duration used) { readings_[at] = used; }
  std::optional<double> within(HostTime begin, HostTime end) const {
    if (readings_.size() < 2) return std::nullopt;
    begin = std::max(begin, readings_.begin()->first);
    end = std::min(end, readings_.rbegin()->first);
    if (begin >= end) return std::nullopt;
    return until(end) - until(begin);
  }

 private:
  double until(HostTime t) const {
    const auto next = readings_.lower_bound(t);
    if (next == readings_.begin()) return seconds(next->second);
    const auto before = std::prev(next);
    const double part = seconds(t - before->first) / seconds(next->first - before->first);
    return seconds(before->second) + part * seconds(next->second - before->second);
  }
  std::map<HostTime, Duration> readings_;
};

// The point `at` of a line, and what it stands for: half a step at the ends of a segment.
struct Point {
  HostTime at{};
  HostTime begin{};
  HostTime end{};
};

// How much of the point's time a process lived.
double lived(const model::Process& process, const Point& point) {
  const HostTime begin = std::max(process.start, point.begin);
  const HostTime end = std::min(process.end.value_or(HostTime::max()), point.end);
  return end > begin ? seconds(end - begin) / seconds(point.end - point.begin) : 0.0;
}

// The energy that the profile attributes to each process, laid over the lines in which it lived in
// proportion to the domain's power: a reader's sum is then the profile's.
class Shares {
 public:
  Shares(const std::vector<model::ProcessProfile>& processes, const std::vector<Drawn>& drawn,
         const std::vector<std::vector<Point>>& segments)
      : processes_(processes) {
    for (const Drawn& d : drawn) {
      std::map<std::size_t, double> alive;  // joules of the domain while each process lived
      for (const auto& points : segments) {
        for (const Point& point : points) {
          const auto watts = mean_watts(*d.steps, point.begin, point.end);
          for (std::size_t i = 0; watts && i < processes.size(); ++i) {
            alive[i] +=
                *watts * seconds(point.end - point.begin) * lived(processes[i].process, point);
          }
        }
      }
      for (const auto& [i, joules] : alive) {
        for (const auto& share : processes[i].shares) {
          if (share.domain != d.domain->id || joules <= 0) continue;
          ratios_[d.domain->id][i] = share.energy.joules() / joules;
        }
      }
    }
  }

  // By pid; absent for a domain that is not divided among processes.
  std::optional<std::map<pid_t, double>> watts(const Drawn& d, const Point& point) const {
    const auto ratios = ratios_.find(d.domain->id);
    const auto mean = mean_watts(*d.steps, point.begin, point.end);
    if (ratios == ratios_.end() || !mean) return std::nullopt;
    std::map<pid_t, double> out;
    for (const auto& [i, ratio] : ratios->second) {
      const auto& process = processes_[i].process;
      out[process.pid] += ratio * *mean * lived(process, point);
    }
    return out;
  }

 private:
  const std::vector<model::ProcessProfile>& processes_;
  std::map<model::DomainId, std::map<std::size_t, double>> ratios_;
};

std::vector<Drawn> drawn_of(const Recording& recording, const std::vector<PowerCurve>& curves) {
  std::vector<Drawn> drawn;
  for (const PowerCurve& curve : curves) {
    const auto it = std::ranges::find(recording.domains, curve.domain, &Domain::id);
    if (it == recording.domains.end() || curve.steps.empty() || !it->visible) continue;
    drawn.push_back({&*it, &curve.steps, provenance_of(recording, it->id)});
  }
  return drawn;
}

class Lines {
 public:
  Lines(const Recording& recording, std::vector<Drawn> drawn, Shares shares)
      : clocks_(recording.clock_points),
        processes_(recording.process_readings.processes,
                   [](const model::ProcessReading& r) { return r.process; }),
        gpu_processes_(
            recording.process_readings.gpu_processes,
            [](const model::GpuProcessReading& r) { return std::pair(r.domain, r.process); }),
        machine_(recording.process_readings.machine,
                 [](const model::MachineReading&) { return 0; }),
        drawn_(std::move(drawn)),
        shares_(std::move(shares)) {
    for (const auto& p : recording.processes) by_id_[p.id] = &p;
    for (const auto& r : recording.process_readings.processes) {
      cpu_times_[r.process].add(r.at, r.cpu_time);
    }
    for (const auto& r : recording.process_readings.machine) busy_.add(r.at, r.busy_cpu_time);
  }

  // Nothing when nothing is known then.
  std::string line(const Point& point, Duration step) {
    Json cpu = cpu_json(point);
    Json gpu = gpu_json(point, step);
    const RealTime wall = clocks_.to_real(point.at);
    Json line = Json::object();
    line["date"] = local_date_text(wall, "-") + ' ' + local_clock_text(wall, 6);
    line["provenance"] = Json::object();
    line["metrics"] = Json::object();
    const auto add = [&](const char* section, Json metrics, bool is_gpu) {
      if (metrics.empty()) return;
      auto provenance = model::Provenance::kUnavailable;
      for (const Drawn& d : drawn_) {
        if (d.domain->kind == DomainKind::kGpuMemory) continue;  // in neither section
        const bool is_of_gpu = d.domain->kind == DomainKind::kGpu;
        if (is_of_gpu == is_gpu) provenance = combine(provenance, d.provenance);
      }
      line["provenance"][section] = to_string(provenance);
      line["metrics"][section] = std::move(metrics);
    };
    add("cpu", std::move(cpu), false);
    add("gpu", std::move(gpu), true);
    return line["metrics"].empty() ? std::string() : write_json(line, 0) + '\n';
  }

 private:
  // The sum over all domains of a kind, if there is one and every one is known.
  std::optional<double> sum_watts(DomainKind kind, HostTime begin, HostTime end) const {
    std::optional<double> sum;
    for (const Drawn& d : drawn_) {
      if (d.domain->kind != kind) continue;
      const auto mean = mean_watts(*d.steps, begin, end);
      if (!mean) return std::nullopt;
      sum = sum.value_or(0) + *mean;
    }
    return sum;
  }

  // The process, where it is one of the measured command's.
  const model::Process* own(ProcessId id) const {
    const auto it = by_id_.find(id);
    return it != by_id_.end() && it->second->in_tree ? it->second : nullptr;
  }

  // The process, where it is one of the measured command's and has not ended.
  const model::Process* alive(ProcessId id, HostTime at) const {
    const model::Process* process = own(id);
    return process != nullptr && process->end.value_or(HostTime::max()) >= at ? process : nullptr;
  }

  Json cpu_json(const Point& point) {
    Json cpu = Json::object();
    const auto add = [&](const char* name, const std::optional<double>& watts) {
      if (watts) cpu[name] = number_json(*watts);
    };
    const auto sum = [&](DomainKind kind) { return sum_watts(kind, point.begin, point.end); };
    add("intel_power", sum(DomainKind::kCpu));
    add("psys_power", sum(DomainKind::kPlatform));
    add("uncore_power", sum(DomainKind::kCpuUncore));
    add("total_cpu_power", sum(DomainKind::kCpuCores));
    add("total_dram_power", sum(DomainKind::kDram));
    add_process_watts("per_process_cpu_power", DomainKind::kCpuCores, point, cpu);
    add_process_watts("per_process_dram_power", DomainKind::kDram, point, cpu);

    const auto put = [&](const char* name, const model::Process& process, Json value) {
      cpu[name][std::to_string(process.pid)] = std::move(value);
    };
    const auto& machine = machine_.at(point.at);
    const auto busy = busy_.within(point.begin, point.end);
    for (const auto& [id, reading] : processes_.at(point.at)) {
      const model::Process* process = alive(id, point.at);
      if (process == nullptr) continue;
      if (reading.rss_bytes || reading.pss_bytes) memory_[id].take(reading);
      const Memory& memory = memory_[id];
      if (memory.pss_bytes) {
        put("per_process_mem_use_abs", *process, *memory.pss_bytes);
        if (!machine.empty() && machine.begin()->second.memory_used_bytes > 0) {
          put("per_process_mem_use_percent", *process,
              number_json(static_cast<double>(*memory.pss_bytes) /
                          static_cast<double>(machine.begin()->second.memory_used_bytes)));
        }
      }
      if (memory.uss_bytes) put("per_process_mem_use_uss", *process, *memory.uss_bytes);
      const auto used = cpu_times_.at(id).within(point.begin, point.end);
      if (used && busy && *busy > 0) {
        put("per_process_cpu_uses", *process, number_json(*used / *busy));
      }
    }
    return cpu;
  }

  void add_process_watts(const char* name, DomainKind kind, const Point& point, Json& cpu) const {
    std::map<pid_t, double> sum;
    bool any = false;
    for (const Drawn& d : drawn_) {
      if (d.domain->kind != kind) continue;
      const auto watts = shares_.watts(d, point);
      if (!watts) return;
      any = true;
      for (const auto& [pid, more] : *watts) sum[pid] += more;
    }
    if (!any) return;
    cpu[name] = Json::object();
    for (const auto& [pid, watts] : sum) cpu[name][std::to_string(pid)] = number_json(watts);
  }

  Json gpu_json(const Point& point, Duration step) {
    Json power = Json::object();
    Json memory = Json::object();
    Json use_by_pid = Json::object();
    Json use = Json::object();
    Json share = Json::object();
    Json attributable = Json::object();
    std::optional<double> attributable_sum;
    const HostTime oldest = point.at - 3 * step;  // of a utilisation
    for (const Drawn& d : drawn_) {
      if (d.domain->kind != DomainKind::kGpu) continue;
      const std::string number = gpu_number(*d.domain);
      const auto mean = mean_watts(*d.steps, point.begin, point.end);
      if (!mean) continue;
      const double watts = *mean;
      power[number] = number_json(watts);
      memory[number] = Json::object();
      std::optional<double> own_use;
      for (const auto& [key, reading] : gpu_processes_.at(point.at)) {
        const auto it = by_id_.find(key.second);
        if (key.first != d.domain->id || it == by_id_.end()) continue;
        const std::string pid = std::to_string(it->second->pid);
        const bool is_own = it->second->in_tree;
        if (alive(key.second, point.at) != nullptr && reading.memory_bytes) {
          memory[number][pid] = *reading.memory_bytes;
        }
        if (!reading.compute_utilisation || reading.at < oldest) continue;
        use_by_pid[number][pid] = number_json(*reading.compute_utilisation);
        own_use = own_use.value_or(0) + (is_own ? *reading.compute_utilisation : 0);
      }
      if (own_use) use[number] = number_json(*own_use);
      const auto by_pid = shares_.watts(d, point);
      if (!by_pid) continue;
      double own_watts = 0;
      for (const auto& [pid, more] : *by_pid) own_watts += more;
      attributable[number] = number_json(own_watts);
      if (watts > 0) share[number] = number_json(own_watts / watts);
      attributable_sum = attributable_sum.value_or(0) + own_watts;
    }
    if (power.empty()) return Json::object();
    // Of all GPUs together: absent where one of them is unknown.
    const auto draw = sum_watts(DomainKind::kGpu, point.begin, point.end);
    if (!draw) attributable_sum.reset();
    attributable["all"] = optional_json(attributable_sum, number_json);
    Json gpu = Json::object();
    if (draw) gpu["nvidia_draw_absolute"] = number_json(*draw);
    gpu["per_gpu_power_draw"] = std::move(power);
    gpu["per_gpu_attributable_mem_use"] = std::move(memory);
    gpu["per_gpu_per_pid_utilization_absolute"] = std::move(use_by_pid);
    gpu["per_gpu_absolute_percent_usage"] = std::move(use);
    gpu["per_gpu_estimated_attributable_utilization"] = std::move(share);
    gpu["per_gpu_attributable_power"] = std::move(attributable);
    return gpu;
  }

  // PSS and USS are read less often than the rest.
  struct Memory {
    std::optional<std::uint64_t> pss_bytes;
    std::optional<std::uint64_t> uss_bytes;
    void take(const model::ProcessReading& reading) {
      if (reading.pss_bytes) pss_bytes = reading.pss_bytes;
      if (reading.uss_bytes) uss_bytes = reading.uss_bytes;
    }
  };

  ClockMap clocks_;
  Latest<ProcessId, model::ProcessReading> processes_;
  Latest<std::pair<model::DomainId, ProcessId>, model::GpuProcessReading> gpu_processes_;
  Latest<int, model::MachineReading> machine_;
  std::map<ProcessId, const model::Process*> by_id_;
  std::vector<Drawn> drawn_;
  Shares shares_;
  std::map<ProcessId, CpuTime> cpu_times_;
  std::map<ProcessId, Memory> memory_;
  CpuTime busy_;
};

// Where the wall clock was set, or the machine slept: between two points of the clocks, where
// ClockMap goes over from one to the other.
std::vector<HostTime> clock_steps(const std::vector<ClockPoint>& points) {
  std::vector<HostTime> steps;
  for (std::size_t i = 1; i < points.size(); ++i) {
    const Duration real = points[i].real - points[i - 1].real;
    const Duration host = points[i].host - points[i - 1].host;
    if (std::max(real - host, host - real) > kLeastStep) {
      steps.push_back(points[i - 1].host + host / 2);
    }
  }
  return steps;
}

// A reader integrates from line to line, so that a segment is a time in which the same domains have
// power, and no step of the clock: it begins and ends with a line.
std::vector<std::vector<Point>> segments_of(HostTime begin, HostTime end, Duration period,
                                            const std::vector<Drawn>& drawn,
                                            const std::vector<ClockPoint>& clocks) {
  const auto steps = clock_steps(clocks);
  std::vector<HostTime> edges{begin, end};
  edges.insert(edges.end(), steps.begin(), steps.end());
  for (const Drawn& d : drawn) {
    for (std::size_t i = 0; i < d.steps->size(); ++i) {
      const auto& step = (*d.steps)[i];
      if (i == 0 || (*d.steps)[i - 1].end != step.begin) edges.push_back(step.begin);
      if (i + 1 == d.steps->size() || (*d.steps)[i + 1].begin != step.end)
        edges.push_back(step.end);
    }
  }
  for (HostTime& edge : edges) edge = std::clamp(edge, begin, end);
  std::ranges::sort(edges);
  std::vector<std::vector<Point>> segments;
  for (std::size_t i = 1; i < edges.size(); ++i) {
    const bool is_after_step = std::ranges::binary_search(steps, edges[i - 1]);
    const HostTime from = edges[i - 1] + (is_after_step ? Duration{1} : Duration{});
    const HostTime to = edges[i];
    const bool has_power = std::ranges::any_of(
        drawn, [&](const Drawn& d) { return mean_watts(*d.steps, from, to).has_value(); });
    if (to - from < kShortest || !has_power) continue;
    const auto count =
        std::max<std::int64_t>(1, std::llround(seconds(to - from) / seconds(period)));
    const Duration step = (to - from) / count;
    auto& points = segments.emplace_back();
    for (std::int64_t n = 0; n <= count; ++n) {
      const HostTime at = n == count ? to : from + n * step;
      points.push_back({at, std::max(from, at - step / 2), std::min(to, at + step / 2)});
    }
  }
  return segments;
}

using namespace std::chrono_literals;

constexpr Duration kStep = 100ms;

// Curves have whole steps only: what is left at both ends of the span, as the timeline has it.
void complete(const analysis::Run& run, const analysis::PartSpan& span,
              std::vector<PowerCurve>& curves) {
  for (PowerCurve& curve : curves) {
    const auto& domains = run.recording().domains;
    const auto domain = static_cast<std::size_t>(
        std::ranges::find(domains, curve.domain, &model::Domain::id) - domains.begin());
    const auto rest = [&](HostTime begin, HostTime end) -> std::optional<model::PowerStep> {
      if (begin >= end || end - begin > kStep) return std::nullopt;
      const auto energy = run.energy(domain, begin, end);
      if (!energy) return std::nullopt;
      return model::PowerStep{begin, end, energy->energy / (end - begin), {}};
    };
    const auto first = rest(span.begin, curve.steps.front().begin);
    const auto last = rest(curve.steps.back().end, span.end);
    if (first) curve.steps.insert(curve.steps.begin(), *first);
    if (last) curve.steps.push_back(*last);
  }
}

Result<void> write(const analysis::Run& run, const analysis::Part& part, const FormatOptions&,
                   std::ostream& out) {
  const auto span = run.span(part);
  if (!span) return tl::unexpected(span.error());
  auto curves = power_curves(run, part, kStep);
  complete(run, *span, curves);
  const auto& profile = run.profile(part);
  return write_aipowermeter(out, run.recording(), curves,
                            profile ? profile->processes : std::vector<model::ProcessProfile>{});
}

}  // namespace

Result<void> write_aipowermeter(std::ostream& out, const Recording& recording,
                                const std::vector<PowerCurve>& curves,
                                const std::vector<model::ProcessProfile>& processes,
                                Duration period) {
  if (period <= Duration{}) {
    return fail(Errc::kInvalidArgument, "the time between two lines must be greater than zero");
  }
  HostTime begin = HostTime::max();
  HostTime end = HostTime::min();
  for (const PowerCurve& curve : curves) {
    if (curve.steps.empty()) continue;
    begin = std::min(begin, curve.steps.front().begin);
    end = std::max(end, curve.steps.back().end);
  }
  if (recording.run.work_begin) begin = std::max(begin, *recording.run.work_begin);
  if (recording.run.work_end) end = std::min(end, *recording.run.work_end);
  if (begin >= end) {
    return fail(Errc::kUnavailable,
                "the recording has no power readings during the work; no file was written");
  }
  const auto drawn = drawn_of(recording, curves);
  const auto segments = segments_of(begin, end, period, drawn, recording.clock_points);
  Lines lines(recording, drawn, Shares(processes, drawn, segments));
  for (std::size_t i = 0; i < segments.size(); ++i) {
    std::string text;
    for (const Point& point : segments[i]) text += lines.line(point, period);
    if (text.empty()) continue;
    out << text;
    if (i + 1 < segments.size() || recording.run.complete) out << kSegmentEnd;
  }
  return {};
}

extern constinit const Format aipowermeter_format{.name = "aipowermeter",
                                                  .extension = "power_metrics.json",
                                                  .shows = "JSON Lines that AIPowerMeter reads",
                                                  .write = write};

}  // namespace jouleprof::report
