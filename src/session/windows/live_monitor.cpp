#include "session/windows/live_monitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "session/windows/live_core.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr Duration kProcessPeriod = 900ms;  // of those on GPUs, of a recording
constexpr Duration kFirstReadings = 1s;     // the longest that open() waits for them

// Why nothing can be measured.
std::string reasons(const std::vector<model::Domain>& domains) {
  std::string text;
  for (const auto& domain : domains) {
    if (domain.unavailable_reason.empty()) continue;
    if (!text.empty()) text += "; ";
    const bool is_board = domain.kind == model::DomainKind::kGpu;
    text += fmt::format("{}{}: {}", is_board ? "" : fmt::format("{} ", to_string(domain.kind)),
                        domain.device, domain.unavailable_reason);
  }
  return text.empty() ? "no sensor was found" : text;
}

}  // namespace

Result<std::unique_ptr<LiveMonitor>> LiveMonitor::open(
    LiveOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
  auto joined = joined_domains(meters);
  const auto choice = choose_devices(joined, options.devices, options.environment);
  if (!choice) return forward_error(choice);
  const Duration process_period = options.open_sink ? kProcessPeriod : Duration{};
  Sampler sampler(std::move(meters), process_period, [&](const model::Domain& domain) {
    return choice->chosen[static_cast<std::size_t>(domain.id)];
  });
  const bool any = std::any_of(sampler.sensors().begin(), sampler.sensors().end(),
                               [](auto& s) { return s.kind != model::SensorKind::kGauge; });
  if (!any) {
    return fail(Errc::kUnavailable,
                fmt::format("nothing can be measured here ({}); `jouleprof doctor` says what would "
                            "help",
                            reasons(sampler.domains())));
  }
  std::unique_ptr<Sink> sink;
  if (options.open_sink) {
    auto opened = options.open_sink();
    if (!opened) return forward_error(opened);
    sink = std::move(*opened);
  }
  auto domains = sampler.domains();
  for (auto& domain : domains) domain.visible = joined[static_cast<std::size_t>(domain.id)].visible;
  auto core = std::make_unique<LiveCore>(
      LiveCoreOptions{options.history, std::move(options.tool_version), std::move(sink)},
      std::move(sampler), std::move(domains), choice->visibility.warnings);
  core->wait_for(HostClock::now(), kFirstReadings);
  return std::unique_ptr<LiveMonitor>(new LiveMonitor(std::move(core), choice->visibility.order));
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

void LiveMonitor::begin(const spans::OpenWindow& window) noexcept { core_->begin(window); }

void LiveMonitor::forget(const spans::OpenWindow& window) noexcept { core_->forget(window); }

void LiveMonitor::add(const spans::WindowRecord& window) noexcept { core_->add(window); }

Result<EnergySource::Energies> LiveMonitor::energy(HostTime begin, HostTime end, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->energy(begin, end, timeout);
}

Result<analysis::WindowTotal> LiveMonitor::total(std::uint32_t name, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->total(name, timeout);
}

Result<model::Snapshot> LiveMonitor::snapshot() {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  return core_->snapshot();
}

std::vector<std::string> LiveMonitor::warnings() {
  return in_forked_child() ? std::vector<std::string>{} : core_->warnings();
}

}  // namespace jouleprof::session
