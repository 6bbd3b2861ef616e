// The pages of the service: rendered at most once per tick, sent any number of times.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/live/machine_state.h"
#include "apps/serve/http_server.h"
#include "report/openmetrics/machine_metrics.h"

namespace jouleprof::serve {

struct PageOptions {
  std::string version;
  std::string host;  // the machine's name
  Duration tick = std::chrono::seconds{10};
  bool estimates = true;
  report::ForeignNames names = {};
};

// A page that was requested within the last two minutes is rendered at each tick, so that a scrape
// copies it. Any other is rendered at its first request in a tick.
// Thread safety: update() and respond() may be called from two threads at the same time.
class Pages {
 public:
  using Reader =
      std::function<void(const analysis::MachineState&, const analysis::EnergyAccounts&)>;
  // Calls its argument with what is known after the latest tick, which does not change during the
  // call. Not called before the first update().
  using Source = std::function<void(const Reader&)>;

  Pages(PageOptions options, Source source)
      : options_(std::move(options)), source_(std::move(source)) {}

  // After each tick, with the same as the source's. `streams`: whether some read events. Returns
  // the event for them; nullptr if there are none.
  std::shared_ptr<const std::string> update(const analysis::MachineState& state,
                                            const analysis::EnergyAccounts& accounts, bool streams);

  // Reads no sensor.
  HttpResponse respond(const HttpRequest& request);

 private:
  using Text = std::shared_ptr<const std::string>;
  enum Kind : std::size_t { kText, kOpenMetrics, kTextGzip, kOpenMetricsGzip, kJson, kEvent };
  static constexpr std::size_t kKinds = 6;
  struct Page {
    Text text;
    std::uint64_t tick = 0;  // whose state it shows
    std::optional<HostTime> requested;
  };

  Text render(Kind kind, const analysis::MachineState& state,
              const analysis::EnergyAccounts& accounts) const;
  Text page(Kind kind);  // nullptr before the first tick
  HttpResponse page(Kind kind, std::string_view type);
  HttpResponse metrics(const HttpRequest& request);
  HttpResponse ready() const;

  const PageOptions options_;
  const Source source_;
  mutable std::mutex mutex_;  // guards what follows
  std::array<Page, kKinds> pages_;
  std::uint64_t tick_ = 0;  // the latest; 0: none
  HostTime at_{};
  bool counted_ = false;  // the energy of at least one domain
};

extern const std::string_view kLivePage;

// Whether the header Accept asks for OpenMetrics. The text format is for all others.
bool accepts_open_metrics(std::string_view accept);

// Whether the header Accept-Encoding allows gzip.
bool accepts_gzip(std::string_view accept_encoding);

}  // namespace jouleprof::serve
