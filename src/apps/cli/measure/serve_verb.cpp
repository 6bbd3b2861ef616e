#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "apps/cli/measure/rest_watch.h"
#include "apps/cli/measure/serve_options.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "apps/serve/guest_files.h"
#include "apps/serve/http_server.h"
#include "apps/serve/pages.h"
#include "base/process/threads.h"
#include "base/say.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "report/json/live_json.h"
#include "report/metrics/machine_metrics.h"
#include "report/quantity.h"
#include "session/machine/machine_service.h"
#include "session/run/measured_processes.h"
#include "session/run/signals.h"
#include "session/sampling/recorded_sampling.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLookPeriod = 4s;  // for sensors that have appeared
constexpr auto kTryAgain = 2s;
const std::vector<std::string> kDefaultLevels{"job", "container", "user", "node"};

// Figures are those of ticks: what is read more often only costs.
meters::Demand demand_of(Duration tick) {
  meters::Demand demand{.shortest_window = tick, .sample_period = tick, .state_period = tick};
  // A tick reads the counters itself. With a period as long as the tick, they would be read once
  // more, just before it.
  if (tick >= 5s && tick <= 10s) demand.counter_period = tick * 3 / 2;
  return demand;
}

class ServeVerb : public Verb {
 public:
  std::string_view name() const override { return "serve"; }

  void declare(CLI::App& app) override {
    auto* listen = add(app, "--listen", listen_);
    add(app, "--web.listen-address", listen_)->excludes(listen);
    add(app, "--web.config.file", web_config_);
    add(app, "--web.telemetry-path", metrics_path_);
    add(app, "--tick", tick_);
    add(app, "--level", levels_)->delimiter(',');
    add(app, "--max-series", most_series_)->check(not_negative());
    add(app, "--keep-ended", keep_);
    add(app, "--job-mapping-dir", job_mapping_);
    add(app, "--kube-logs", kube_logs_);
    sensors_.declare(app);
    add(app, "--names", names_)
        ->delimiter(',')
        ->check(one_of({"prometheus", "dcgm", "kepler", "aipowermeter"}));
    history_.declare(app);
    share_.declare(app);
    push_.declare(app);
    add(app, "--no-estimates", no_estimates_);
    add(app, "--created", created_);
    add(app, "--guest", guests_);
  }

  int run(const std::vector<std::string>&) override {
    auto options = service_options();
    if (!options) return complain(options.error(), kUsageError);
    if (const auto sensors = sensors_.meters({}); !sensors) {
      return complain(sensors.error(), kUsageError);
    }
    auto guest_files = serve::GuestFiles::open(guests_);
    if (!guest_files) return complain(guest_files.error(), kUsageError);
    guest_files_ = std::move(*guest_files);
    if (!guest_files_.empty()) options->tick = std::min(options->tick, model::kGuestPeriod);
    options->demand = demand_of(options->tick);
    if (!serve::is_free_path(metrics_path_)) {
      return complain_of_usage(
          fmt::format("--web.telemetry-path {}: give a path such as /metrics "
                      "that is none of another page",
                      metrics_path_));
    }
    session::raise_file_limit();  // a file of each control group stays open between ticks
    watch_.emplace();
    auto found = open_meters(*options);
    if (!found) return complain(found.error(), kUsageError);
    if (auto kept = history_.open(*options); !kept) {
      const bool is_usage = kept.error().code == Errc::kInvalidArgument;
      return complain(kept.error(), is_usage ? kUsageError : kCannotWrite);
    }
    return serve(std::move(*options), std::move(found->meters));
  }

 private:
  report::ForeignNames names() const {
    const auto has = [this](const char* name) {
      return std::ranges::find(names_, name) != names_.end();
    };
    return {has("dcgm"), has("kepler"), has("aipowermeter")};
  }

  Result<session::ServiceOptions> service_options() {
    session::ServiceOptions options;
    if (tick_ < 500ms || tick_ > 1h) {
      return fail(Errc::kInvalidArgument, "--tick must be between 500ms and 1h");
    }
    options.tick = tick_;
    options.accounts.keep = keep_;
    options.accounts.most_series = most_series_;
    // What the live page shows is accounted in any case, unless there is a choice.
    if (!levels_.empty()) options.accounts.families.clear();
    shown_.fill(false);
    for (const auto& level : levels_.empty() ? kDefaultLevels : levels_) {
      const auto family = analysis::parse_family(level);
      if (!family && level != "node") {
        return fail(Errc::kInvalidArgument,
                    fmt::format("--level {}: choose among node, process, container, pod, job, unit "
                                "and user",
                                level));
      }
      if (!family) continue;
      shown_[static_cast<std::size_t>(*family)] = true;
      if (!levels_.empty()) options.accounts.families.push_back(*family);
    }
    auto& families = options.accounts.families;
    const bool has_units = std::ranges::find(families, analysis::Family::kUnit) != families.end();
    if (!guests_.empty() && !has_units) families.push_back(analysis::Family::kUnit);
    auto share = share_.options();
    if (!share) return forward_error(share);
    options.share = std::move(*share);
    options.devices = sensors_.devices;
    options.job_mapping = job_mapping_;
    options.kube_logs = kube_logs_;
    options.rest = [this](const model::Domain& domain) -> std::optional<Power> {
      if (domain.kind == model::DomainKind::kGpu && !domain.parent) {
        if (const auto observed = rest_.power(domain.uuid)) return observed;
      }
      if (!domain.known_levels.rest) return std::nullopt;
      return domain.known_levels.rest->power;
    };
    options.held = [this](const model::Domain& domain) -> std::optional<Power> {
      if (domain.known_levels.held) return domain.known_levels.held->power;
      return rest_.held(domain.uuid);
    };
    return options;
  }

  Result<meters::MeterSet> open_meters(const session::ServiceOptions& options) const {
    auto sensors = sensors_.meters(options.demand);
    if (!sensors) return forward_error(sensors);
    sensors->use_service = false;
    return meters::open_meters(*sensors);
  }

  // The service of the time: another takes its place when sensors appear.
  std::shared_ptr<session::MachineService> service() const {
    const std::lock_guard lock(mutex_);
    return service_;
  }
  void set(std::shared_ptr<session::MachineService> service) {
    const std::lock_guard lock(mutex_);
    service_ = std::move(service);
  }

  int serve(session::ServiceOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
    const auto version = std::string(JOULEPROF_VERSION);
    // A service that no longer measures or answers must not look alive: systemd starts it again.
    std::atomic<bool> has_failed = false;
    const auto ends_with = [&has_failed](const char* what) {
      return [&has_failed, what](const char* why) {
        has_failed = true;
        ::kill(::getpid(), SIGTERM);
        say("jouleprof: the service ends, because {}: {}\n", what, why);
      };
    };
    const auto host = session::run_info_here(version).host;
    serve::PageOptions page_options{version, host,     options.tick, !no_estimates_,
                                    names(), created_, shown_};
    page_options.metrics_path = metrics_path_;
    page_options.cpus = static_cast<unsigned>(std::max(0L, ::sysconf(_SC_NPROCESSORS_ONLN)));
    page_options.ask = [this](HostTime t) { service()->request_tick(t); };
    serve::Pages pages(std::move(page_options),
                       [this](const auto& reader) { service()->read(reader); });
    auto push = push_.start();
    if (!push) return complain(push.error(), status_of_input(push.error()));
    std::unique_ptr<serve::HttpServer> server;  // before the first tick
    options.is_watched = [&server] { return server->has_streams(); };
    options.has_last_tick = true;
    options.on_event = [](const std::string& text) { say("jouleprof: {}\n", text); };
    options.on_tick = [&](const auto& state, const auto&) {
      if (!std::exchange(named_, true)) name_gap(state);
      learn_rest(state);
      pages.note(state);
      for (; warned_ < state.warnings.size(); ++warned_) {
        say("jouleprof: {}\n", state.warnings[warned_]);
      }
    };
    // A scrape asks for its tick.
    options.keeps_all = [&] { return *push || !guest_files_.empty() || server->has_streams(); };
    options.readers = [&pages](HostTime measured) { return pages.readers(measured); };
    options.on_kept = [&](const auto& state, const auto& accounts) {
      hand_in(state, accounts);
      if (*push) {
        (*push)->offer(
            report::machine_otlp(state, accounts, {version, host, !no_estimates_, shown_}));
      }
      const auto event = pages.update(state, accounts, server->has_streams());
      if (event) server->publish(event);
    };
    const auto socket = options.share ? options.share->access.path : std::filesystem::path();
    auto opened = session::MachineService::open(options, std::move(meters));
    if (!opened) return complain(opened.error(), kUsageError);
    set(std::move(*opened));
    const auto shared = service()->start_sharing();
    if (!shared) {
      if (share_.is_named()) return complain(shared.error(), kCannotOpen);
      say("jouleprof: {}\n", shared.error().message);
    }
    auto signals = session::SignalStream::create();
    if (!signals) return complain(signals.error(), kInternalError);
    serve::HttpOptions http;
    http.listen = listen_;
    http.web_config = web_config_;
    http.failed = ends_with("it cannot answer requests");
    options.windows = service()->shared_windows();
    serve::WindowApi windows(*options.windows, [&](const analysis::MachineWindow& window) {
      std::string out;
      service()->read([&](const auto& state, const auto&) {
        out = report::machine_window_json(window, state, !no_estimates_);
      });
      return out;
    });
    auto started = serve::HttpServer::start(std::move(http), [&](const auto& request) {
      return serve::WindowApi::is_for(request) ? windows.respond(request) : pages.respond(request);
    });
    if (!started) {
      const bool is_usage = started.error().code == Errc::kInvalidArgument;
      return complain(started.error(), is_usage ? kUsageError : kCannotOpen);
    }
    server = std::move(*started);
    for (const auto& address : server->addresses()) {
      const auto url = fmt::format("{}://{}", server->is_tls() ? "https" : "http", address);
      say("jouleprof: serving {}/ and {}{}\n", url, url, metrics_path_);
    }
    if (web_config_.empty() && !server->is_loopback()) {
      say("jouleprof: all who can connect read the names of users and processes; --web.config.file "
          "adds passwords and TLS\n");
    }
    if (shared && !socket.empty()) {
      say("jouleprof: sharing the sensors with local programs at {}\n", socket.string());
    }
    name_missing(service()->domains());
    std::stop_source stop;
    auto measuring = start_thread(
        [this, &options, token = stop.get_token()] { measure(std::move(options), token); },
        ends_with("it cannot measure"));
    if (!measuring) return complain(measuring.error(), kInternalError);
    wait_for_end(**signals);
    stop.request_stop();
    measuring->join();
    server.reset();  // it uses what follows it here
    push->reset();   // after the last tick
    return has_failed ? kInternalError : kDone;
  }

  // Until `stop`, with all sensors that there are then.
  void measure(session::ServiceOptions options, const std::stop_token& stop) {
    std::mutex mutex;  // guards the two
    std::optional<std::stop_source> round;
    bool has_appeared = false;
    watch_->start(service()->domains(), kLookPeriod, [&](const std::vector<std::string>& names) {
      say("jouleprof: sensors have appeared: {}\n", fmt::join(names, ", "));
      const std::lock_guard lock(mutex);
      has_appeared = true;
      if (round) round->request_stop();
    });
    const std::stop_callback end(stop, [&] {
      const std::lock_guard lock(mutex);
      if (round) round->request_stop();
    });
    for (;;) {
      {
        const std::lock_guard lock(mutex);
        round.emplace();
        if (stop.stop_requested() || has_appeared) round->request_stop();
      }
      service()->run(round->get_token());
      {
        const std::lock_guard lock(mutex);
        has_appeared = false;  // what appears from here on is another round
      }
      while (!stop.stop_requested() && !replace_service(options)) {
        std::this_thread::sleep_for(kTryAgain);
      }
      if (stop.stop_requested()) break;
    }
    watch_->stop();
  }

  // The drivers are closed before they are opened anew: only then they list new boards.
  bool replace_service(session::ServiceOptions options) {
    const auto before = service();
    options.continued = before->hand_over();
    auto found = open_meters(options);
    if (!found) return complain_of(found.error());
    if (auto kept = history_.reopen(); !kept) return complain_of(kept.error());
    options.windows->interrupt();
    named_ = true;
    warned_ = 0;
    auto opened = session::MachineService::open(std::move(options), std::move(found->meters));
    if (!opened) return complain_of(opened.error());
    if (auto shared = (*opened)->start_sharing(); !shared) (void)complain_of(shared.error());
    for (const auto& domain : (*opened)->domains()) {
      const auto& known = before->domains();
      const bool is_new = std::ranges::none_of(known, [&](const model::Domain& d) {
        return d.kind == domain.kind && d.device == domain.device && d.uuid == domain.uuid &&
               d.unavailable_reason.empty();
      });
      if (!is_new || !domain.unavailable_reason.empty() || domain.parent) continue;
      say("jouleprof: {} {} {}{}is measured from now on\n", model::to_string(domain.kind),
          domain.device, domain.name, domain.name.empty() ? "" : " ");
    }
    set(std::move(*opened));
    return true;
  }

  static bool complain_of(const Error& error) {
    say("jouleprof: {}\n", error.message);
    return false;
  }

  static void name_missing(const std::vector<model::Domain>& domains) {
    for (const auto& domain : domains) {
      const bool is_expected =
          domain.kind == model::DomainKind::kGpu || domain.kind == model::DomainKind::kCpu;
      if (!is_expected || domain.parent || domain.unavailable_reason.empty()) continue;
      say("jouleprof: {} is not measured: {}; it is looked for every {:.0f} s\n", domain.device,
          domain.unavailable_reason, seconds(kLookPeriod));
    }
  }

  // To the guests of this machine.
  void hand_in(const analysis::MachineState& state, const analysis::EnergyAccounts& accounts) {
    const auto written = guest_files_.write(state, accounts);
    const std::string trouble = written ? "" : written.error().message;
    if (!trouble.empty() && trouble != guest_trouble_) {
      say("jouleprof: a guest does not get its share: {}\n", trouble);
    }
    guest_trouble_ = trouble;
  }

  // Stored for later services and runs too. If that fails, the next one observes it again.
  void learn_rest(const analysis::MachineState& state) {
    std::vector<bool> held(state.snapshot.domains.size());
    for (const auto& holder : state.holders) held.at(holder.domain) = true;
    if (rest_.add(state.snapshot, held)) (void)meters::nvml::keep_levels(rest_.levels());
  }

  static void name_gap(const analysis::MachineState& state) {
    if (!state.continued_from) return;
    const Duration gap = std::max(state.started.real - *state.continued_from, Duration{});
    say("jouleprof: the counters continue those of {}; the energy of {:.1f} s in between is "
        "unattributed where a device's own counter has it, and not counted elsewhere\n",
        report::utc_text(*state.continued_from), seconds(gap));
  }

  static void wait_for_end(session::SignalStream& signals) {
    for (;;) {
      while (const auto signal = signals.next()) {
        if (signal->number == SIGTSTP) signals.stop_self();
        if (signal->number == SIGINT || signal->number == SIGTERM || signal->number == SIGQUIT) {
          return;
        }
      }
      signals.wait(HostTime::max());
    }
  }

  std::optional<meters::HardwareWatch> watch_;  // before the sensors are opened
  mutable std::mutex mutex_;                    // guards the next
  std::shared_ptr<session::MachineService> service_;
  bool named_ = false;      // the gap; these two are of the measuring thread
  std::size_t warned_ = 0;  // of the service's warnings
  std::array<bool, analysis::kFamilies> shown_{};
  bool created_ = false;
  History history_;
  ShareChoice share_;
  PushChoice push_;
  RestWatch rest_;
  std::vector<std::string> listen_{"127.0.0.1:9877"};
  std::string web_config_;
  std::string metrics_path_ = "/metrics";
  Duration tick_ = 10s;
  std::vector<std::string> levels_;
  std::size_t most_series_ = 1000;
  Duration keep_ = 5min;
  std::string job_mapping_;
  std::string kube_logs_;
  SensorChoice sensors_;
  std::vector<std::string> names_;
  bool no_estimates_ = false;
  std::vector<std::string> guests_;
  serve::GuestFiles guest_files_;  // the next two are of the measuring thread
  std::string guest_trouble_;      // the last that was said
};

}  // namespace

std::unique_ptr<Verb> make_serve() { return std::make_unique<ServeVerb>(); }

}  // namespace jouleprof::cli
