#include "session/windows/live_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "session/windows/live_core.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstReadings = 1s;  // what open() waits for them at most

// Why nothing can be measured.
std::string reasons(const std::vector<model::Domain>& domains) {
  std::string text;
  for (const auto& domain : domains) {
    if (domain.unavailable_reason.empty()) continue;
    if (!text.empty()) text += "; ";
    text += fmt::format("{}: {}", domain.device, domain.unavailable_reason);
  }
  return text.empty() ? "no sensor was found" : text;
}

}  // namespace

Result<std::unique_ptr<LiveMonitor>> LiveMonitor::open(
    LiveOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
  auto joined = joined_domains(meters);
  const auto selected = select_devices(joined, options.devices);
  if (!selected) return tl::unexpected(selected.error());
  const auto visibility = apply_visibility(joined, options.environment);
  std::vector<bool> keep(joined.size());
  for (std::size_t i = 0; i < joined.size(); ++i) {
    // Whoever names a device wants it, whether CUDA sees it or not.
    keep[i] = (*selected)[i] && (joined[i].visible || !options.devices.empty());
  }
  Sampler sampler(std::move(meters), Duration{}, [&](const model::Domain& domain) {
    return keep[static_cast<std::size_t>(domain.id)];
  });
  const bool any = std::any_of(sampler.sensors().begin(), sampler.sensors().end(),
                               [](auto& s) { return s.kind != model::SensorKind::kGauge; });
  if (!any) {
    return fail(Errc::kUnavailable,
                fmt::format("nothing can be measured here ({}); `jouleprof doctor` says what would "
                            "help",
                            reasons(sampler.domains())));
  }
  auto domains = sampler.domains();
  for (auto& domain : domains) domain.visible = joined[static_cast<std::size_t>(domain.id)].visible;
  auto core = std::make_unique<LiveCore>(
      LiveCoreOptions{options.history, std::move(options.tool_version), std::move(options.sink)},
      std::move(sampler), std::move(domains), visibility.warnings);
  core->wait_for(HostClock::now(), kFirstReadings);
  return std::unique_ptr<LiveMonitor>(new LiveMonitor(std::move(core), visibility.order));
}

LiveMonitor::LiveMonitor(std::unique_ptr<LiveCore> core,
                         std::vector<model::DomainId> visible_boards)
    : visible_boards_(std::move(visible_boards)), core_(std::move(core)) {}

LiveMonitor::~LiveMonitor() {
  if (in_forked_child()) (void)core_.release();
}

const std::vector<model::Domain>& LiveMonitor::domains() const { return core_->domains(); }

std::uint32_t LiveMonitor::name(std::string_view text) {
  return check_process() ? core_->name(text) : 0;
}

void LiveMonitor::add(const spans::WindowRecord& window) noexcept { core_->add(window); }

Result<EnergySource::Energies> LiveMonitor::energy(HostTime begin, HostTime end, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->energy(begin, end, timeout);
}

Result<analysis::WindowTotal> LiveMonitor::total(std::uint32_t name, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->total(name, timeout);
}

}  // namespace jouleprof::session
