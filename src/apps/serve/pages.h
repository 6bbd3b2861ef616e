// The pages of the service: rendered at their first request in a tick, sent any number of times.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/live/machine_state.h"
#include "apps/serve/http_server.h"
#include "report/metrics/machine_metrics.h"
#include "session/machine/machine_windows.h"

namespace jouleprof::serve {

struct PageOptions {
  std::string version;
  std::string host;  // the machine's name
  Duration tick = std::chrono::seconds{10};
  bool estimates = true;
  report::ForeignNames names = {};
  bool created = false;  // as report::MetricsOptions has it, and the next
  std::array<bool, analysis::kFamilies> families = {true, true, true, true, true, true};
  // Asks for a tick that measures up to this instant or later, and returns at once. Empty: a
  // request is answered from the latest tick, however old it is.
  std::function<void(HostTime)> ask = {};
  std::string metrics_path = "/metrics";
  unsigned cpus = 0;  // as report::MetricsOptions has it
};

// Whether the metrics may be at this path: it is none of another page.
bool is_free_path(std::string_view path);

// Requests for figures that are older than this wait for a tick.
inline constexpr Duration kFreshFigures = std::chrono::milliseconds{500};

// A page is rendered at its first request in a tick. The metrics remember who reads them: a series
// is shown as zero until each reader of the last two minutes has seen it (report::MetricsOptions).
// One that came once, and does not say that it scrapes, is not waited for: a person looked. Thread
// safety: note() and update() are called from one thread, respond() may be from another.
class Pages {
 public:
  using Reader =
      std::function<void(const analysis::MachineState&, const analysis::EnergyAccounts&)>;
  // Calls its argument with what is known after the latest tick, which does not change during the
  // call. Not called before the first update().
  using Source = std::function<void(const Reader&)>;

  Pages(PageOptions options, Source source)
      : options_(std::move(options)), source_(std::move(source)) {}

  // After each tick, with the same as the source's: its powers and whether it measures. Its
  // energies are not shown yet.
  void note(const analysis::MachineState& state);
  // After a tick whose energies may be shown; notes it. `streams`: whether some read events.
  // Returns the event for them; nullptr if there are none.
  std::shared_ptr<const std::string> update(const analysis::MachineState& state,
                                            const analysis::EnergyAccounts& accounts, bool streams);

  // The readers of the metrics, before the update() of a tick up to `measured`, which shows no more
  // than what they have seen by now. Absent before the first update().
  std::optional<analysis::MetricsReaders> readers(HostTime measured);

  // Reads no sensor.
  HttpResponse respond(const HttpRequest& request);

 private:
  using Text = std::shared_ptr<const std::string>;
  enum Kind : std::size_t { kText, kOpenMetrics, kTextGzip, kOpenMetricsGzip, kJson, kEvent };
  static constexpr std::size_t kKinds = 6;
  struct Page {
    Text text;
    std::uint64_t tick = 0;  // whose state it shows
  };
  struct Reading {  // of the metrics, by one reader
    HostTime at{};
    HostTime measured{};  // up to here, on the page that it got
    std::optional<Duration> interval;
    bool is_scraper = false;  // it will come again: from its first reading on it is waited for
    std::uint64_t connection = 0;
  };

  Text render(Kind kind, const analysis::MachineState& state,
              const analysis::EnergyAccounts& accounts) const;
  Text page(Kind kind);  // nullptr before the first tick, and where another has just ended
  HttpResponse page(Kind kind, std::string_view type);
  HttpResponse metrics(const HttpRequest& request);
  HttpResponse ready() const;
  // Whether the request has to wait for a tick, which it asks for.
  bool waits(const HttpRequest& request) const;
  void remember(const HttpRequest& request);
  struct Powers {  // of a tick
    RealTime time{};
    std::vector<std::optional<double>> watts;  // by domain
  };
  static constexpr std::size_t kMostTicks = 720;  // an hour of ticks of 5 s
  void keep_powers(const analysis::MachineState& state);
  std::string history() const;
  HostTime seen_by_all(HostTime measured);

  const PageOptions options_;
  const Source source_;
  mutable std::mutex mutex_;  // guards what follows
  std::array<Page, kKinds> pages_;
  std::uint64_t tick_ = 0;                  // the latest that is shown; 0: none
  std::uint64_t noted_ = 0;                 // the latest
  HostTime at_{};                           // its end
  HostTime measured_{};                     // up to here, what is shown
  std::map<std::string, Reading> readers_;  // of the metrics, by address and agent
  std::size_t readers_before_ = 0;          // of the service that this one continues
  std::optional<HostTime> shown_until_;     // as report::MetricsOptions::shown_until
  std::optional<HostTime> shown_next_;      // the same from the next update() on
  std::deque<Powers> history_;
  std::vector<std::pair<std::string, std::string>> devices_;  // of it: domain and device
  std::string not_ready_;  // why nothing is measured; empty: something is
};

extern const std::string_view kLivePage;

// Whether the header Accept asks for OpenMetrics, and does not prefer the text format, which is for
// all others.
bool accepts_open_metrics(std::string_view accept);

// Whether the header Accept-Encoding allows gzip.
bool accepts_gzip(std::string_view accept_encoding);

// Windows over HTTP: other programs begin and end them by name, and get their energy.
// POST /api/v1/windows/NAME/begin, POST /api/v1/windows/NAME/end, GET /api/v1/windows/NAME. An end,
// and a GET of a window that ended, wait some seconds until its energy is settled.
// Thread safety: respond() is called from one thread.
class WindowApi {
 public:
  // Writes a window as JSON.
  using Writer = std::function<std::string(const analysis::MachineWindow&)>;

  // Both outlive this one; `windows` may be called from another thread, too.
  WindowApi(session::MachineWindows& windows, Writer writer)
      : windows_(windows), writer_(std::move(writer)) {}

  static bool is_for(const HttpRequest& request);
  HttpResponse respond(const HttpRequest& request);

 private:
  session::MachineWindows& windows_;
  const Writer writer_;
};

}  // namespace jouleprof::serve
