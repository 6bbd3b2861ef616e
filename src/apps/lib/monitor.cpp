// jouleprof_monitor_* and jouleprof_window_*.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "apps/lib/c_interface.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "jouleprof/jouleprof.h"
#include "meters/all/open_meters.h"
#include "meters/shared/shared_meter.h"
#include "model/window_sum.h"
#include "report/json/live_json.h"
#include "session/sampling/recording_sink.h"
#include "session/sampling/sampler.h"
#include "session/windows/live_monitor.h"
#include "session/windows/shared_log.h"

using jouleprof::Duration;
using jouleprof::Errc;
using jouleprof::HostTime;
using jouleprof::Result;
using jouleprof::lib::checked;
using jouleprof::lib::copy_text;
using jouleprof::lib::fail;
using jouleprof::lib::open_handles;
using jouleprof::lib::refuse;
using jouleprof::lib::without_exceptions;

struct jouleprof_monitor {
  std::unique_ptr<jouleprof::session::EnergySource> source;
  std::unique_ptr<jouleprof::meters::HardwareWatch> watch;  // ends before the source
  std::vector<int> visible_indices;                         // by domain
  std::string kind;
  pid_t pid = 0;
};

namespace {

using namespace std::chrono_literals;
using jouleprof::session::EnergySource;
using jouleprof::session::SharedLog;
using jouleprof::session::Sink;
namespace model = jouleprof::model;

constexpr Duration kShortestWindow = 50ms;
constexpr Duration kHistory = 10min;
constexpr Duration kEnergyTimeout = 5s;
constexpr Duration kTotalTimeout = 10s;
constexpr Duration kLongestTimeout = 24h * 365 * 100;  // the clock can be added to it
constexpr Duration kLookPeriod = 5s;                   // for sensors that have appeared

HostTime host(int64_t nanoseconds) { return HostTime{Duration{nanoseconds}}; }

Duration timeout_of(int64_t nanoseconds, Duration otherwise) {
  return nanoseconds < 0 ? otherwise : std::min(Duration{nanoseconds}, kLongestTimeout);
}

std::vector<std::string> words_of(const char* list) {
  std::vector<std::string> words;
  if (list == nullptr) return words;
  for (const auto word : jouleprof::split(list, ',')) words.emplace_back(jouleprof::trim(word));
  return words;
}

jouleprof::session::DeviceChoice choice_of(const jouleprof_monitor_options& options) {
  jouleprof::session::DeviceChoice choice;
  choice.words = words_of(options.devices);
  if (options.gpu_indices == nullptr) return choice;
  const int* const end = options.gpu_indices + options.gpu_index_count;
  choice.gpus = {std::vector<int>(options.gpu_indices, end), options.gpus_only == 0};
  return choice;
}

// Fields that a caller built against an older header does not have are zero.
jouleprof_monitor_options complete(const jouleprof_monitor_options* given) {
  jouleprof_monitor_options options{};
  if (given != nullptr) std::memcpy(&options, given, std::min(given->size, sizeof(options)));
  return options;
}

Result<std::unique_ptr<Sink>> open_log(const jouleprof_monitor_options& options) {
  if (options.overwrite == 0 && access(options.log, F_OK) == 0) {
    return jouleprof::fail(
        Errc::kInvalidArgument,
        std::string(options.log) + " exists; choose another name for the log or set overwrite");
  }
  auto created = jouleprof::session::RecordingSink::create(options.log, options.overwrite != 0);
  if (!created) return forward_error(created);
  return std::move(*created);
}

// Of GPUs that appeared after the monitor was opened.
Result<std::unique_ptr<EnergySource>> open_boards_only(
    const jouleprof::meters::MeterOptions& choice, Duration history,
    const std::vector<std::string>& names, const std::shared_ptr<SharedLog>& log) {
  auto found = jouleprof::meters::open_meters(choice);
  if (!found) return forward_error(found);
  jouleprof::session::LiveOptions live;
  live.history = history;
  live.tool_version = JOULEPROF_VERSION;
  live.devices.words = names;
  if (log) live.open_sink = [&log]() -> Result<std::unique_ptr<Sink>> { return log->later(); };
  auto opened = jouleprof::session::LiveMonitor::open(std::move(live), std::move(found->meters));
  if (!opened) return forward_error(opened);
  return std::move(*opened);
}

jouleprof::meters::MeterOptions meters_of(const jouleprof_monitor_options& options) {
  jouleprof::meters::MeterOptions choice;
  choice.use_service = false;
  choice.demand.shortest_window = options.shortest_window_nanoseconds > 0
                                      ? Duration{options.shortest_window_nanoseconds}
                                      : kShortestWindow;
  return choice;
}

jouleprof::session::LiveOptions live_of(const jouleprof_monitor_options& options) {
  jouleprof::session::LiveOptions live;
  if (options.history_nanoseconds > 0) live.history = Duration{options.history_nanoseconds};
  live.tool_version = JOULEPROF_VERSION;
  live.devices = choice_of(options);
  return live;
}

Result<void> open_own(const jouleprof_monitor_options& options, jouleprof_monitor& monitor) {
  auto choice = meters_of(options);
  auto live = live_of(options);
  choice.use_service = options.own_sampler == 0;
  monitor.watch = std::make_unique<jouleprof::meters::HardwareWatch>();
  auto found = jouleprof::meters::open_meters(choice);
  if (!found) return forward_error(found);
  live.is_of_service = found->is_of_service;
  const auto all = jouleprof::session::joined_domains(found->meters);
  std::shared_ptr<SharedLog> log;
  if (options.log != nullptr) {
    live.open_sink = [&]() -> Result<std::unique_ptr<Sink>> {
      auto file = open_log(options);
      if (!file) return forward_error(file);
      log = std::make_shared<SharedLog>(std::move(*file));
      return log->first();
    };
  }
  auto opened = jouleprof::session::LiveMonitor::open(live, std::move(found->meters));
  if (!opened) return forward_error(opened);
  jouleprof::session::GrowingMonitor::OpenBoards open_boards;
  if (!live.devices.is_named()) {
    choice.use_service = false;
    open_boards = [choice, history = live.history, log](const auto& names) {
      return open_boards_only(choice, history, names, log);
    };
  }
  auto growing = std::make_unique<jouleprof::session::GrowingMonitor>(
      std::move(*opened), std::move(open_boards), log != nullptr);
  monitor.watch->start(all, kLookPeriod, [growing = growing.get()](const auto& names) {
    growing->add_appeared(names);
  });
  monitor.source = std::move(growing);
  return {};
}

// Measures with the readings of the `jouleprof run` around this program, which records its windows.
// False: there is none that answers, and the monitor samples by itself.
Result<bool> open_run(const jouleprof_monitor_options& options, jouleprof_monitor& monitor) {
  const char* const socket = std::getenv(jouleprof::meters::kSessionVariable);
  const bool around = socket != nullptr && *socket != '\0';
  if (!around || options.own_sampler != 0 || options.log != nullptr) return false;
  const auto choice = meters_of(options);
  jouleprof::meters::SharedOptions shared;
  shared.path = socket;
  shared.hub = "the `jouleprof run` that measured this program";
  shared.demand = choice.demand;
  shared.open_own = [choice] {
    auto own = jouleprof::meters::open_meters(choice);
    return own ? std::move(own->meters) : std::vector<std::unique_ptr<jouleprof::meters::Meter>>{};
  };
  auto meter = jouleprof::meters::SharedMeter::open(std::move(shared));
  if (!meter) return false;
  auto live = live_of(options);
  live.session = socket;
  live.not_measured = (*meter)->not_measured();
  std::vector<std::unique_ptr<jouleprof::meters::Meter>> meters;
  meters.push_back(std::move(*meter));
  auto opened = jouleprof::session::LiveMonitor::open(std::move(live), std::move(meters));
  if (!opened && opened.error().code == Errc::kInvalidArgument) return forward_error(opened);
  if (!opened) return false;
  monitor.source = std::move(*opened);
  return true;
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
  out.error_microjoules = m->farthest().microjoules();
  out.repeatability_microjoules = m->repeatability.microjoules();
  copy_text(m->sensor, out.sensor, sizeof(out.sensor));
  copy_text(m->method, out.method, sizeof(out.method));
}

model::Measurement measurement_of(const jouleprof_energy& e) {
  model::Measurement m;
  m.energy = jouleprof::Energy::microjoules(e.energy_microjoules);
  m.error = jouleprof::Energy::microjoules(e.error_microjoules);
  m.repeatability = jouleprof::Energy::microjoules(e.repeatability_microjoules);
  m.provenance = static_cast<model::Provenance>(e.provenance);
  return m;
}

// A copy that the caller frees.
jouleprof_status give(const std::string& text, char** out, char* error, size_t error_size) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) return fail({Errc::kInternal, "out of memory"}, error, error_size);
  std::memcpy(copy, text.c_str(), text.size() + 1);
  *out = copy;
  return JOULEPROF_OK;
}

}  // namespace

jouleprof_status jouleprof_monitor_open(const jouleprof_monitor_options* given,
                                        jouleprof_monitor** monitor, char* error,
                                        size_t error_size) {
  if (monitor != nullptr) *monitor = nullptr;
  if (monitor == nullptr || (given != nullptr && given->size == 0)) {
    return refuse("monitor must not be NULL, and options.size must be sizeof(options)", error,
                  error_size);
  }
  jouleprof::lib::keep_thread_data();
  const jouleprof_monitor_options options = complete(given);
  if (options.devices != nullptr && options.gpu_indices != nullptr) {
    return refuse("give devices or gpu_indices, not both", error, error_size);
  }
  return checked(error, error_size, [&] {
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
      const auto place = std::ranges::find(order, domain.id);
      made->visible_indices.push_back(place != order.end() ? static_cast<int>(place - order.begin())
                                                           : -1);
    }
    open_handles<jouleprof_monitor>().add(made.get());
    *monitor = made.release();
    return JOULEPROF_OK;
  });
}

void jouleprof_monitor_close(jouleprof_monitor* monitor) {
  if (!open_handles<jouleprof_monitor>().remove(monitor)) return;
  // A forked child has none of the threads, and locks that may stay held: there is nothing to end.
  if (monitor->pid != getpid()) return;
  (void)without_exceptions(0, [&] {
    delete monitor;
    return 0;
  });
}

size_t jouleprof_monitor_domain_count(const jouleprof_monitor* monitor) {
  return monitor != nullptr ? monitor->visible_indices.size() : 0;
}

jouleprof_status jouleprof_monitor_domain(const jouleprof_monitor* monitor, size_t index,
                                          jouleprof_domain* domain) {
  if (monitor == nullptr || domain == nullptr || index >= monitor->visible_indices.size()) {
    return JOULEPROF_INVALID_ARGUMENT;
  }
  const auto& d = monitor->source->domains()[index];
  *domain = {};
  domain->domain = to_string(d.kind).data();
  domain->device = d.device.c_str();
  domain->name = d.name.c_str();
  domain->uuid = d.uuid.c_str();
  domain->reason = d.unavailable_reason.c_str();
  domain->visible_index = monitor->visible_indices[index];
  const auto gpu = model::gpu_index(d);
  domain->gpu_index = gpu ? static_cast<int>(*gpu) : -1;
  return JOULEPROF_OK;
}

const char* jouleprof_monitor_source(const jouleprof_monitor* monitor) {
  return monitor != nullptr ? monitor->kind.c_str() : "";
}

uint32_t jouleprof_monitor_name(jouleprof_monitor* monitor, const char* name) {
  if (monitor == nullptr || name == nullptr) return 0;
  return without_exceptions(0U, [&] { return monitor->source->name(name); });
}

int64_t jouleprof_now(void) { return jouleprof::HostClock::now().time_since_epoch().count(); }

jouleprof_window jouleprof_window_begin(uint32_t name) { return {jouleprof_now(), 0, name, 0}; }

jouleprof_window jouleprof_monitor_begin(jouleprof_monitor* monitor, uint32_t name) {
  jouleprof_window window = jouleprof_window_begin(name);
  if (monitor == nullptr) return window;
  window.flags = JOULEPROF_WINDOW_LISTED;
  monitor->source->begin({window.begin_nanoseconds, name});
  return window;
}

void jouleprof_window_cancel(jouleprof_monitor* monitor, jouleprof_window* window) {
  if (monitor == nullptr || window == nullptr || window->end_nanoseconds != 0) return;
  if ((window->flags & JOULEPROF_WINDOW_LISTED) != 0) {
    monitor->source->forget({window->begin_nanoseconds, window->name});
  }
  *window = {};  // it has not begun
}

void jouleprof_window_end(jouleprof_monitor* monitor, jouleprof_window* window) {
  if (window == nullptr || window->end_nanoseconds != 0 || window->begin_nanoseconds == 0) return;
  window->end_nanoseconds = jouleprof_now();
  (void)jouleprof_window_add(monitor, window);
}

jouleprof_status jouleprof_window_add(jouleprof_monitor* monitor, const jouleprof_window* window) {
  if (monitor == nullptr || window == nullptr || window->begin_nanoseconds <= 0 ||
      window->end_nanoseconds < window->begin_nanoseconds) {
    return JOULEPROF_INVALID_ARGUMENT;
  }
  monitor->source->add({window->begin_nanoseconds, window->end_nanoseconds, window->name,
                        window->flags & ~JOULEPROF_WINDOW_LISTED});
  if ((window->flags & JOULEPROF_WINDOW_LISTED) != 0) {
    monitor->source->forget({window->begin_nanoseconds, window->name});
  }
  return JOULEPROF_OK;
}

jouleprof_status jouleprof_energy_sum(const jouleprof_energy* parts, size_t count, int independent,
                                      jouleprof_energy* sum) {
  if (sum == nullptr || (parts == nullptr && count > 0)) return JOULEPROF_INVALID_ARGUMENT;
  *sum = {};
  sum->provenance = JOULEPROF_UNAVAILABLE_FIGURE;
  return checked(nullptr, 0, [&] {
    model::WindowSum quadratic;
    model::Measurement linear{{}, {}, {}, model::Provenance::kUnavailable, {}, {}};
    for (size_t i = 0; i < count; ++i) {
      if (parts[i].provenance == JOULEPROF_UNAVAILABLE_FIGURE) continue;
      const auto part = measurement_of(parts[i]);
      quadratic.add(part);
      linear.energy += part.energy;
      linear.error += part.error;
      linear.repeatability += part.repeatability;
      linear.provenance = combine(linear.provenance, part.provenance);
    }
    if (const auto all = quadratic.sum()) to_c(independent != 0 ? *all : linear, *sum);
    return JOULEPROF_OK;
  });
}

jouleprof_status jouleprof_window_energy(jouleprof_monitor* monitor, const jouleprof_window* window,
                                         int64_t timeout_nanoseconds, jouleprof_energy* energies,
                                         char* error, size_t error_size) {
  if (monitor == nullptr || window == nullptr || energies == nullptr) {
    return refuse("monitor, window and energies must not be NULL", error, error_size);
  }
  if (window->end_nanoseconds == 0) {
    return refuse(window->begin_nanoseconds == 0 ? "the window has not begun, or was cancelled"
                                                 : "the window is still open; end it first",
                  error, error_size);
  }
  return checked(error, error_size, [&] {
    const auto found =
        monitor->source->energy(host(window->begin_nanoseconds), host(window->end_nanoseconds),
                                timeout_of(timeout_nanoseconds, kEnergyTimeout));
    if (!found) return fail(found.error(), error, error_size);
    for (size_t i = 0; i < found->size(); ++i) to_c((*found)[i], energies[i]);
    return JOULEPROF_OK;
  });
}

jouleprof_status jouleprof_monitor_total(jouleprof_monitor* monitor, uint32_t name,
                                         int64_t timeout_nanoseconds, jouleprof_total* total,
                                         jouleprof_energy* energies, char* error,
                                         size_t error_size) {
  if (monitor == nullptr || total == nullptr || energies == nullptr) {
    return refuse("monitor, total and energies must not be NULL", error, error_size);
  }
  return checked(error, error_size, [&] {
    const auto found = monitor->source->total(name, timeout_of(timeout_nanoseconds, kTotalTimeout));
    if (!found) return fail(found.error(), error, error_size);
    *total = {found->count, found->length.count(), found->resolved_count};
    for (size_t i = 0; i < found->energies.size(); ++i) to_c(found->energies[i], energies[i]);
    return JOULEPROF_OK;
  });
}

jouleprof_status jouleprof_monitor_snapshot(jouleprof_monitor* monitor, char** json, char* error,
                                            size_t error_size) {
  if (monitor == nullptr || json == nullptr) {
    return refuse("monitor and json must not be NULL", error, error_size);
  }
  *json = nullptr;
  return checked(error, error_size, [&] {
    const auto found = monitor->source->snapshot();
    if (!found) return fail(found.error(), error, error_size);
    return give(jouleprof::report::snapshot_json(*found), json, error, error_size);
  });
}

jouleprof_status jouleprof_monitor_warnings(jouleprof_monitor* monitor, char** text, char* error,
                                            size_t error_size) {
  if (monitor == nullptr || text == nullptr) {
    return refuse("monitor and text must not be NULL", error, error_size);
  }
  *text = nullptr;
  return checked(error, error_size, [&] {
    std::string lines;
    for (const auto& warning : monitor->source->warnings()) lines += warning + '\n';
    return give(lines, text, error, error_size);
  });
}

void jouleprof_free(void* text) { std::free(text); }
