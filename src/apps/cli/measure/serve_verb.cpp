#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "apps/cli/exit_status.h"
#include "apps/cli/measuring.h"
#include "apps/cli/verb.h"
#include "apps/serve/http_server.h"
#include "apps/serve/pages.h"
#include "base/text.h"
#include "meters/all/open_meters.h"
#include "session/machine/machine_service.h"
#include "session/run/signals.h"
#include "session/sampling/run_info.h"
#include "session/sampling/threads.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

class ServeVerb : public Verb {
 public:
  std::string_view name() const override { return "serve"; }

  void declare(CLI::App& app) override {
    app.add_option("--listen", listen_, "");
    app.add_option("--web.config.file", web_config_, "");
    app.add_option("--tick", tick_, "");
    app.add_option("--level", levels_, "")->delimiter(',');
    app.add_option("--max-series", most_series_, "")->check(CLI::NonNegativeNumber);
    app.add_option("--keep-ended", keep_, "");
    app.add_option("--job-mapping-dir", job_mapping_, "");
    app.add_option("--devices", devices_, "")->delimiter(',')->envname("JOULEPROF_DEVICES");
    app.add_option("--names", names_, "")->delimiter(',')->check(CLI::IsMember({"dcgm", "kepler"}));
    app.add_flag("--no-estimates", no_estimates_, "");
    app.add_option("--cpu-tdp", cpu_tdp_, "")->envname("JOULEPROF_CPU_TDP");
  }

  int run(const std::vector<std::string>&) override {
    auto options = service_options();
    if (!options) return complain(options.error(), kUsageError);
    const auto cpu_tdp = parse_cpu_tdp(cpu_tdp_);
    if (!cpu_tdp) return complain(cpu_tdp.error(), kUsageError);
    auto found = meters::open_meters(
        {.demand = {.shortest_window = options->tick}, .cpu_tdp = *cpu_tdp, .devices = {}});
    if (!found) return complain(found.error(), kUsageError);
    return serve(std::move(*options), std::move(found->meters));
  }

 private:
  report::ForeignNames names() const {
    const auto has = [this](const char* name) {
      return std::find(names_.begin(), names_.end(), name) != names_.end();
    };
    return {has("dcgm"), has("kepler")};
  }

  Result<session::ServiceOptions> service_options() const {
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
    options.devices = devices_;
    options.job_mapping = job_mapping_;
    options.rest = [](const model::Domain& domain) -> std::optional<Power> {
      if (!domain.known_levels.rest) return std::nullopt;
      return domain.known_levels.rest->power;
    };
    return options;
  }

  int serve(session::ServiceOptions options, std::vector<std::unique_ptr<meters::Meter>> meters) {
    const auto version = std::string(JOULEPROF_VERSION);
    serve::Pages pages(
        {version, session::run_info_here(version).host, options.tick, !no_estimates_, names()});
    std::size_t warned = 0;
    std::unique_ptr<serve::HttpServer> server;  // before the first tick
    options.on_tick = [&](const auto& state, const auto& accounts) {
      server->publish(pages.update(state, accounts));
      for (; warned < state.warnings.size(); ++warned) {
        fmt::print(stderr, "jouleprof: {}\n", state.warnings[warned]);
      }
    };
    auto service = session::MachineService::open(std::move(options), std::move(meters));
    if (!service) return complain(service.error(), kUsageError);
    auto signals = session::SignalStream::create();
    if (!signals) return complain(signals.error(), kInternalError);
    serve::HttpOptions http;
    http.listen = listen_;
    http.web_config = web_config_;
    auto started = serve::HttpServer::start(
        std::move(http), [&pages](const auto& request) { return pages.respond(request); });
    if (!started) {
      const bool is_usage = started.error().code == Errc::kInvalidArgument;
      return complain(started.error(), is_usage ? kUsageError : kCannotOpen);
    }
    server = std::move(*started);
    for (const auto& address : server->addresses()) {
      const auto url = fmt::format("{}://{}", server->is_tls() ? "https" : "http", address);
      fmt::print(stderr, "jouleprof: serving {}/ and {}/metrics\n", url, url);
    }
    std::stop_source stop;
    std::thread measuring = session::start_without_signals(
        [&service, token = stop.get_token()] { (*service)->run(token); });
    wait_for_end(**signals);
    stop.request_stop();
    measuring.join();
    return kDone;
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

  std::vector<std::string> listen_{"127.0.0.1:9877"};
  std::string web_config_;
  std::string tick_ = "5s";
  std::vector<std::string> levels_;
  std::size_t most_series_ = 1000;
  std::string keep_ = "5min";
  std::string job_mapping_;
  std::vector<std::string> devices_;
  std::vector<std::string> names_;
  bool no_estimates_ = false;
  std::string cpu_tdp_;
};

}  // namespace

std::unique_ptr<Verb> make_serve() { return std::make_unique<ServeVerb>(); }

}  // namespace jouleprof::cli
