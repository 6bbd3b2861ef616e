#include "meters/estimate/guest_meter.h"

#include <fmt/format.h>

#include <utility>

#include "base/file.h"
#include "meters/estimate/estimate_meter.h"

namespace jouleprof::meters {
namespace {

constexpr std::size_t kLargestFile = 4096;
constexpr Duration kOldest = std::chrono::minutes{1};
constexpr Duration kMostAhead = std::chrono::seconds{2};

}  // namespace

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
    model::Domain domain;
    domain.id = static_cast<model::DomainId>(meter->domains_.size());
    domain.kind = kind;
    domain.device = "package-0";
    domain.name = "share of the host";
    model::Sensor sensor;
    sensor.id = static_cast<model::SensorId>(meter->sensors_.size());
    sensor.domain = domain.id;
    sensor.kind = model::SensorKind::kPowerInstant;
    sensor.name = "guest-file";
    sensor.provenance = model::Provenance::kEstimated;
    sensor.traits.refresh = model::kGuestPeriod;
    sensor.traits.window = model::kGuestPeriod;
    sensor.traits.lag = Duration::zero();
    // Energy that follows CPU time is wrong by as much as that of the model of a known processor.
    sensor.traits.scale = model::ScaleError::symmetric(estimate::kGainErrorKnownTdp);
    meter->domains_.push_back(std::move(domain));
    meter->sensors_.push_back(std::move(sensor));
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
