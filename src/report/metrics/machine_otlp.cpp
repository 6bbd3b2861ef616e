// Messages are written by their field numbers:
// github.com/open-telemetry/opentelemetry-proto/blob/main/opentelemetry/proto/metrics/v1/metrics.proto
#include <fmt/format.h>

#include <optional>
#include <protozero/pbf_writer.hpp>
#include <utility>
#include <vector>

#include "base/text.h"
#include "model/device/sensor.h"
#include "report/metrics/machine_metrics.h"

namespace jouleprof::report {
namespace {

namespace gauge = model::gauge;
using analysis::Family;
using analysis::MachineState;
using model::DomainKind;
using protozero::pbf_writer;

constexpr std::string_view kSchemaUrl = "https://opentelemetry.io/schemas/1.36.0";
constexpr int kCumulative = 2;

// The attribute that names an entity of each family.
constexpr std::array<std::string_view, analysis::kFamilies> kKeys{
    "process.pid", "container.id", "k8s.pod.uid", "hpc.job.id", "systemd.unit", "user.id"};

void add_attribute(pbf_writer& to, std::uint32_t field, std::string_view key,
                   std::string_view value) {
  if (value.empty()) return;
  pbf_writer pair(to, field);
  pair.add_string(1, key.data(), key.size());
  std::string text(value);
  mend_utf8(text);
  pbf_writer any(pair, 2);
  any.add_string(1, text);
}

std::uint64_t nanoseconds(RealTime t) {
  return static_cast<std::uint64_t>(t.time_since_epoch().count());
}

using Attributes = std::vector<std::pair<std::string_view, std::string>>;

struct Point {
  Attributes attributes;
  double value = 0;
  std::optional<RealTime> since = {};
};

struct Metric {
  std::string_view name;
  std::string_view unit;
  std::string_view description;
  enum Kind { kCounter, kUpDown, kGauge } kind = kGauge;
};

std::string_view hardware_type(DomainKind kind) {
  switch (kind) {
    case DomainKind::kGpu:
      return "gpu";
    case DomainKind::kCpu:
    case DomainKind::kCpuCores:
    case DomainKind::kCpuUncore:
      return "cpu";
    case DomainKind::kDram:
    case DomainKind::kGpuMemory:
      return "memory";
    default:
      return model::to_string(kind);
  }
}

// Unique within the machine: a part of a board has the board's UUID.
std::string hardware_id(const model::Domain& domain) {
  if (domain.kind == DomainKind::kGpu && !domain.uuid.empty()) return domain.uuid;
  return fmt::format("{} {}", model::to_string(domain.kind), domain.device);
}

class Writer {
 public:
  Writer(const MachineState& state, const analysis::EnergyAccounts& accounts,
         const OtlpOptions& options, pbf_writer& scope)
      : state_(state), accounts_(accounts), options_(options), scope_(scope) {}

  void write() {
    // The energy of a whole host has names of its own, so that it is not added to its parts.
    for (const bool is_host : {false, true}) energies(is_host);
    for (const bool is_host : {false, true}) powers(is_host);
    of_each({"hw.temperature", "Cel", "Temperature", Metric::kGauge}, gauge::kTemperature);
    of_each({"hw.gpu.utilization", "1", "Share of time in which a kernel ran", Metric::kGauge},
            gauge::kGpuUtilisation);
    of_each({"hw.gpu.memory.usage", "By", "Used memory of the GPU", Metric::kUpDown},
            gauge::kMemoryUsed, DomainKind::kGpu);
    of_each({"jouleprof.power.limit", "W", "Power limit", Metric::kGauge}, gauge::kPowerLimit);
    statuses();
    for (const auto family : analysis::kAllFamilies) entities(family);
    unattributed();
    metric({"jouleprof.missing_time", "s", "Time between services in which nothing was measured",
            Metric::kCounter},
           {{{}, seconds(state_.missing_time), state_.started.real}});
  }

 private:
  std::size_t count() const { return state_.snapshot.domains.size(); }
  const model::DomainSnapshot& snapshot(std::size_t d) const { return state_.snapshot.domains[d]; }
  bool is_shown(model::Provenance p) const {
    return options_.estimates || p != model::Provenance::kEstimated;
  }
  bool has_energy(std::size_t d) const {
    return state_.domains[d].counted && is_shown(state_.domains[d].provenance);
  }
  bool is_host(std::size_t d) const { return snapshot(d).domain.kind == DomainKind::kPlatform; }
  RealTime since(std::size_t d) const { return state_.since(accounts_.domains()[d]); }

  Attributes hardware(std::size_t d) const {
    const auto& domain = snapshot(d).domain;
    Attributes out{{"hw.id", hardware_id(domain)},
                   {"hw.type", std::string(hardware_type(domain.kind))},
                   {"hw.name", domain.device},
                   {"hw.model", domain.name},
                   {"jouleprof.domain", std::string(model::to_string(domain.kind))}};
    for (std::size_t p = 0; domain.parent && p < count(); ++p) {
      const auto& parent = snapshot(p).domain;
      if (parent.id == *domain.parent) out.emplace_back("hw.parent", hardware_id(parent));
    }
    return out;
  }

  Attributes with_provenance(Attributes attributes, model::Provenance p) const {
    attributes.emplace_back("jouleprof.provenance", std::string(model::to_string(p)));
    return attributes;
  }

  void metric(const Metric& metric, const std::vector<Point>& points) {
    if (points.empty()) return;
    pbf_writer out(scope_, 2);
    out.add_string(1, metric.name.data(), metric.name.size());
    out.add_string(2, metric.description.data(), metric.description.size());
    out.add_string(3, metric.unit.data(), metric.unit.size());
    pbf_writer data(out, metric.kind == Metric::kGauge ? 5 : 7);
    for (const auto& point : points) {
      pbf_writer number(data, 1);
      if (metric.kind == Metric::kCounter) {
        number.add_fixed64(2, nanoseconds(point.since.value_or(state_.started.real)));
      }
      number.add_fixed64(3, nanoseconds(state_.snapshot.time));
      number.add_double(4, point.value);
      for (const auto& [key, value] : point.attributes) add_attribute(number, 7, key, value);
    }
    if (metric.kind == Metric::kGauge) return;
    data.add_enum(2, kCumulative);
    data.add_bool(3, metric.kind == Metric::kCounter);
  }

  void energies(bool of_host) {
    std::vector<Point> points;
    for (std::size_t d = 0; d < count(); ++d) {
      if (!has_energy(d) || is_host(d) != of_host) continue;
      points.push_back({with_provenance(hardware(d), state_.domains[d].provenance),
                        accounts_.domains()[d].total.joules(), since(d)});
    }
    metric({of_host ? "hw.host.energy" : "hw.energy", "J", "Energy since the start of the counter",
            Metric::kCounter},
           points);
  }

  void powers(bool of_host) {
    std::vector<Point> points;
    for (std::size_t d = 0; d < count(); ++d) {
      const auto& s = snapshot(d);
      if (!s.power || !is_shown(s.provenance) || is_host(d) != of_host) continue;
      points.push_back({with_provenance(hardware(d), s.provenance), s.power->watts()});
    }
    metric({of_host ? "hw.host.power" : "hw.power", "W", "Power", Metric::kGauge}, points);
  }

  void of_each(const Metric& of, std::string_view name, std::optional<DomainKind> kind = {}) {
    std::vector<Point> points;
    for (std::size_t d = 0; d < count(); ++d) {
      if (kind && snapshot(d).domain.kind != *kind) continue;
      if (const auto value = snapshot(d).gauge(name)) points.push_back({hardware(d), *value});
    }
    metric(of, points);
  }

  void statuses() {
    std::vector<Point> points;
    for (std::size_t d = 0; d < count(); ++d) {
      const bool reports = state_.domains[d].reported;
      for (const auto& [word, is_so] : {std::pair{"ok", reports}, std::pair{"failed", !reports}}) {
        auto attributes = hardware(d);
        attributes.emplace_back("hw.state", word);
        points.push_back({std::move(attributes), is_so ? 1.0 : 0.0});
      }
    }
    metric({"hw.status", "1", "Whether the sensors of the energy reported everything",
            Metric::kUpDown},
           points);
  }

  // Dynamic energy, where levels are known. With the reasons it sums to the whole.
  void entities(Family family) {
    const auto* const account = accounts_.family(family);
    const auto index = static_cast<std::size_t>(family);
    if (account == nullptr || !options_.families[index]) return;
    std::vector<Point> points;
    const auto add = [&](std::size_t d, std::string_view key, std::string value, Energy energy,
                         RealTime begin) {
      auto attributes = with_provenance(hardware(d), state_.domains[d].provenance);
      attributes.emplace_back(key, std::move(value));
      points.push_back({std::move(attributes), energy.joules(), begin});
    };
    for (std::size_t d = 0; d < count(); ++d) {
      if (!has_energy(d) || !state_.domains[d].divided) continue;
      for (const auto& [key, entity] : account->entities) {
        const auto& series = entity.energies[d];
        if (series) add(d, kKeys[index], key, series->energy, state_.real(series->since));
      }
      add(d, "jouleprof.reason", "outside", account->outside[d], since(d));
      add(d, "jouleprof.reason", "undivided", account->undivided[d], since(d));
      add(d, "jouleprof.reason", "other", account->other[d], since(d));
      add(d, "jouleprof.reason", "ended", account->ended[d], since(d));
    }
    const auto name = fmt::format("jouleprof.{}.energy", to_string(family));
    metric({name, "J", "Energy of each, of a domain with known levels its dynamic energy",
            Metric::kCounter},
           points);
  }

  void unattributed() {
    std::vector<Point> points;
    std::vector<Point> rest;
    for (std::size_t d = 0; d < count(); ++d) {
      if (!has_energy(d) || !state_.domains[d].divided) continue;
      const auto& account = accounts_.domains()[d];
      const auto attributes = with_provenance(hardware(d), state_.domains[d].provenance);
      points.push_back({attributes, account.unattributed.joules(), since(d)});
      if (account.rest) rest.push_back({attributes, account.rest->joules(), since(d)});
    }
    metric({"jouleprof.unattributed.energy", "J", "Energy of no known process", Metric::kCounter},
           points);
    metric({"jouleprof.rest.energy", "J", "Energy at rest", Metric::kCounter}, rest);
  }

  const MachineState& state_;
  const analysis::EnergyAccounts& accounts_;
  const OtlpOptions& options_;
  pbf_writer& scope_;
};

}  // namespace

std::string machine_otlp(const MachineState& state, const analysis::EnergyAccounts& accounts,
                         const OtlpOptions& options) {
  std::string bytes;
  {
    pbf_writer request(bytes);
    pbf_writer machine(request, 1);
    {
      pbf_writer resource(machine, 1);
      add_attribute(resource, 1, "service.name", "jouleprof");
      add_attribute(resource, 1, "service.version", options.version);
      add_attribute(resource, 1, "service.instance.id", options.host);
      add_attribute(resource, 1, "host.name", options.host);
    }
    {
      pbf_writer scope_metrics(machine, 2);
      {
        pbf_writer scope(scope_metrics, 1);
        scope.add_string(1, "jouleprof");
        scope.add_string(2, options.version.data(), options.version.size());
      }
      Writer(state, accounts, options, scope_metrics).write();
    }
    machine.add_string(3, kSchemaUrl.data(), kSchemaUrl.size());
  }
  return bytes;
}

}  // namespace jouleprof::report
