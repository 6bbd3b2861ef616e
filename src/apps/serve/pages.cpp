#include "apps/serve/pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "report/json/machine_json.h"
#include "report/openmetrics/machine_metrics.h"

namespace jouleprof::serve {
namespace {

constexpr std::string_view kText = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kOpenMetrics =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";
constexpr int kLateTicks = 4;
constexpr Duration kLate = std::chrono::seconds{10};

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

std::shared_ptr<const std::string> Pages::update(const analysis::MachineState& state,
                                                 const analysis::EnergyAccounts& accounts) {
  const report::MetricsOptions metrics{options_.version, options_.estimates, options_.names,
                                       options_.host};
  const auto render = [&](report::Dialect dialect) {
    return std::make_shared<const std::string>(
        report::machine_metrics(state, accounts, metrics, dialect));
  };
  Rendered next;
  next.text = render(report::Dialect::kText);
  next.open_metrics = render(report::Dialect::kOpenMetrics);
  auto json =
      report::machine_json(state, accounts, {options_.version, options_.host, options_.estimates});
  next.event = std::make_shared<const std::string>(fmt::format("data: {}\n\n", json));
  next.json = std::make_shared<const std::string>(std::move(json) + "\n");
  next.at = HostClock::now();
  next.counted = std::any_of(state.domains.begin(), state.domains.end(),
                             [](const auto& d) { return d.counted; });
  auto event = next.event;
  const std::lock_guard lock(mutex_);
  std::swap(rendered_, next);
  return event;
}

Pages::Rendered Pages::latest() const {
  const std::lock_guard lock(mutex_);
  return rendered_;
}

HttpResponse Pages::ready() const {
  const auto now = latest();
  if (!now.text) return HttpResponse::text(503, "the first tick has not ended yet\n");
  const Duration age = HostClock::now() - now.at;
  if (age > std::max(kLateTicks * options_.tick, kLate)) {
    return HttpResponse::text(503, fmt::format("the last tick ended {:.0f} s ago\n", seconds(age)));
  }
  if (!now.counted) {
    return HttpResponse::text(
        503, "no sensor reports energy; `jouleprof doctor` lists what is missing and why\n");
  }
  return HttpResponse::text(200, "ok\n");
}

HttpResponse Pages::respond(const HttpRequest& request) const {
  if (request.path == "/metrics") {
    const auto now = latest();
    if (!now.text) return HttpResponse::text(503, "the first tick has not ended yet\n");
    const bool open = accepts_open_metrics(request.accept);
    HttpResponse out;
    out.type = open ? kOpenMetrics : kText;
    out.body = open ? now.open_metrics : now.text;
    return out;
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
    out.body = latest().event;
    out.stream = true;
    return out;
  }
  if (request.path == "/api/v1/snapshot") {
    const auto now = latest();
    if (!now.json) return HttpResponse::text(503, "the first tick has not ended yet\n");
    HttpResponse out;
    out.type = "application/json";
    out.body = now.json;
    return out;
  }
  return HttpResponse::text(404, "there is no such page; docs/metrics.md lists the pages\n");
}

}  // namespace jouleprof::serve
