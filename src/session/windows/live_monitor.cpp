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
  auto choice = choose_devices(joined, options.devices, options.environment);
  if (!choice) return forward_error(choice);
  if (!options.devices.is_named()) {
    for (const auto id : options.not_measured)
      choice->chosen.at(static_cast<std::size_t>(id)) = false;
  }
  const Duration process_period = options.open_sink ? kProcessPeriod : Duration{};
  Sampler sampler(std::move(meters), process_period, [&](const model::Domain& domain) {
    return choice->chosen[static_cast<std::size_t>(domain.id)];
  });
  const bool any = std::any_of(sampler.sensors().begin(), sampler.sensors().end(),
                               [](auto& s) { return s.kind != model::SensorKind::kGauge; });
  const bool is_under_run = !options.session.empty();
  if (!any && !is_under_run) {
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
  std::unique_ptr<WindowHandover> handover;
  if (is_under_run) {
    std::vector<model::DomainId> ids;
    for (const auto& domain : domains) ids.push_back(domain.id);
    auto connected = WindowHandover::connect(options.session, std::move(ids));
    if (!connected) return forward_error(connected);
    handover = std::move(*connected);
  }
  for (auto& domain : domains) domain.visible = joined[static_cast<std::size_t>(domain.id)].visible;
  auto core = std::make_unique<LiveCore>(
      LiveCoreOptions{.history = options.history,
                      .tool_version = std::move(options.tool_version),
                      .sink = std::move(sink),
                      .handover = std::move(handover)},
      std::move(sampler), std::move(domains),
      // The tool shows those of its command.
      is_under_run ? std::vector<std::string>{} : choice->visibility.warnings);
  // A hub that records sends what was read before.
  if (!is_under_run) core->wait_for(HostClock::now(), kFirstReadings);
  return std::unique_ptr<LiveMonitor>(
      new LiveMonitor(std::move(core), choice->visibility.order, is_under_run ? "run" : "own"));
}

LiveMonitor::LiveMonitor(std::unique_ptr<LiveCore> core,
                         std::vector<model::DomainId> visible_boards, std::string_view kind)
    : visible_boards_(std::move(visible_boards)), kind_(kind), core_(std::move(core)) {}

LiveMonitor::~LiveMonitor() {
  if (!in_forked_child()) return;
  core_->abandon();
  (void)core_.release();
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
