#include "meters/rapl/rapl_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "meters/cpu_model.h"
#include "meters/rapl/counter_watch.h"
#include "meters/rapl/powercap.h"

namespace jouleprof::meters {
namespace rapl {

std::string describe(const Place& place) {
  switch (place.kind) {
    case model::DomainKind::kCpuCores:
      return "RAPL core of " + place.package;
    case model::DomainKind::kCpuUncore:
      return "RAPL uncore of " + place.package;
    case model::DomainKind::kDram:
      return "RAPL dram of " + place.package;
    case model::DomainKind::kPlatform:
      return "RAPL psys";
    default:
      return "RAPL " + place.package;
  }
}

}  // namespace rapl

namespace {

using rapl::Place;
using rapl::Source;

constexpr std::string_view kFix =
    "Least invasive first: (1) perf events: sudo setcap cap_perfmon=ep on the jouleprof program, "
    "or "
    "sudo sysctl kernel.perf_event_paranoid=0; (2) run jouleprof as root; (3) let one group read "
    "the counters, with a udev rule such as SUBSYSTEM==\"powercap\", ACTION==\"add\", "
    "RUN+=\"/bin/chgrp GROUP /sys%p/energy_uj\", RUN+=\"/bin/chmod 0440 /sys%p/energy_uj\"; its "
    "members can then use the side channel of CVE-2020-8694.";

constexpr Duration kRefresh = std::chrono::milliseconds{1};
constexpr Duration kUsualPeriod = std::chrono::milliseconds{100};
constexpr Duration kShortPeriod = std::chrono::milliseconds{10};
constexpr Power kMaxPower = Power::watts(1000);
constexpr double kWrapMargin = 4;

// How far a domain's counter may be off. Intel since Haswell measures packages; its DRAM was found
// within 20 % (Desrochers et al., MEMSYS 2016); AMD's counter is a model of the chip (Schöne et
// al., CLUSTER 2021).
double gain_error(const Place& place, bool is_amd) {
  if (place.kind == model::DomainKind::kDram) return 0.2;
  return is_amd ? 0.1 : 0.05;
}

std::string device_of(const Place& place) {
  return place.package.empty() ? "platform" : place.package;
}

bool has_package(const Source& source) {
  return std::any_of(source.counters.begin(), source.counters.end(),
                     [](const auto& c) { return c.place.kind == model::DomainKind::kCpu; });
}

// Packages in their numerical order, each with its parts; the platform last.
auto sort_key(const Place& place) {
  std::array<std::int64_t, 2> numbers{};
  std::size_t n = 0;
  for (const std::string_view part : split(place.package, '-')) {
    const auto number = parse_integer(part);
    if (number && n < numbers.size()) numbers[n++] = *number;
  }
  return std::tuple(place.package.empty(), numbers, place.kind != model::DomainKind::kCpu,
                    place.kind);
}

Duration poll_period(const Demand& demand, const std::vector<rapl::Counter>& counters) {
  Duration period = demand.shortest_window < std::chrono::seconds{1} ? kShortPeriod : kUsualPeriod;
  if (demand.poll_period > Duration::zero()) period = demand.poll_period;
  for (const auto& counter : counters) {
    if (!counter.traits.wrap) continue;
    const double wrap_seconds = counter.traits.wrap->joules() / kMaxPower.watts();
    period = std::min(period, duration_of(wrap_seconds / kWrapMargin));
  }
  return period;
}

// One reason for all: the first, for they rarely differ, and how many there were.
std::string reason_of(const Result<Source>& source) {
  if (!source) return source.error().message;
  if (source->unreadable.empty()) {
    return source->ignored.empty() ? "no package counter" : source->ignored.front().error.message;
  }
  const std::size_t n = source->unreadable.size();
  const std::string& first = source->unreadable.front().error.message;
  return n == 1 ? first : fmt::format("{} (and {} more)", first, n - 1);
}

Missing neither(const Result<Source>& powercap, const Result<Source>& perf) {
  Errc code = Errc::kUnavailable;
  for (const auto* source : {&perf, &powercap}) {
    if (!*source) continue;
    if (!(*source)->unreadable.empty()) code = (*source)->unreadable.front().error.code;
  }
  return {"RAPL",
          {code, fmt::format("powercap: {}; perf: {}", reason_of(powercap), reason_of(perf))},
          code == Errc::kPermissionDenied ? std::string(kFix) : ""};
}

}  // namespace

Result<std::unique_ptr<RaplMeter>> RaplMeter::open(const RaplOptions& options) {
  const auto sleep = [](Duration time) { std::this_thread::sleep_for(time); };
  Result<Source> powercap = rapl::open_powercap(options.root);
  if (powercap) rapl::leave_out_misleading(*powercap, options.watch, sleep);
  if (powercap && has_package(*powercap)) {
    return std::unique_ptr<RaplMeter>(new RaplMeter(std::move(*powercap), options));
  }
  Result<Source> perf = rapl::open_perf(options.root, options.open_event);
  if (perf) rapl::leave_out_misleading(*perf, options.watch, sleep);
  if (perf && has_package(*perf)) {
    return std::unique_ptr<RaplMeter>(new RaplMeter(std::move(*perf), options));
  }
  const auto absent = [](const Result<Source>& s) {
    return !s && s.error().code == Errc::kNotFound;
  };
  if (absent(powercap) && absent(perf)) {
    return fail(Errc::kNotFound,
                fmt::format("no RAPL energy counters: neither {} nor {} has any. The processor or "
                            "the virtual machine does not offer them, or the kernel modules "
                            "intel_rapl_msr and rapl are not loaded",
                            (options.root / "sys/class/powercap").string(),
                            (options.root / "sys/bus/event_source/devices/power").string()));
  }
  std::unique_ptr<RaplMeter> meter(new RaplMeter({}, options));
  meter->missing_.push_back(neither(powercap, perf));
  return meter;
}

RaplMeter::RaplMeter(Source source, const RaplOptions& options)
    : counters_(std::move(source.counters)) {
  missing_ = std::move(source.ignored);
  const auto by_place = [](const auto& a, const auto& b) {
    return sort_key(a.place) < sort_key(b.place);
  };
  std::sort(counters_.begin(), counters_.end(), by_place);
  std::sort(source.unreadable.begin(), source.unreadable.end(), by_place);

  const CpuModel cpu = read_cpu_model(options.root);
  std::vector<Place> places;
  for (const auto& counter : counters_) places.push_back(counter.place);
  for (const auto& unreadable : source.unreadable) places.push_back(unreadable.place);
  add_domains(std::move(places), cpu.name);

  for (const auto& counter : counters_) {
    model::Sensor sensor;
    sensor.id = model::SensorId{static_cast<std::uint32_t>(sensors_.size())};
    sensor.domain = find_domain(counter.place)->id;
    sensor.kind = model::SensorKind::kEnergyCounter;
    sensor.name = counter.name;
    sensor.traits = counter.traits;
    sensor.traits.refresh = kRefresh;
    sensor.traits.gain_error = gain_error(counter.place, cpu.is_amd());
    sensors_.push_back(std::move(sensor));
  }
  for (auto& [place, error] : source.unreadable) {
    find_domain(place)->unavailable_reason = error.message;
    const bool denied = error.code == Errc::kPermissionDenied;
    missing_.push_back({describe(place), std::move(error), denied ? std::string(kFix) : ""});
  }
  if (!counters_.empty()) {
    probes_.push_back({"RAPL counters", poll_period(options.demand, counters_)});
    for (const auto& sensor : sensors_) probes_.back().sensors.push_back(sensor.id);
  }
}

void RaplMeter::add_domains(std::vector<Place> places, const std::string& cpu_name) {
  // A package comes before its parts, which need its id.
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return sort_key(a) < sort_key(b); });
  for (const Place& place : places) {
    model::Domain domain;
    domain.id = model::DomainId{static_cast<std::uint32_t>(domains_.size())};
    domain.kind = place.kind;
    domain.device = device_of(place);
    domain.name = cpu_name;
    if (place.kind == model::DomainKind::kDram) domain.name = "DRAM of " + place.package;
    if (place.kind == model::DomainKind::kPlatform) domain.name = "Platform (psys)";
    if (place.kind == model::DomainKind::kCpuCores || place.kind == model::DomainKind::kCpuUncore) {
      const auto package = find_domain({model::DomainKind::kCpu, place.package});
      if (package != domains_.end()) domain.parent = package->id;
    }
    domains_.push_back(std::move(domain));
  }
}

std::vector<model::Domain>::iterator RaplMeter::find_domain(const Place& place) {
  return std::find_if(domains_.begin(), domains_.end(), [&](const model::Domain& d) {
    return d.kind == place.kind && d.device == device_of(place);
  });
}

void RaplMeter::set_demand(const Demand& demand) {
  for (auto& probe : probes_) probe.period = poll_period(demand, counters_);
}

HostTime RaplMeter::read(std::size_t index, model::Readings& out) {
  const HostTime begin = HostClock::now();
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const HostTime before = HostClock::now();
    auto total = counters_[i].read();
    const HostTime after = HostClock::now();
    if (total) {
      out.counters.push_back({sensors_[i].id, before, after, *total});
    } else {
      out.failures.push_back({sensors_[i].id, after, std::move(total.error())});
    }
  }
  return begin + probes_.at(index).period;
}

}  // namespace jouleprof::meters
