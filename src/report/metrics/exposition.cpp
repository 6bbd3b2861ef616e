#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "report/cells.h"
#include "report/metrics/machine_metrics.h"
#include "report/quantity.h"

namespace jouleprof::report {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr std::string_view kInfoSuffix = "_info";

std::string_view without(std::string_view name, std::string_view suffix) {
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

}  // namespace

std::string escaped_label(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const Character c = first_character(value);
    if (!c.valid) {
      out += "\xef\xbf\xbd";  // U+FFFD, the replacement character
    } else if (c.code == '\n') {
      out += "\\n";
    } else {
      if (c.code == '\\' || c.code == '"') out += '\\';
      out += value.substr(0, c.bytes);
    }
    value.remove_prefix(c.bytes);
  }
  return out;
}

Labels& Labels::add(std::string_view name, std::string_view value) {
  if (value.empty()) return *this;
  if (!text_.empty()) text_ += ',';
  text_.append(name).append("=\"").append(escaped_label(value)).append("\"");
  return *this;
}

Labels& Labels::append(const Labels& more) {
  if (!text_.empty() && !more.text_.empty()) text_ += ',';
  text_ += more.text_;
  return *this;
}

void Exposition::announce() {
  announced_ = true;
  const auto& m = *metric_;
  auto to = std::back_inserter(out_);
  if (dialect_ == Dialect::kText) {
    fmt::format_to(to, "# HELP {} {}\n# TYPE {} {}\n", m.name, m.help, m.name,
                   m.type == MetricType::kCounter ? "counter" : "gauge");
    return;
  }
  std::string_view family = m.name;
  std::string_view type = "gauge";
  if (m.type == MetricType::kCounter) {
    type = family.ends_with(kTotal) ? "counter" : "unknown";
    family = without(family, kTotal);
  }
  if (m.type == MetricType::kInfo) family = without(family, kInfoSuffix), type = "info";
  fmt::format_to(to, "# TYPE {} {}\n", family, type);
  if (!m.unit.empty()) fmt::format_to(to, "# UNIT {} {}\n", family, m.unit);
  fmt::format_to(to, "# HELP {} {}\n", family, m.help);
}

void Exposition::sample(const Labels& labels, double value, std::optional<RealTime> since) {
  if (std::isfinite(value)) add(labels, shortest(value), since);
}

void Exposition::sample(const Labels& labels, Energy energy, std::optional<RealTime> since) {
  add(labels, joules_decimal(energy), since);
}

void Exposition::add(const Labels& labels, std::string_view value, std::optional<RealTime> since) {
  if (!announced_) announce();
  const auto line = [&](std::string_view name, std::string_view suffix, std::string_view number) {
    out_.append(name).append(suffix);
    if (!labels.text().empty()) out_.append("{").append(labels.text()).append("}");
    out_.append(" ").append(number).append("\n");
  };
  line(metric_->name, "", value);
  if (since && created_ && metric_->type == MetricType::kCounter) {
    const auto ms =
        std::chrono::duration_cast<std::chrono::milliseconds>(since->time_since_epoch());
    line(without(metric_->name, kTotal), "_created",
         fmt::format("{}.{:03}", ms.count() / 1000, ms.count() % 1000));
  }
}

std::string Exposition::finish() && {
  if (dialect_ == Dialect::kOpenMetrics) out_ += "# EOF\n";
  return std::move(out_);
}

namespace {

using enum MetricType;

constexpr std::string_view kDevice = "domain, device, uuid";

constexpr std::array kMetrics{
    Metric{"jouleprof_energy_joules_total", kCounter, "joules",
           "Energy of a domain since the service began to count it.",
           "domain, device, uuid, provenance, level"},
    Metric{"jouleprof_unattributed_energy_joules_total", kCounter, "joules",
           "Part of a divided domain's energy that no process explains.",
           "domain, device, uuid, provenance"},
    Metric{"jouleprof_process_energy_joules_total", kCounter, "joules",
           "Part of a domain's energy that is attributed to a process.",
           "pid or reason, domain, device, provenance, level"},
    Metric{"jouleprof_container_energy_joules_total", kCounter, "joules", "The same by container.",
           "container or reason, domain, device, provenance, level"},
    Metric{"jouleprof_pod_energy_joules_total", kCounter, "joules", "The same by Kubernetes pod.",
           "pod_uid or reason, domain, device, provenance, level"},
    Metric{"jouleprof_job_energy_joules_total", kCounter, "joules",
           "The same by job of a scheduler.",
           "hpc_job or reason, domain, device, provenance, level"},
    Metric{"jouleprof_unit_energy_joules_total", kCounter, "joules", "The same by systemd unit.",
           "unit or reason, domain, device, provenance, level"},
    Metric{"jouleprof_user_energy_joules_total", kCounter, "joules", "The same by user.",
           "uid or reason, domain, device, provenance, level"},
    Metric{"jouleprof_new_energy_joules", kGauge, "joules",
           "Energy of entities whose counters begin at zero with this scrape: they have it in the "
           "next one.",
           "family, domain, device, provenance, level"},
    Metric{"jouleprof_power_watts", kGauge, "watts",
           "Mean power over the newest readings of a domain's fastest sensor.",
           "domain, device, uuid, provenance"},
    Metric{"jouleprof_power_limit_watts", kGauge, "watts", "Power limit of a GPU.", kDevice},
    Metric{"jouleprof_clock_hertz", kGauge, "hertz", "Clock of a GPU (sm) or its memory (memory).",
           "domain, device, uuid, clock"},
    Metric{"jouleprof_temperature_celsius", kGauge, "celsius",
           "Temperature of a GPU (gpu), its memory (memory) or a CPU package (cpu).",
           "domain, device, uuid, part"},
    Metric{"jouleprof_utilisation_ratio", kGauge, "ratio",
           "Share of time in which a part of a device was in use, as its driver reports it.",
           "domain, device, uuid, part"},
    Metric{"jouleprof_memory_used_bytes", kGauge, "bytes", "Memory of a GPU in use.", kDevice},
    Metric{"jouleprof_clock_limited", kGauge, "",
           "Whether this reason lowers the clocks of a GPU now: 1 or 0.",
           "domain, device, uuid, reason"},
    Metric{"jouleprof_sensor_age_seconds", kGauge, "seconds",
           "Age of a domain's newest reading of energy or power.", kDevice},
    Metric{"jouleprof_sensor_available", kGauge, "",
           "Whether a domain's sensors reported everything up to the last tick: 1 or 0.", kDevice},
    Metric{"jouleprof_energy_gaps_total", kCounter, "",
           "Intervals that a domain's sensors did not report and that its energy lacks.", kDevice},
    Metric{"jouleprof_gap_joules_total", kCounter, "joules",
           "Part of the unattributed energy that a device used between two services, or while it "
           "did not answer, by its own counter.",
           kDevice},
    Metric{"jouleprof_gpu_process_utilisation_ratio", kGauge, "ratio",
           "Share of a GPU's multiprocessors that a process used, as the driver reports it.",
           "device, uuid, pid"},
    Metric{"jouleprof_gpu_process_memory_bytes", kGauge, "bytes",
           "Memory of a GPU that a process holds.", "device, uuid, pid"},
    Metric{"jouleprof_device_info", kInfo, "", "A domain of the machine.",
           "domain, device, uuid, name"},
    Metric{"jouleprof_process_info", kInfo, "", "A process that has a series, and its owners.",
           "pid, comm, container, pod_uid, hpc_job, unit, uid"},
    Metric{"jouleprof_container_info", kInfo, "", "A container that has a series, and its owners.",
           "container, runtime, pod_uid, container_name, hpc_job"},
    Metric{"jouleprof_pod_info", kInfo, "", "A Kubernetes pod that has a series, and its name.",
           "pod_uid, namespace, pod"},
    Metric{"jouleprof_allocation_info", kInfo, "",
           "A job to which the job mapping assigns a GPU, or a MIG instance on it.",
           "device, uuid, gpu_instance, hpc_job"},
    Metric{"jouleprof_ticks_total", kCounter, "", "Ticks of the service.", ""},
    Metric{"jouleprof_missing_seconds_total", kCounter, "seconds",
           "Time between a service and the one before, whose counters it continues. Nothing is "
           "attributed of it.",
           ""},
    Metric{"jouleprof_last_tick_timestamp_seconds", kGauge, "seconds",
           "Time up to which the energies of the last tick reach, in seconds since 1970.", ""},
    Metric{"jouleprof_build_info", kInfo, "", "The version of jouleprof.", "version"},
    Metric{"process_cpu_seconds_total", kCounter, "seconds", "CPU time that the service used.", ""},
    Metric{"process_resident_memory_bytes", kGauge, "bytes", "Memory that the service uses.", ""},
    Metric{"process_start_time_seconds", kGauge, "seconds",
           "Start of the service, in seconds since 1970.", ""},
};

constexpr std::string_view name_of(MetricType type) {
  return type == kCounter ? "counter" : type == kGauge ? "gauge" : "info";
}

}  // namespace

std::span<const Metric> all_metrics() { return kMetrics; }

const Metric& metric(std::string_view name) {
  return *std::ranges::find(kMetrics, name, &Metric::name);
}

std::string metrics_table() {
  std::string out = "| metric | type | labels | meaning |\n|---|---|---|---|\n";
  for (const auto& m : kMetrics) {
    fmt::format_to(std::back_inserter(out), "| `{}` | {} | {} | {} |\n", m.name, name_of(m.type),
                   m.labels.empty() ? "" : fmt::format("`{}`", m.labels), m.help);
  }
  return out;
}

}  // namespace jouleprof::report
