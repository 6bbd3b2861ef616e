#include "meters/estimate/estimate_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "meters/cpu_model.h"

namespace jouleprof::meters {
namespace {

constexpr Duration kShortestPeriod = std::chrono::milliseconds{100};
constexpr Duration kUsualPeriod = std::chrono::seconds{1};
// Of /proc/stat: its first line at least.
constexpr std::size_t kFirstLine = 512;
constexpr std::int64_t kFewestTicks = 2;
constexpr Duration kSecond = std::chrono::seconds{1};

constexpr std::string_view kNoDram =
    "no readable sensor, and no estimate: DRAM power follows memory traffic, which the load does "
    "not show";

// The logical CPUs online: /proc/stat has a line "cpu<n>" for each.
int count_cpus(std::string_view proc_stat) {
  int count = 0;
  for (const std::string_view line : split(proc_stat, '\n')) {
    if (line.size() > 3 && line.starts_with("cpu") && line[3] >= '0' && line[3] <= '9') ++count;
  }
  return count;
}

// What the estimate rests on: it stands wherever the sensor is named.
std::string model_name(int cpus, Power tdp, bool is_given) {
  std::string name = fmt::format(
      "load model of {} at {:.3g} W{}, {}", counted(static_cast<std::size_t>(cpus), "logical CPU"),
      tdp.watts() / cpus, cpus == 1 ? "" : " each", is_given ? "given" : "assumed");
  if (!estimate::is_plausible_tdp(Power::watts(tdp.watts() / cpus))) {
    name += fmt::format("; implausible: processors have {:g} to {:g} W",
                        estimate::kLeastTdpPerCpu.watts(), estimate::kMostTdpPerCpu.watts());
  }
  return name;
}

constexpr std::size_t kLargestFile = 4096;
constexpr Duration kOldest = std::chrono::minutes{1};
constexpr Duration kMostAhead = std::chrono::seconds{2};

}  // namespace

Result<std::unique_ptr<EstimateMeter>> EstimateMeter::open(const EstimateOptions& options) {
  if (options.cpu_tdp && !(std::isfinite(options.cpu_tdp->watts()) && *options.cpu_tdp > Power{})) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("a CPU's design power must be above 0 W, not {}", options.cpu_tdp->watts()));
  }
  auto text = read_file(options.root / "proc/stat");
  if (!text) return forward_error(text);
  const int cpus = count_cpus(*text);
  if (cpus == 0) {
    return fail(Errc::kCorrupt,
                fmt::format("{} lists no processor", (options.root / "proc/stat").string()));
  }
  CpuModel cpu = read_cpu_model(options.root);
  const Power tdp =
      options.cpu_tdp.value_or(cpus * estimate::default_tdp_per_cpu(cpu.vendor, cpu.name));
  std::unique_ptr<EstimateMeter> meter(new EstimateMeter(options, std::move(cpu.name), tdp, cpus));
  auto now = meter->read_cpu_time();
  if (!now) return forward_error(now);
  meter->last_ = *now;
  meter->last_at_ = meter->clock_();
  return meter;
}

EstimateMeter::EstimateMeter(const EstimateOptions& options, std::string cpu_name, Power tdp,
                             int cpus)
    : proc_stat_(options.root / "proc/stat"),
      clock_(options.clock),
      ticks_per_second_(options.ticks_per_second),
      model_(tdp, cpus) {
  const Duration wanted = options.demand.poll_period > Duration{}
                              ? options.demand.poll_period
                              : std::min(kUsualPeriod, options.demand.shortest_window / 5);
  probes_.push_back({"CPU load", std::max(kShortestPeriod, wanted)});

  const auto cpu = add_domain(model::DomainKind::kCpu, "package-0", std::move(cpu_name)).id;
  if (!options.has_dram) {
    add_domain(model::DomainKind::kDram, "package-0", "DRAM").unavailable_reason = kNoDram;
    missing_.push_back({"DRAM", {Errc::kUnsupported, std::string(kNoDram)}, ""});
  }

  model::Sensor& sensor = add_sensor(cpu, model::SensorKind::kPowerInstant,
                                     model_name(cpus, tdp, options.cpu_tdp.has_value()));
  sensor.provenance = model::Provenance::kEstimated;
  sensor.traits.refresh = probes_[0].period;
  sensor.traits.window = probes_[0].period;
  sensor.traits.lag = Duration::zero();
  sensor.traits.scale = model::ScaleError::symmetric(
      options.cpu_tdp ? estimate::kGainErrorKnownTdp : estimate::kGainErrorDefaultTdp);
}

Result<estimate::CpuTime> EstimateMeter::read_cpu_time() {
  auto text = proc_stat_.read(kFirstLine);
  if (!text) return forward_error(text);
  return estimate::parse_cpu_time(*text, ticks_per_second_);
}

HostTime EstimateMeter::read(std::size_t index, model::Readings& out) {
  const model::SensorId sensor = sensors_.at(index).id;
  auto time = read_cpu_time();
  const HostTime now = clock_();
  const HostTime next = now + probes_[index].period;
  if (!time) {
    out.failures.push_back({sensor, now, std::move(time.error())});
    return next;
  }
  const Duration interval = now - last_at_;
  const bool went_back = time->busy < last_.busy;
  if (!went_back && interval < kFewestTicks * kSecond / ticks_per_second_) return next;
  if (went_back) {
    out.failures.push_back(
        {sensor, now, {Errc::kCorrupt, "the CPU time of /proc/stat went backwards"}});
  } else {
    out.powers.push_back({sensor, now, model_.mean_power(time->busy - last_.busy, interval)});
  }
  last_ = *time;
  last_at_ = now;
  return next;
}

}  // namespace jouleprof::meters

namespace jouleprof::meters::estimate {

Result<CpuTime> parse_cpu_time(std::string_view proc_stat, long ticks_per_second) {
  // man 5 proc: user nice system idle iowait irq softirq steal guest guest_nice. Guests are in user
  // and nice already.
  constexpr std::array<std::size_t, 5> kBusyFields{1, 2, 3, 6, 7};
  const auto fields = split_blanks(proc_stat.substr(0, proc_stat.find('\n')));
  if (fields.size() <= kBusyFields.back() || fields[0] != "cpu") {
    return fail(Errc::kCorrupt, "/proc/stat does not begin with the CPU times");
  }
  std::int64_t ticks = 0;
  for (const std::size_t i : kBusyFields) {
    const auto value = parse_integer(fields[i]);
    if (!value || *value < 0) {
      return fail(Errc::kCorrupt, "/proc/stat holds a CPU time that is no number");
    }
    ticks += *value;
  }
  return CpuTime{Duration{ticks * (std::chrono::nanoseconds::period::den / ticks_per_second)}};
}

Power default_tdp_per_cpu(std::string_view vendor, std::string_view model_name) {
  if (model_name.find("EPYC") != std::string_view::npos) return Power::watts(2.2);
  // x86 kernels name a vendor, ARM kernels do not.
  if (vendor.empty()) return Power::watts(2.5);
  return Power::watts(4.0);
}

}  // namespace jouleprof::meters::estimate

namespace jouleprof::meters {

Result<std::unique_ptr<GuestMeter>> GuestMeter::open(const GuestOptions& options) {
  const auto text = read_file(options.file, kLargestFile);
  if (!text) return forward_error(text);
  auto file = model::parse_guest_file(*text);
  if (!file) {
    return fail(file.error().code,
                fmt::format("{}: {}", options.file.string(), file.error().message));
  }
  if (file->energies.empty()) {
    return fail(Errc::kUnsupported,
                fmt::format("{}: the host has no energy of its CPU", options.file.string()));
  }
  std::unique_ptr<GuestMeter> meter(new GuestMeter(options));
  for (const auto& [kind, energy] : file->energies) {
    const auto domain = meter->add_domain(kind, "package-0", "share of the host").id;
    model::Sensor& sensor =
        meter->add_sensor(domain, model::SensorKind::kPowerInstant, "guest-file");
    sensor.provenance = model::Provenance::kEstimated;
    sensor.traits.refresh = model::kGuestPeriod;
    sensor.traits.window = model::kGuestPeriod;
    sensor.traits.lag = Duration::zero();
    // Energy that follows CPU time is wrong by as much as that of the model of a known processor.
    sensor.traits.scale = model::ScaleError::symmetric(estimate::kGainErrorKnownTdp);
  }
  meter->probes_.push_back({"the host's share", model::kGuestPeriod / 2});
  meter->last_ = std::move(*file);
  return meter;
}

HostTime GuestMeter::read(std::size_t, model::Readings& out) {
  const ClockPoint now = options_.clock();
  const HostTime next = now.host + probes_[0].period;
  const auto fail_all = [&](const Error& error) {
    for (const auto& sensor : sensors_) out.failures.push_back({sensor.id, now.host, error});
    return next;
  };
  const auto text = read_file(options_.file, kLargestFile);
  if (!text) return fail_all(text.error());
  auto file = model::parse_guest_file(*text);
  if (!file) return fail_all(file.error());
  const Duration age = now.real - file->time;
  if (age > kOldest || age < -kMostAhead) {
    return fail_all(
        {Errc::kUnavailable,
         fmt::format("the host wrote its file {:.0f} s {} by the guest's clock: the "
                     "service on the host has ended, or the clocks differ",
                     seconds(age < Duration{} ? -age : age), age < Duration{} ? "ahead" : "ago")});
  }
  const Duration interval = file->time - last_.time;
  if (interval <= Duration{}) return next;
  for (const auto& sensor : sensors_) {
    const auto& domain = domains_.at(static_cast<std::size_t>(sensor.domain));
    const auto used = file->energy(domain.kind);
    const auto before = last_.energy(domain.kind);
    // The host's service, or the virtual machine, began anew.
    if (!used || !before || *used < *before) continue;
    out.powers.push_back(
        {sensor.id, now.host - age, Power::watts((*used - *before).joules() / seconds(interval))});
  }
  last_ = std::move(*file);
  return next;
}

}  // namespace jouleprof::meters
