// jouleprof_monitor_* and jouleprof_window_*.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "apps/lib/status.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "jouleprof/jouleprof.h"
#include "meters/all/open_meters.h"
#include "recording/writer.h"
#include "session/windows/live_monitor.h"
#include "session/windows/run_monitor.h"
#include "session/windows/window_protocol.h"

using jouleprof::Duration;
using jouleprof::Errc;
using jouleprof::HostTime;
using jouleprof::Result;
using jouleprof::lib::copy_text;
using jouleprof::lib::fail;

struct jouleprof_monitor {
  std::unique_ptr<jouleprof::recording::Writer> log;  // outlives what writes to it
  std::unique_ptr<jouleprof::session::EnergySource> source;
  std::vector<int> visible_indices;  // by domain
  std::string kind;
  pid_t pid = 0;
};

namespace {

using namespace std::chrono_literals;
using jouleprof::session::EnergySource;
namespace model = jouleprof::model;

constexpr Duration kShortestWindow = 50ms;
constexpr Duration kHistory = 10min;
constexpr Duration kEnergyTimeout = 5s;
constexpr Duration kTotalTimeout = 10s;

HostTime host(int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

Duration timeout_of(int64_t nanoseconds, Duration otherwise) {
  return nanoseconds < 0 ? otherwise : Duration{nanoseconds};
}

std::vector<std::string> words_of(const char* list) {
  std::vector<std::string> words;
  if (list == nullptr) return words;
  for (const auto word : jouleprof::split(list, ',')) words.emplace_back(jouleprof::trim(word));
  return words;
}

// Fields that a caller built against an older header does not have are zero.
jouleprof_monitor_options complete(const jouleprof_monitor_options* given) {
  jouleprof_monitor_options options{};
  if (given != nullptr) std::memcpy(&options, given, std::min(given->size, sizeof(options)));
  return options;
}

int gpu_index(const model::Domain& domain) {
  const bool board = domain.kind == model::DomainKind::kGpu && !domain.parent;
  if (!board || !domain.device.starts_with("gpu")) return -1;
  const auto number = jouleprof::parse_integer(domain.device.substr(3));
  return number ? static_cast<int>(*number) : -1;
}

Result<void> open_own(const jouleprof_monitor_options& options, jouleprof_monitor& monitor) {
  jouleprof::meters::MeterOptions choice;
  choice.demand.shortest_window = options.shortest_window_nanoseconds > 0
                                      ? Duration{options.shortest_window_nanoseconds}
                                      : kShortestWindow;
  jouleprof::session::LiveOptions live;
  if (options.history_nanoseconds > 0) live.history = Duration{options.history_nanoseconds};
  live.tool_version = JOULEPROF_VERSION;
  live.devices = words_of(options.devices);
  auto found = jouleprof::meters::open_meters(choice);
  if (!found) return forward_error(found);
  if (options.log != nullptr) {
    if (options.overwrite == 0 && access(options.log, F_OK) == 0) {
      return jouleprof::fail(
          Errc::kInvalidArgument,
          std::string(options.log) + " exists; choose another name for the log or set overwrite");
    }
    auto writer =
        jouleprof::recording::Writer::create(options.log, {.overwrite = options.overwrite != 0});
    if (!writer) return forward_error(writer);
    monitor.log = std::make_unique<jouleprof::recording::Writer>(std::move(*writer));
    live.sink = std::make_unique<jouleprof::session::WriterSink<jouleprof::recording::Writer>>(
        *monitor.log);
  }
  auto opened = jouleprof::session::LiveMonitor::open(std::move(live), std::move(found->meters));
  if (!opened) {
    if (monitor.log) unlink(options.log);
    return forward_error(opened);
  }
  monitor.source = std::move(*opened);
  return {};
}

// The timeline of a `jouleprof run` around this program. False: there is none that answers, and a
// sampler of its own does as well.
Result<bool> open_run(const jouleprof_monitor_options& options, jouleprof_monitor& monitor) {
  const char* const socket = std::getenv(jouleprof::session::kSessionVariable);
  const bool around = socket != nullptr && *socket != '\0';
  if (!around || options.own_sampler != 0 || options.log != nullptr) return false;
  auto connected = jouleprof::session::RunMonitor::connect(
      socket, {.devices = words_of(options.devices),
               .environment = jouleprof::session::process_environment});
  if (connected) {
    monitor.source = std::move(*connected);
    return true;
  }
  if (connected.error().code == Errc::kInvalidArgument) return forward_error(connected);
  return false;
}

void to_c(const Result<model::Measurement>& m, jouleprof_energy& out) {
  out = {};
  if (!m) {
    out.provenance = JOULEPROF_UNAVAILABLE_FIGURE;
    copy_text(m.error().message, out.reason, sizeof(out.reason));
    return;
  }
  out.provenance = jouleprof::lib::to_c(m->provenance);
  out.energy_microjoules = m->energy.microjoules();
  out.error_microjoules = m->error.microjoules();
  out.repeatability_microjoules = m->repeatability.microjoules();
  copy_text(m->sensor, out.sensor, sizeof(out.sensor));
  copy_text(m->method, out.method, sizeof(out.method));
}

}  // namespace

jouleprof_status jouleprof_monitor_open(const jouleprof_monitor_options* given,
                                        jouleprof_monitor** monitor, char* error,
                                        size_t error_size) {
  if (monitor == nullptr || (given != nullptr && given->size == 0)) {
    return fail({Errc::kInvalidArgument,
                 "monitor must not be NULL, and options.size must be sizeof(options)"},
                error, error_size);
  }
  *monitor = nullptr;
  const jouleprof_monitor_options options = complete(given);
  auto made = std::make_unique<jouleprof_monitor>();
  const auto joined = open_run(options, *made);
  if (!joined) return fail(joined.error(), error, error_size);
  if (!*joined) {
    if (auto ok = open_own(options, *made); !ok) return fail(ok.error(), error, error_size);
  }
  made->kind = made->source->kind();
  made->pid = getpid();
  const auto& order = made->source->visible_boards();
  for (const auto& domain : made->source->domains()) {
    const auto place = std::find(order.begin(), order.end(), domain.id);
    made->visible_indices.push_back(place != order.end() ? static_cast<int>(place - order.begin())
                                                         : -1);
  }
  *monitor = made.release();
  return JOULEPROF_OK;
}

void jouleprof_monitor_close(jouleprof_monitor* monitor) {
  if (monitor == nullptr) return;
  // A forked child has none of the threads, and locks as they were: there is nothing to end.
  if (monitor->pid != getpid()) return;
  delete monitor;
}

size_t jouleprof_monitor_domain_count(const jouleprof_monitor* monitor) {
  return monitor->source->domains().size();
}

jouleprof_status jouleprof_monitor_domain(const jouleprof_monitor* monitor, size_t index,
                                          jouleprof_domain* domain) {
  const auto& domains = monitor->source->domains();
  if (index >= domains.size() || domain == nullptr) return JOULEPROF_INVALID_ARGUMENT;
  const auto& d = domains[index];
  *domain = {};
  domain->domain = to_string(d.kind).data();
  domain->device = d.device.c_str();
  domain->name = d.name.c_str();
  domain->uuid = d.uuid.c_str();
  domain->reason = d.unavailable_reason.c_str();
  domain->visible_index = monitor->visible_indices[index];
  domain->gpu_index = gpu_index(d);
  return JOULEPROF_OK;
}

const char* jouleprof_monitor_source(const jouleprof_monitor* monitor) {
  return monitor->kind.c_str();
}

uint32_t jouleprof_monitor_name(jouleprof_monitor* monitor, const char* name) {
  return name != nullptr ? monitor->source->name(name) : 0;
}

int64_t jouleprof_now(void) { return jouleprof::HostClock::now().time_since_epoch().count(); }

jouleprof_window jouleprof_window_begin(uint32_t name) { return {jouleprof_now(), 0, name, 0}; }

void jouleprof_window_end(jouleprof_monitor* monitor, jouleprof_window* window) {
  window->end_nanoseconds = jouleprof_now();
  monitor->source->add(
      {window->begin_nanoseconds, window->end_nanoseconds, window->name, window->flags});
}

jouleprof_status jouleprof_window_add(jouleprof_monitor* monitor, const jouleprof_window* window) {
  if (window->end_nanoseconds == 0 || window->end_nanoseconds < window->begin_nanoseconds) {
    return JOULEPROF_INVALID_ARGUMENT;
  }
  monitor->source->add(
      {window->begin_nanoseconds, window->end_nanoseconds, window->name, window->flags});
  return JOULEPROF_OK;
}

jouleprof_status jouleprof_window_energy(jouleprof_monitor* monitor, const jouleprof_window* window,
                                         int64_t timeout_nanoseconds, jouleprof_energy* energies,
                                         char* error, size_t error_size) {
  if (window->end_nanoseconds == 0) {
    return fail({Errc::kInvalidArgument, "the window is still open; end it first"}, error,
                error_size);
  }
  const auto found =
      monitor->source->energy(host(window->begin_nanoseconds), host(window->end_nanoseconds),
                              timeout_of(timeout_nanoseconds, kEnergyTimeout));
  if (!found) return fail(found.error(), error, error_size);
  for (size_t i = 0; i < found->size(); ++i) to_c((*found)[i], energies[i]);
  return JOULEPROF_OK;
}

jouleprof_status jouleprof_monitor_total(jouleprof_monitor* monitor, uint32_t name,
                                         int64_t timeout_nanoseconds, jouleprof_total* total,
                                         jouleprof_energy* energies, char* error,
                                         size_t error_size) {
  const auto found = monitor->source->total(name, timeout_of(timeout_nanoseconds, kTotalTimeout));
  if (!found) return fail(found.error(), error, error_size);
  *total = {found->count, found->length.count(), found->resolved_count};
  for (size_t i = 0; i < found->energies.size(); ++i) to_c(found->energies[i], energies[i]);
  return JOULEPROF_OK;
}
