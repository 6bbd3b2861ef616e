// The pages of the service: rendered once per tick, sent any number of times.
#pragma once

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
  Duration tick = std::chrono::seconds{5};
  bool estimates = true;
  report::ForeignNames names = {};
};

// Thread safety: update() and respond() may be called from two threads at the same time.
class Pages {
 public:
  explicit Pages(PageOptions options) : options_(std::move(options)) {}

  // Returns the event for the streams.
  std::shared_ptr<const std::string> update(const analysis::MachineState& state,
                                            const analysis::EnergyAccounts& accounts);

  // Reads no sensor and renders nothing.
  HttpResponse respond(const HttpRequest& request) const;

 private:
  using Text = std::shared_ptr<const std::string>;
  struct Rendered {
    Text text;
    Text open_metrics;
    Text json;
    Text event;
    HostTime at{};
    bool counted = false;  // the energy of at least one domain
  };
  Rendered latest() const;
  HttpResponse ready() const;

  const PageOptions options_;
  mutable std::mutex mutex_;  // guards what follows
  Rendered rendered_;
};

extern const std::string_view kLivePage;

// Whether the header Accept asks for OpenMetrics. The text format is for all others.
bool accepts_open_metrics(std::string_view accept);

}  // namespace jouleprof::serve
