#include "report/foreign/aipowermeter.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "report/json/json_text.h"
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
constexpr Duration kLeastPause = std::chrono::milliseconds{100};

// The mean over what the curve covers of [begin, end]; nothing where that is less than half.
std::optional<double> mean_watts(const std::vector<PowerStep>& steps, HostTime begin,
                                 HostTime end) {
  const auto first = std::partition_point(steps.begin(), steps.end(),
                                          [&](const PowerStep& s) { return s.end <= begin; });
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
    std::stable_sort(readings_.begin(), readings_.end(),
                     [](const Reading& a, const Reading& b) { return a.at < b.at; });
  }
  // Those no older than `oldest`.
  const std::map<Key, Reading>& at(HostTime t, HostTime oldest) {
    for (; next_ < readings_.size() && readings_[next_].at <= t; ++next_) {
      latest_.insert_or_assign(key_of_(readings_[next_]), readings_[next_]);
    }
    std::erase_if(latest_, [&](const auto& entry) { return entry.second.at < oldest; });
    return latest_;
  }

 private:
  std::vector<Reading> readings_;
  std::function<Key(const Reading&)> key_of_;
  std::size_t next_ = 0;
  std::map<Key, Reading> latest_;
};

class Lines {
 public:
  Lines(const Recording& recording, const std::vector<PowerCurve>& curves)
      : clocks_(recording.clock_points),
        processes_(recording.process_readings.processes,
                   [](const model::ProcessReading& r) { return r.process; }),
        gpu_processes_(
            recording.process_readings.gpu_processes,
            [](const model::GpuProcessReading& r) { return std::pair(r.domain, r.process); }),
        machine_(recording.process_readings.machine,
                 [](const model::MachineReading&) { return 0; }) {
    for (const auto& p : recording.processes) by_id_[p.id] = &p;
    for (const PowerCurve& curve : curves) {
      const auto it = std::find_if(recording.domains.begin(), recording.domains.end(),
                                   [&](const Domain& d) { return d.id == curve.domain; });
      if (it == recording.domains.end() || curve.steps.empty() || !it->visible) continue;
      auto provenance = model::Provenance::kUnavailable;
      for (const auto& sensor : recording.sensors) {
        if (sensor.domain == it->id && sensor.kind != model::SensorKind::kGauge) {
          provenance = combine(provenance, sensor.provenance);
        }
      }
      drawn_.push_back({&*it, &curve.steps, provenance});
    }
  }

  // The line of the point `at`, which stands for [begin, end]; nothing when nothing is known then.
  std::string line(HostTime at, HostTime begin, HostTime end, Duration step) {
    Json cpu = cpu_json(at, begin, end, step);
    Json gpu = gpu_json(at, begin, end, step);
    const RealTime wall = clocks_.to_real(at);
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

  Json cpu_json(HostTime at, HostTime begin, HostTime end, Duration step) {
    Json cpu = Json::object();
    const auto add = [&](const char* name, const std::optional<double>& watts) {
      if (watts) cpu[name] = number_json(*watts);
    };
    const auto package = sum_watts(DomainKind::kCpu, begin, end);
    const auto cores = sum_watts(DomainKind::kCpuCores, begin, end);
    const auto dram = sum_watts(DomainKind::kDram, begin, end);
    add("intel_power", package);
    add("psys_power", sum_watts(DomainKind::kPlatform, begin, end));
    add("uncore_power", sum_watts(DomainKind::kCpuUncore, begin, end));
    add("total_cpu_power", cores);
    add("total_dram_power", dram);

    const HostTime oldest = at - 3 * step;
    const auto& machine = machine_.at(at, oldest);
    std::optional<model::MachineReading> now;
    if (!machine.empty()) now = machine.begin()->second;
    std::map<ProcessId, Duration> cpu_times;
    const auto put = [&](const char* name, const std::string& pid, Json value) {
      cpu[name][pid] = std::move(value);
    };
    for (const auto& [id, reading] : processes_.at(at, oldest)) {
      const model::Process* process = own(id);
      if (process == nullptr) continue;
      const std::string pid = std::to_string(process->pid);
      if (reading.pss_bytes) {
        put("per_process_mem_use_abs", pid, *reading.pss_bytes);
        if (now && now->memory_used_bytes > 0) {
          const double share =
              static_cast<double>(*reading.pss_bytes) / static_cast<double>(now->memory_used_bytes);
          put("per_process_mem_use_percent", pid, number_json(share));
          if (dram) put("per_process_dram_power", pid, number_json(share * *dram));
        }
      }
      if (reading.uss_bytes) put("per_process_mem_use_uss", pid, *reading.uss_bytes);
      cpu_times[id] = reading.cpu_time;
      const auto before = cpu_times_.find(id);
      if (!now || !machine_before_ || before == cpu_times_.end()) continue;
      const Duration busy = now->busy_cpu_time - machine_before_->busy_cpu_time;
      if (busy <= Duration{}) continue;
      const double use = seconds(reading.cpu_time - before->second) / seconds(busy);
      put("per_process_cpu_uses", pid, number_json(use));
      if (cores) put("per_process_cpu_power", pid, number_json(use * *cores));
    }
    cpu_times_ = std::move(cpu_times);
    machine_before_ = now;
    return cpu;
  }

  Json gpu_json(HostTime at, HostTime begin, HostTime end, Duration step) {
    const auto draw = sum_watts(DomainKind::kGpu, begin, end);
    if (!draw) return Json::object();
    Json power = Json::object();
    Json memory = Json::object();
    Json use_by_pid = Json::object();
    Json use = Json::object();
    Json share = Json::object();
    Json attributable = Json::object();
    std::optional<double> attributable_sum;
    const auto& readings = gpu_processes_.at(at, at - 3 * step);
    for (const Drawn& d : drawn_) {
      if (d.domain->kind != DomainKind::kGpu) continue;
      const std::string number = gpu_number(*d.domain);
      const double watts = *mean_watts(*d.steps, begin, end);  // there, because the sum is
      power[number] = number_json(watts);
      memory[number] = Json::object();
      std::optional<double> all;
      double own_use = 0;
      for (const auto& [key, reading] : readings) {
        const auto it = by_id_.find(key.second);
        if (key.first != d.domain->id || it == by_id_.end()) continue;
        const std::string pid = std::to_string(it->second->pid);
        const bool is_own = it->second->in_tree;
        if (is_own && reading.memory_bytes) memory[number][pid] = *reading.memory_bytes;
        if (!reading.compute_utilisation) continue;
        use_by_pid[number][pid] = number_json(*reading.compute_utilisation);
        all = all.value_or(0) + *reading.compute_utilisation;
        if (is_own) own_use += *reading.compute_utilisation;
      }
      if (!all) continue;
      const double own_share = *all > 0 ? own_use / *all : 0;
      use[number] = number_json(own_use);
      share[number] = number_json(own_share);
      attributable[number] = number_json(watts * own_share);
      attributable_sum = attributable_sum.value_or(0) + watts * own_share;
    }
    attributable["all"] = optional_json(attributable_sum, number_json);
    Json gpu = Json::object();
    gpu["nvidia_draw_absolute"] = number_json(*draw);
    gpu["per_gpu_power_draw"] = std::move(power);
    gpu["per_gpu_attributable_mem_use"] = std::move(memory);
    gpu["per_gpu_per_pid_utilization_absolute"] = std::move(use_by_pid);
    gpu["per_gpu_absolute_percent_usage"] = std::move(use);
    gpu["per_gpu_estimated_attributable_utilization"] = std::move(share);
    gpu["per_gpu_attributable_power"] = std::move(attributable);
    return gpu;
  }

  ClockMap clocks_;
  Latest<ProcessId, model::ProcessReading> processes_;
  Latest<std::pair<model::DomainId, ProcessId>, model::GpuProcessReading> gpu_processes_;
  Latest<int, model::MachineReading> machine_;
  std::map<ProcessId, const model::Process*> by_id_;
  std::vector<Drawn> drawn_;
  std::map<ProcessId, Duration> cpu_times_;  // at the line before
  std::optional<model::MachineReading> machine_before_;
};

}  // namespace

Result<void> write_aipowermeter(std::ostream& out, const Recording& recording,
                                const std::vector<PowerCurve>& curves, Duration period) {
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
  const auto stretches =
      std::max<std::int64_t>(1, std::llround(seconds(end - begin) / seconds(period)));
  const Duration step = (end - begin) / stretches;
  Lines lines(recording, curves);
  const ClockMap clocks(recording.clock_points);
  std::optional<HostTime> written;
  bool is_open = false;  // a segment with lines
  for (std::int64_t i = 0; i <= stretches; ++i) {
    const HostTime at = i == stretches ? end : begin + i * step;
    const std::string line =
        lines.line(at, std::max(begin, at - step / 2), std::min(end, at + step / 2), step);
    // A reader integrates from line to line: not over times without power, nor over a pause, whose
    // wall time is no host time.
    const bool jumps = written && clocks.to_real(at) - clocks.to_real(*written) >
                                      at - *written + std::max(step / 2, kLeastPause);
    if (is_open && (line.empty() || jumps)) {
      out << kSegmentEnd;
      is_open = false;
    }
    if (line.empty()) continue;
    out << line;
    is_open = true;
    written = at;
  }
  if (is_open && recording.run.complete) out << kSegmentEnd;
  return {};
}

}  // namespace jouleprof::report
