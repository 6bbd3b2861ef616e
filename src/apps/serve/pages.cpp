#include "apps/serve/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/file.h"
#include "base/gzip/gzip_text.h"
#include "base/text.h"
#include "report/json/machine_json.h"
#include "report/openmetrics/machine_metrics.h"

namespace jouleprof::serve {
namespace {

constexpr std::string_view kTextType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr int kLateTicks = 4;
constexpr Duration kLate = std::chrono::seconds{10};
// Prometheus scrapes every minute or more often.
constexpr Duration kInDemand = std::chrono::minutes{2};

// The page has its styles and its script within, and loads nothing from elsewhere.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src "
    "'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace

bool accepts_open_metrics(std::string_view accept) {
  for (const auto part : split(accept, ',')) {
    const auto fields = split(part, ';');
    if (trim(fields[0]) != "application/openmetrics-text") continue;
    const bool is_known = std::all_of(fields.begin() + 1, fields.end(), [](std::string_view field) {
      field = trim(field);
      if (field.starts_with("version=")) {
        return field == "version=1.0.0" || field == "version=0.0.1";
      }
      if (!field.starts_with("q=")) return true;
      const auto q = parse_number(field.substr(2));
      return q && *q > 0;
    });
    if (is_known) return true;
  }
  return false;
}

bool accepts_gzip(std::string_view accept_encoding) {
  for (const auto part : split(accept_encoding, ',')) {
    const auto fields = split(part, ';');
    if (trim(fields[0]) != "gzip") continue;
    return std::all_of(fields.begin() + 1, fields.end(), [](std::string_view field) {
      field = trim(field);
      const auto q = field.starts_with("q=") ? parse_number(field.substr(2)) : std::optional(1.0);
      return q && *q > 0;
    });
  }
  return false;
}

Pages::Text Pages::render(Kind kind, const analysis::MachineState& state,
                          const analysis::EnergyAccounts& accounts) const {
  std::string out;
  if (kind != kJson && kind != kEvent) {
    const bool is_text = kind == kText || kind == kTextGzip;
    out = report::machine_metrics(
        state, accounts, {options_.version, options_.estimates, options_.names, options_.host},
        is_text ? report::Dialect::kText : report::Dialect::kOpenMetrics);
    if (kind == kTextGzip || kind == kOpenMetricsGzip) out = gzip_text(out);
  } else {
    out = report::machine_json(state, accounts,
                               {options_.version, options_.host, options_.estimates});
    out = kind == kEvent ? fmt::format("data: {}\n\n", out) : std::move(out) + "\n";
  }
  return std::make_shared<const std::string>(std::move(out));
}

std::shared_ptr<const std::string> Pages::update(const analysis::MachineState& state,
                                                 const analysis::EnergyAccounts& accounts,
                                                 bool streams) {
  const HostTime now = HostClock::now();
  std::array<bool, kKinds> wanted{};
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < pages_.size(); ++i) {
      wanted[i] = pages_[i].requested && now - *pages_[i].requested < kInDemand;
    }
  }
  wanted[kEvent] = streams;
  std::array<Text, kKinds> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (wanted[i]) texts[i] = render(static_cast<Kind>(i), state, accounts);
  }
  const std::lock_guard lock(mutex_);
  tick_ = state.ticks;
  at_ = now;
  counted_ = std::any_of(state.domains.begin(), state.domains.end(),
                         [](const auto& d) { return d.counted; });
  for (std::size_t i = 0; i < texts.size(); ++i) {
    pages_[i].text = texts[i];
    pages_[i].tick = state.ticks;
  }
  return texts[kEvent];
}

Pages::Text Pages::page(Kind kind) {
  const std::lock_guard lock(mutex_);
  if (tick_ == 0) return nullptr;
  auto& page = pages_[kind];
  page.requested = HostClock::now();
  if (!page.text || page.tick < tick_) {
    source_([&](const auto& state, const auto& accounts) {
      page.text = render(kind, state, accounts);
      page.tick = state.ticks;
    });
  }
  return page.text;
}

HttpResponse Pages::page(Kind kind, std::string_view type) {
  HttpResponse out;
  out.body = page(kind);
  if (!out.body) return HttpResponse::text(503, "the first tick has not ended yet\n");
  out.type = type;
  return out;
}

HttpResponse Pages::metrics(const HttpRequest& request) {
  const bool open = accepts_open_metrics(request.accept);
  const auto type = open ? kOpenMetricsType : kTextType;
  if (accepts_gzip(request.accept_encoding)) {
    auto out = page(open ? kOpenMetricsGzip : kTextGzip, type);
    if (out.status != 200) return out;
    out.encoding = "gzip";
    if (!out.body->empty()) return out;
  }
  return page(open ? kOpenMetrics : kText, type);
}

HttpResponse Pages::ready() const {
  const std::lock_guard lock(mutex_);
  if (tick_ == 0) return HttpResponse::text(503, "the first tick has not ended yet\n");
  const Duration age = HostClock::now() - at_;
  if (age > std::max(kLateTicks * options_.tick, kLate)) {
    return HttpResponse::text(503, fmt::format("the last tick ended {:.0f} s ago\n", seconds(age)));
  }
  if (!counted_) {
    return HttpResponse::text(
        503, "no sensor reports energy; `jouleprof doctor` lists what is missing and why\n");
  }
  return HttpResponse::text(200, "ok\n");
}

HttpResponse Pages::respond(const HttpRequest& request) {
  if (request.path == "/metrics") {
    return metrics(request);
  }
  if (request.path == "/healthz") return HttpResponse::text(200, "ok\n");
  if (request.path == "/readyz") return ready();
  if (request.path == "/") {
    static const auto page = std::make_shared<const std::string>(kLivePage);
    HttpResponse out;
    out.type = "text/html; charset=utf-8";
    out.policy = kPolicy;
    out.body = page;
    return out;
  }
  if (request.path == "/api/v1/events") {
    HttpResponse out;
    out.type = "text/event-stream";
    out.body = page(kEvent);
    out.stream = true;
    return out;
  }
  if (request.path == "/api/v1/snapshot") {
    return page(kJson, "application/json");
  }
  return HttpResponse::text(404, "there is no such page; docs/metrics.md lists the pages\n");
}

}  // namespace jouleprof::serve
