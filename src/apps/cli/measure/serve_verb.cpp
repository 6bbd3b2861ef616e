#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "apps/cli/measure/history_options.h"
#include "apps/cli/measure/rest_watch.h"
#include "apps/cli/measure/share_choice.h"
#include "apps/cli/measuring.h"
#include "apps/cli/options/checks.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/verb.h"
#include "apps/serve/http_server.h"
#include "apps/serve/pages.h"
#include "apps/serve/window_api.h"
#include "base/process/threads.h"
#include "base/say.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "report/json/machine_window_json.h"
#include "report/quantity.h"
#include "session/machine/machine_service.h"
#include "session/run/signals.h"
#include "session/sampling/run_info.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

// A file of each control group stays open between ticks (spans::CgroupTimes).
void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

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
    app.add_option("--listen", listen_, "");
    app.add_option("--web.config.file", web_config_, "");
    app.add_option("--tick", tick_, "");
    app.add_option("--level", levels_, "")->delimiter(',');
    app.add_option("--max-series", most_series_, "")->check(not_negative());
    app.add_option("--keep-ended", keep_, "");
    app.add_option("--job-mapping-dir", job_mapping_, "");
    app.add_option("--kube-logs", kube_logs_, "");
    app.add_option("--devices", devices_, "")->delimiter(',')->envname("JOULEPROF_DEVICES");
    app.add_option("--names", names_, "")
        ->delimiter(',')
        ->check(CLI::IsMember({"prometheus", "dcgm", "kepler", "aipowermeter"}));
    history_.declare(app);
    share_.declare(app);
    app.add_flag("--no-estimates", no_estimates_, "");
    app.add_option("--cpu-tdp", cpu_tdp_, "")->envname("JOULEPROF_CPU_TDP");
  }

  int run(const std::vector<std::string>&) override {
    auto options = service_options();
    if (!options) return complain(options.error(), kUsageError);
    const auto cpu_tdp = parse_cpu_tdp(cpu_tdp_);
    if (!cpu_tdp) return complain(cpu_tdp.error(), kUsageError);
    options->demand = demand_of(options->tick);
    raise_file_limit();
    auto found =
        meters::open_meters({.demand = options->demand, .cpu_tdp = *cpu_tdp, .devices = {}});
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
      return std::find(names_.begin(), names_.end(), name) != names_.end();
    };
    return {has("dcgm"), has("kepler"), has("aipowermeter")};
  }

  Result<session::ServiceOptions> service_options() {
    session::ServiceOptions options;
    const auto tick = parse_duration(tick_);
    if (!tick) return forward_error(tick);
    if (*tick < 500ms || *tick > 1h) {
      return fail(Errc::kInvalidArgument, "--tick must be between 500ms and 1h");
    }
    options.tick = *tick;
    const auto keep = parse_duration(keep_);
    if (!keep) return forward_error(keep);
    options.accounts.keep = *keep;
    options.accounts.most_series = most_series_;
    if (!levels_.empty()) options.accounts.families.clear();
    for (const auto& level : levels_) {
      const auto family = analysis::parse_family(level);
      if (!family && level != "node") {
        return fail(Errc::kInvalidArgument,
                    fmt::format("--level {}: choose among node, process, container, pod, job, unit "
                                "and user",
                                level));
      }
      if (family) options.accounts.families.push_back(*family);
    }
    auto share = share_.options();
    if (!share) return forward_error(share);
    options.share = std::move(*share);
    options.devices = devices_;
    options.job_mapping = job_mapping_;
    options.kube_logs = kube_logs_;
    options.rest = [this](const model::Domain& domain) -> std::optional<Power> {
      if (domain.kind == model::DomainKind::kGpu && !domain.parent) {
        if (const auto observed = rest_.power(domain.uuid)) return observed;
      }
      if (!domain.known_levels.rest) return std::nullopt;
      return domain.known_levels.rest->power;
    };
    return options;
  }

  int serve(session::ServiceOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
    const auto version = std::string(JOULEPROF_VERSION);
    std::unique_ptr<session::MachineService> service;  // before the server
    serve::Pages pages(
        {version, session::run_info_here(version).host, options.tick, !no_estimates_, names()},
        [&service](const auto& reader) { service->read(reader); });
    std::size_t warned = 0;
    std::unique_ptr<serve::HttpServer> server;  // before the first tick
    bool named = false;
    options.is_watched = [&server] { return server->has_streams(); };
    options.on_tick = [&](const auto& state, const auto& accounts) {
      if (!std::exchange(named, true)) name_gap(state);
      learn_rest(state);
      const auto event = pages.update(state, accounts, server->has_streams());
      if (event) server->publish(event);
      for (; warned < state.warnings.size(); ++warned) {
        say("jouleprof: {}\n", state.warnings[warned]);
      }
    };
    const auto socket = options.share ? options.share->access.path : std::filesystem::path();
    auto opened = session::MachineService::open(std::move(options), std::move(meters));
    if (!opened) return complain(opened.error(), kUsageError);
    service = std::move(*opened);
    const auto shared = service->start_sharing();
    if (!shared) {
      if (share_.is_named()) return complain(shared.error(), kCannotOpen);
      say("jouleprof: {}\n", shared.error().message);
    }
    auto signals = session::SignalStream::create();
    if (!signals) return complain(signals.error(), kInternalError);
    serve::HttpOptions http;
    http.listen = listen_;
    http.web_config = web_config_;
    serve::WindowApi windows(service->windows(), [&](const analysis::MachineWindow& window) {
      std::string out;
      service->read([&](const auto& state, const auto&) {
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
      say("jouleprof: serving {}/ and {}/metrics\n", url, url);
    }
    if (shared && !socket.empty()) {
      say("jouleprof: sharing the sensors with local programs at {}\n", socket.string());
    }
    std::stop_source stop;
    std::thread measuring =
        start_without_signals([&service, token = stop.get_token()] { service->run(token); });
    wait_for_end(**signals);
    stop.request_stop();
    measuring.join();
    server.reset();  // it uses what follows it here
    return kDone;
  }

  // Stored for later services and runs too. If that fails, the next one observes it again.
  void learn_rest(const analysis::MachineState& state) {
    std::vector<bool> held(state.snapshot.domains.size());
    for (const auto& holder : state.holders) held.at(holder.domain) = true;
    if (rest_.look(state.snapshot, held)) (void)meters::nvml::keep_levels(rest_.levels());
  }

  static void name_gap(const analysis::MachineState& state) {
    if (!state.continued_from) return;
    const Duration gap = std::max(state.started.real - *state.continued_from, Duration{});
    say("jouleprof: the counters continue those of {}; the energy of {:.1f} s in between is "
        "not counted\n",
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

  History history_;
  ShareChoice share_;
  RestWatch rest_;
  std::vector<std::string> listen_{"127.0.0.1:9877"};
  std::string web_config_;
  std::string tick_ = "10s";
  std::vector<std::string> levels_;
  std::size_t most_series_ = 1000;
  std::string keep_ = "5min";
  std::string job_mapping_;
  std::string kube_logs_;
  std::vector<std::string> devices_;
  std::vector<std::string> names_;
  bool no_estimates_ = false;
  std::string cpu_tdp_;
};

}  // namespace

std::unique_ptr<Verb> make_serve() { return std::make_unique<ServeVerb>(); }

}  // namespace jouleprof::cli
