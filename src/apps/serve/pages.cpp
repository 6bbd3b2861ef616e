#include "apps/serve/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <utility>

#include "base/file.h"
#include "base/gzip/gzip.h"
#include "base/text.h"
#include "report/json/live_json.h"
#include "report/json/values.h"
#include "report/quantity.h"
#include "report/snapshot.h"

namespace jouleprof::serve {
namespace {

constexpr std::string_view kTextType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr int kLateTicks = 4;
constexpr Duration kLate = std::chrono::seconds{10};
// A reader of the metrics that has not come for so many of its intervals is gone.
constexpr int kMissedIntervals = 3;
constexpr Duration kShortestMemory = std::chrono::seconds{5};
// Prometheus scrapes every minute or more often.
constexpr Duration kLongestMemory = std::chrono::minutes{2};
constexpr std::size_t kMostReaders = 256;
// Those of the service whose counters this one continues, until as many have come: they know what
// they saw there, and nothing of what began since.
constexpr const char* kReaderBefore = "before";
constexpr Duration kLongestWait = std::chrono::seconds{4};  // less than the server's

// The page has its styles and its script within, and loads nothing from elsewhere.
constexpr std::string_view kPolicy =
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

bool is_measured(const analysis::DomainState& state) {
  return state.counted && state.reported && state.provenance != model::Provenance::kEstimated;
}

// Empty where something is measured.
std::string why_nothing_is_measured(const analysis::MachineState& state) {
  if (std::ranges::any_of(state.domains, is_measured)) return {};
  std::string reasons;
  for (std::size_t d = 0; d < state.domains.size(); ++d) {
    const auto& s = state.snapshot.domains[d];
    if (s.domain.parent) continue;
    const bool is_estimated = state.domains[d].provenance == model::Provenance::kEstimated;
    const auto& reason = !s.domain.unavailable_reason.empty() ? s.domain.unavailable_reason
                         : is_estimated                       ? "its figures are an estimate"
                         : !state.domains[d].reason.empty()   ? state.domains[d].reason
                         : s.reason.empty()                   ? "its sensors have not reported yet"
                                                              : s.reason;
    reasons += fmt::format("{} {}: {}\n", model::to_string(s.domain.kind), s.domain.device, reason);
  }
  return fmt::format(
      "no sensor reports energy; sensors are looked for every few seconds, and `jouleprof doctor` "
      "lists what is missing and why\n{}",
      reasons);
}

constexpr std::string_view kPath = "/api/v1/windows/";

// How much one who sends `list` prefers `name`, in one of the versions: its q. 0: not accepted.
double preference(std::string_view list, std::string_view name,
                  std::initializer_list<std::string_view> versions = {}) {
  double most = 0;
  const std::string text = lower_case(list);
  for (const auto part : split(text, ',')) {
    const auto fields = split(part, ';');
    if (trim(fields[0]) != name) continue;
    double q = 1;
    for (auto field : std::span(fields).subspan(1)) {
      field = trim(field);
      if (field.starts_with("q=")) q = std::min(q, parse_number(field.substr(2)).value_or(0));
      if (!field.starts_with("version=")) continue;
      if (std::ranges::find(versions, field.substr(8)) == versions.end()) q = 0;
    }
    most = std::max(most, q);
  }
  return most;
}

unsigned status_of(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument:
      return 400;
    case Errc::kNotFound:
      return 404;
    case Errc::kUnsupported:
      return 409;
    default:
      return 503;
  }
}

}  // namespace

bool accepts_open_metrics(std::string_view accept) {
  const double open = preference(accept, "application/openmetrics-text", {"1.0.0", "0.0.1"});
  return open > 0 && open >= preference(accept, "text/plain", {"0.0.4"});
}

bool accepts_gzip(std::string_view accept_encoding) {
  return preference(accept_encoding, "gzip") > 0;
}

bool is_free_path(std::string_view path) {
  constexpr std::array<std::string_view, 5> kTaken{"/healthz", "/readyz", "/-/healthy", "/-/ready",
                                                   "/"};
  return path.starts_with('/') && !path.starts_with("/api/") &&
         path.find_first_of(" ?#%") == std::string_view::npos &&
         std::ranges::find(kTaken, path) == kTaken.end();
}

Pages::Text Pages::render(Kind kind, const analysis::MachineState& state,
                          const analysis::EnergyAccounts& accounts) const {
  std::string out;
  if (kind != kJson && kind != kEvent) {
    const bool is_text = kind == kText || kind == kTextGzip;
    out = report::machine_metrics(
        state, accounts,
        {options_.version, options_.estimates, options_.names, options_.host, options_.created,
         options_.families, shown_until_, options_.cpus},
        is_text ? report::Dialect::kText : report::Dialect::kOpenMetrics);
    if (kind == kTextGzip || kind == kOpenMetricsGzip) out = gzip_text(out);
  } else {
    out = report::machine_json(state, accounts,
                               {options_.version, options_.host, options_.estimates});
    out = kind == kEvent ? fmt::format("data: {}\n\n", out) : std::move(out) + "\n";
  }
  return std::make_shared<const std::string>(std::move(out));
}

void Pages::note(const analysis::MachineState& state) {
  const std::lock_guard lock(mutex_);
  if (noted_ == state.ticks) return;
  noted_ = state.ticks;
  at_ = HostClock::now();
  keep_powers(state);
  not_ready_ = why_nothing_is_measured(state);
}

std::shared_ptr<const std::string> Pages::update(const analysis::MachineState& state,
                                                 const analysis::EnergyAccounts& accounts,
                                                 bool streams) {
  note(state);
  const HostTime now = HostClock::now();
  const Text event = streams ? render(kEvent, state, accounts) : nullptr;
  const std::lock_guard lock(mutex_);
  if (tick_ == 0 && state.continued_from) {
    const auto before = state.readers.value_or(analysis::MetricsReaders{1, state.started.host});
    readers_before_ = std::max<std::size_t>(before.count, 1);
    readers_.emplace(kReaderBefore, Reading{now, before.seen, {}, true});
  }
  tick_ = state.ticks;
  measured_ = state.now;
  const auto seen = std::exchange(shown_next_, std::nullopt);
  shown_until_ = seen ? *seen : seen_by_all(state.now);
  if (event) pages_[kEvent] = {event, state.ticks};
  return event;
}

void Pages::keep_powers(const analysis::MachineState& state) {
  Powers& powers = history_.emplace_back();
  powers.time = state.snapshot.time;
  for (std::size_t d = 0; d < state.domains.size(); ++d) {
    const bool is_shown =
        options_.estimates || state.domains[d].provenance != model::Provenance::kEstimated;
    const auto watts = is_shown ? report::figure_of(state.snapshot.domains[d], "power_watts")
                                : std::optional<double>();
    powers.watts.push_back(watts);
  }
  if (history_.size() == 1) {
    for (const auto& s : state.snapshot.domains) {
      devices_.emplace_back(to_string(s.domain.kind), s.domain.device);
    }
  }
  while (history_.size() > kMostTicks) history_.pop_front();
}

std::string Pages::history() const {
  using report::Json;
  Json out = Json::object();
  out["schema"] = "jouleprof.history/1";
  out["times_unix_seconds"] = Json::array();
  out["devices"] = Json::array();
  const std::lock_guard lock(mutex_);
  for (const auto& powers : history_) {
    out["times_unix_seconds"].push_back(report::seconds_json(powers.time.time_since_epoch()));
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    Json watts = Json::array();
    for (const auto& powers : history_) {
      const auto value = d < powers.watts.size() ? powers.watts[d] : std::nullopt;
      watts.push_back(value ? report::decimal(report::fixed_decimal(*value, 1)) : Json(nullptr));
    }
    out["devices"].push_back({{"domain", devices_[d].first},
                              {"device", devices_[d].second},
                              {"power_watts", std::move(watts)}});
  }
  return report::write_json(out, 0) + "\n";
}

// Up to when all readers know what began. mutex_ is held.
HostTime Pages::seen_by_all(HostTime measured) {
  const HostTime now = HostClock::now();
  HostTime seen = measured;
  std::erase_if(readers_, [now](const auto& reader) {
    const auto& interval = reader.second.interval;
    const Duration memory =
        interval ? std::clamp(kMissedIntervals * *interval, kShortestMemory, kLongestMemory)
                 : kLongestMemory;
    return now - reader.second.at > memory;
  });
  for (const auto& [peer, reading] : readers_) {
    if (reading.is_scraper || reading.interval) seen = std::min(seen, reading.measured);
  }
  return std::max(shown_until_.value_or(seen), seen);
}

void Pages::remember(const HttpRequest& request) {
  const HostTime now = HostClock::now();
  const std::lock_guard lock(mutex_);
  // Two jobs of one Prometheus, or another program on its machine, read at times of their own. One
  // that keeps its connection is known by it from its second reading on.
  const std::string stranger = request.peer + ' ' + request.agent + ' ' + request.scrape_timeout;
  std::string name = stranger;
  if (request.is_repeated) name += fmt::format(" {}", request.connection);
  const bool is_scraper = !request.scrape_timeout.empty();
  auto known = readers_.find(name);
  if (known == readers_.end() && request.is_repeated) {
    const auto before = readers_.find(stranger);
    if (before != readers_.end() && before->second.connection == request.connection) {
      auto renamed = readers_.extract(before);
      renamed.key() = name;
      known = readers_.insert(std::move(renamed)).position;
    }
  }
  if (known != readers_.end()) {
    known->second = {now, measured_, now - known->second.at, is_scraper, request.connection};
  } else if (readers_.size() < kMostReaders) {
    readers_.emplace(name, Reading{now, measured_, {}, is_scraper, request.connection});
  }
  if (readers_.size() > readers_before_) readers_.erase(kReaderBefore);
}

std::optional<analysis::MetricsReaders> Pages::readers(HostTime measured) {
  const std::lock_guard lock(mutex_);
  if (!shown_until_) return std::nullopt;
  shown_next_ = seen_by_all(measured);
  std::size_t count = 0;
  for (const auto& [peer, reading] : readers_) {
    const bool comes_again = reading.is_scraper || reading.interval;
    if (peer == kReaderBefore) {
      count = std::max(count, readers_before_);
    } else if (comes_again) {
      ++count;
    }
  }
  return analysis::MetricsReaders{count, *shown_next_};
}

bool Pages::waits(const HttpRequest& request) const {
  {
    const std::lock_guard lock(mutex_);
    if (!options_.ask || tick_ == 0 || request.received - measured_ <= kFreshFigures) return false;
  }
  options_.ask(request.received - kFreshFigures);
  return HostClock::now() - request.received < kLongestWait;
}

Pages::Text Pages::page(Kind kind) {
  const std::lock_guard lock(mutex_);
  if (tick_ == 0) return nullptr;
  auto& page = pages_[kind];
  if (!page.text || page.tick < tick_) {
    source_([&](const auto& state, const auto& accounts) {
      // Not to be shown yet: its tick, or the first one of a service that continues another.
      if (state.ticks != tick_ || state.now == HostTime{}) return;
      page.text = render(kind, state, accounts);
      page.tick = state.ticks;
    });
  }
  return page.text;
}

HttpResponse Pages::page(Kind kind, std::string_view type) {
  if (auto body = page(kind)) return HttpResponse::of(std::string(type), std::move(body));
  auto out = HttpResponse::text(503, "the first tick has not ended yet\n");
  const std::lock_guard lock(mutex_);
  out.is_final = tick_ == 0;
  return out;
}

HttpResponse Pages::metrics(const HttpRequest& request) {
  const bool open = accepts_open_metrics(request.accept);
  const auto type = open ? kOpenMetricsType : kTextType;
  const bool is_short = accepts_gzip(request.accept_encoding);
  auto out = is_short ? page(open ? kOpenMetricsGzip : kTextGzip, type)
                      : page(open ? kOpenMetrics : kText, type);
  if (out.status == 200 && is_short) {
    if (out.body->empty()) {
      out = page(open ? kOpenMetrics : kText, type);
    } else {
      out.encoding = "gzip";
    }
  }
  if (out.status == 200) remember(request);
  return out;
}

HttpResponse Pages::ready() const {
  const std::lock_guard lock(mutex_);
  if (tick_ == 0) return HttpResponse::text(503, "the first tick has not ended yet\n");
  const Duration age = HostClock::now() - at_;
  if (age > std::max(kLateTicks * options_.tick, kLate)) {
    return HttpResponse::text(503, fmt::format("the last tick ended {:.0f} s ago\n", seconds(age)));
  }
  if (!not_ready_.empty()) return HttpResponse::text(503, not_ready_);
  return HttpResponse::text(200, "ok\n");
}

HttpResponse Pages::respond(const HttpRequest& request) {
  const bool is_metrics = request.path == options_.metrics_path;
  const bool has_figures =
      is_metrics || request.path == "/api/v1/snapshot" || request.path == "/api/v1/events";
  if (has_figures && waits(request)) {
    HttpResponse out;
    out.is_final = false;
    return out;
  }
  if (is_metrics) return metrics(request);
  if (request.path == "/healthz" || request.path == "/-/healthy") {
    return HttpResponse::text(200, "ok\n");
  }
  if (request.path == "/readyz" || request.path == "/-/ready") return ready();
  if (request.path == "/") {
    static const auto page = std::make_shared<const std::string>(kLivePage);
    auto out = HttpResponse::of("text/html; charset=utf-8", page);
    out.policy = kPolicy;
    return out;
  }
  if (request.path == "/api/v1/events") {
    auto out = HttpResponse::of("text/event-stream", page(kEvent));
    out.stream = true;
    return out;
  }
  if (request.path == "/api/v1/history") return HttpResponse::json(history());
  if (request.path == "/api/v1/snapshot") return page(kJson, "application/json");
  return HttpResponse::text(404, "there is no such page; docs/metrics.md lists the pages\n");
}

bool WindowApi::is_for(const HttpRequest& request) { return request.path.starts_with(kPath); }

HttpResponse WindowApi::respond(const HttpRequest& request) {
  if (!request.may_change) {
    return HttpResponse::text(
        403,
        "windows are for callers on the loopback interface, or with a password or a client "
        "certificate: see --web.config.file\n");
  }
  const std::string_view rest = std::string_view(request.path).substr(kPath.size());
  const auto slash = rest.find('/');
  const auto name = rest.substr(0, slash);
  const auto action = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  const bool begins = action == "begin";
  const bool ends = action == "end";
  if (!action.empty() && !begins && !ends) {
    return HttpResponse::text(404, "there is no such page; docs/metrics.md lists the pages\n");
  }
  if ((begins || ends) != (request.method == "POST")) {
    return HttpResponse::text(405, begins || ends
                                       ? "a window is begun and ended with POST\n"
                                       : "a window is read with GET; POST .../begin and .../end\n");
  }
  const HostTime now = request.received;
  const auto window = begins ? windows_.begin(name, now, request.caller)
                      : ends ? windows_.end(name, now)
                             : windows_.find(name);
  if (!window) {
    return HttpResponse::text(status_of(window.error().code), window.error().message + "\n");
  }
  auto out = HttpResponse::json(writer_(*window));
  out.status = begins ? 201 : 200;
  out.is_final = !window->end || window->is_settled;
  return out;
}

}  // namespace jouleprof::serve
