#include "session/run/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "session/run/engine.h"
#include "session/run/measured_processes.h"
#include "session/run/trace_watch.h"
#include "session/sampling/recorded_sampling.h"

namespace jouleprof::session {
namespace {

// How far the readings must reach past the work: a sensor's window and lag, and the next edge of a
// counter that steps every 100 ms.
constexpr Duration kTail = std::chrono::milliseconds{150};
constexpr Duration kHistory = std::chrono::seconds{10};  // for windows that begin before a monitor
constexpr Duration kBetweenReads = std::chrono::milliseconds{20};  // that programs ask for

// Orphans of the command become our children while this exists.
class Subreaper {
 public:
  Subreaper() {
    ::prctl(PR_GET_CHILD_SUBREAPER, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, before_); }

 private:
  int before_ = 0;
};

void name_survivors(Engine& engine) {
  std::vector<std::string> names;
  for (const auto& process : engine.processes.alive()) {
    names.push_back(fmt::format("{} (pid {})", process.name, process.pid));
  }
  if (names.empty()) return;
  const std::size_t more = names.size() > 5 ? names.size() - 5 : 0;
  names.resize(std::min<std::size_t>(names.size(), 5));
  engine.warn(
      fmt::format("still running when the command ended: {}{}; what they use from then on is "
                  "not counted",
                  fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

void idle(Engine& engine, Duration length) {
  if (length <= Duration{}) return;
  engine.restart_snapshots();
  const HostTime begin = HostClock::now();
  engine.serve(begin + length);
  engine.post(model::IdleSpan{begin, HostClock::now()});
}

// Not skipped by an interruption: the end of the work must be read.
void wait_for_tail(HostTime work_end) {
  const Duration left = work_end + kTail - HostClock::now();
  if (left > Duration{}) std::this_thread::sleep_for(left);
}

// The variables by which the command's programs find this session and are traced.
std::vector<std::string> variables(const SessionOptions& options, Engine& engine) {
  std::vector<std::string> all;
  if (engine.hub != nullptr) {
    all.push_back(fmt::format("{}={}", meters::kSessionVariable, engine.hub->path().string()));
  }
  if (engine.traces != nullptr) {
    std::vector<std::string> warnings;
    for (auto& variable : engine.traces->variables(options.environment, warnings)) {
      all.push_back(std::move(variable));
    }
    for (auto& text : warnings) engine.warn(std::move(text));
  }
  return all;
}

// The result of a session, in addition to what the engine has.
struct Outcome {
  std::optional<int> exit_status;
  std::optional<Error> start_error;
};

// Lets other `jouleprof run` of the job join.
void admit(const SessionOptions& options, Engine& engine, std::vector<std::string> environment) {
  if (engine.hub == nullptr) return;
  std::error_code err;
  const auto& path = options.trace.recording;
  engine.hub->admit(
      {path.empty() ? "" : std::filesystem::absolute(path, err).string(), std::move(environment)});
}

// `environment`: of the command, and of the other processes of its job.
void measure_work(const SessionOptions& options, Child& child, Engine& engine,
                  std::vector<std::string> environment) {
  engine.post_run();
  if (options.on_socket) admit(options, engine, std::move(environment));
  const auto ended = [&] {
    if (!child.has_ended()) return false;
    engine.run.work_end = HostClock::now();
    engine.read_soon();
    return true;
  };
  if (options.duration) {
    engine.serve(*engine.run.work_begin + *options.duration, ended);
    if (!engine.run.work_end) child.send(SIGTERM);
  }
  if (!engine.run.work_end) engine.serve(HostTime::max(), ended);
  // It is still readable: its last figures, and those of children it waited for, are exact.
  engine.look_at_processes(true);
}

// Where nothing can be measured any more: passes signals on and waits.
void wait_for_end(const Child& child, SignalStream& signals) {
  while (!child.has_ended()) {
    while (const auto signal = signals.next()) {
      if (signal->sent) child.send(signal->number);
      if (signal->number == SIGTSTP) signals.stop_self();
    }
    signals.wait(HostClock::now() + std::chrono::seconds{1});
  }
}

void measure_rest(const SessionOptions& options, Engine& engine) {
  engine.post_run();
  engine.look_at_processes();
  if (engine.processes.alive().empty()) {
    idle(engine, options.idle_after);
  } else {
    name_survivors(engine);  // with them the machine is not idle: there is nothing to learn
  }
  wait_for_tail(*engine.run.work_end);
}

// The work of the job on this host ends when its last process here has left.
void wait_for_members(Engine& engine) {
  if (engine.hub == nullptr || engine.hub->members().end_admission()) return;
  engine.serve(HostTime::max(), [&] { return engine.hub->members().end_admission(); });
  engine.run.work_end = HostClock::now();
  engine.read_soon();
}

Result<Outcome> run_command(const SessionOptions& options, Engine& engine, SignalStream& signals,
                            std::optional<spans::Cgroup>& group) {
  if (engine.hub != nullptr && options.on_socket) options.on_socket(engine.hub->path());
  idle(engine, options.idle_before);
  if (engine.interrupted()) return Outcome{128 + engine.interrupted_by.value_or(SIGTERM), {}};

  auto environment = variables(options, engine);
  auto child = Child::prepare(options.command, signals, environment);
  if (!child) return forward_error(child);
  if (options.use_cgroup) {
    auto made = spans::Cgroup::create(fmt::format("jouleprof-{}", ::getpid()), options.root);
    if (made && made->add(child->pid())) group = std::move(*made);
  }
  engine.processes.follow(
      {.root = child->pid(), .adopter = ::getpid(), .group = group ? &*group : nullptr});
  auto idle_handler = std::exchange(engine.on_signal, [&](const Signal& signal) {
    // What the terminal sends, the command gets as well.
    if (signal.sent) child->send(signal.number);
    if (signal.number == SIGTSTP) signals.stop_self();
  });
  engine.child = child->pid();
  engine.restart_snapshots();
  engine.run.pid = child->pid();
  engine.run.work_begin = HostClock::now();
  engine.read_soon();
  if (const auto failure = child->release()) {
    engine.child = 0;
    engine.on_signal = std::move(idle_handler);
    engine.processes.follow({});
    engine.run.pid.reset();
    engine.run.work_begin.reset();
    engine.run.exit_status = failure->exit_status;
    engine.post_run();
    return Outcome{failure->exit_status, failure->error};
  }
  std::string trouble;
  try {
    measure_work(options, *child, engine, std::move(environment));
  } catch (const std::exception& e) {
    trouble = e.what();
    wait_for_end(*child, signals);
  }
  engine.run.exit_status = child->reap();
  const Outcome outcome{engine.run.exit_status, {}};
  engine.child = 0;
  engine.on_signal = std::move(idle_handler);
  try {
    if (!engine.run.work_end) engine.run.work_end = HostClock::now();
    if (!trouble.empty()) {
      engine.warn(fmt::format("the measuring stopped before the command ended: {}", trouble));
    }
    if (options.on_socket) wait_for_members(engine);
    measure_rest(options, engine);
  } catch (const std::exception&) {  // the status is what counts now
  }
  return outcome;
}

// Passes signals on to the job's command, and lets the other processes of the job join.
void lead_job(const SessionOptions& options, pid_t pid, Engine& engine, SignalStream& signals) {
  engine.child = pid;
  engine.on_signal = [pid, &signals](const Signal& signal) {
    if (signal.sent) ::kill(pid, signal.number);
    if (signal.number == SIGTSTP) signals.stop_self();
  };
  if (engine.hub == nullptr || !options.on_socket) return;
  options.on_socket(engine.hub->path());
  admit(options, engine, {});
}

Outcome run_attached(const SessionOptions& options, Engine& engine, SignalStream& signals) {
  EndWatch ends(options.attach);
  if (options.owns_attached) lead_job(options, options.attach.front(), engine, signals);
  const auto roots = topmost(options.attach, options.root);
  for (const pid_t pid : roots) {
    pid == roots.front() ? engine.processes.follow({.root = pid}) : engine.processes.add_root(pid);
  }
  engine.restart_snapshots();
  if (options.attach.size() == 1) engine.run.pid = options.attach.front();
  engine.run.work_begin = HostClock::now();
  engine.post_run();
  engine.serve(
      options.duration ? *engine.run.work_begin + *options.duration : HostTime::max(),
      [&ends] { return ends.have_ended(); }, ends.fd());
  engine.run.work_end = HostClock::now();
  if (options.owns_attached) wait_for_members(engine);
  engine.look_at_processes(true);
  engine.post_run();
  if (ends.have_ended()) name_survivors(engine);
  wait_for_tail(*engine.run.work_end);
  return {};
}

Outcome run_machine(const SessionOptions& options, Engine& engine) {
  const HostTime begin = HostClock::now();
  engine.serve(options.duration ? begin + *options.duration : HostTime::max());
  return {};
}

// What one of the processes can see is visible. Returns what the user should know.
std::vector<std::string> set_visibility(std::vector<model::Domain>& domains,
                                        const SessionOptions& options) {
  if (options.attach.empty()) return apply_visibility(domains, options.environment).warnings;
  std::vector<std::string> warnings;
  std::vector<bool> seen(domains.size());
  for (const pid_t pid : options.attach) {
    auto of_this = domains;
    for (auto& text : apply_visibility(of_this, environment_of(pid, options.root)).warnings) {
      const bool is_new = std::ranges::find(warnings, text) == warnings.end();
      if (is_new) warnings.push_back(std::move(text));
    }
    for (std::size_t i = 0; i < domains.size(); ++i) seen[i] = seen[i] || of_this[i].visible;
  }
  for (std::size_t i = 0; i < domains.size(); ++i) domains[i].visible = seen[i];
  return warnings;
}

// `usable`: by domain; others the command cannot open. `keep`: what is measured.
Result<std::unique_ptr<HubServer>> start_hub(const std::vector<model::Domain>& domains,
                                             const std::vector<bool>& usable,
                                             std::map<model::DomainId, bool>& keep,
                                             std::vector<model::Sensor> sensors,
                                             SignalStream& signals) {
  auto socket = HubSocket::in_session_folder();
  if (!socket) return forward_error(socket);
  std::vector<meters::OfferedDomain> offered;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    auto& [domain, measured] = offered.emplace_back(domains[i], keep[domains[i].id]);
    domain.visible = usable[i];  // to some program of the command
    if (!measured) {
      domain.unavailable_reason = "the `jouleprof run` around this program does not measure it";
    }
  }
  HubOptions options;
  options.between_reads = kBetweenReads;
  options.history = kHistory;
  options.records = true;
  raise_file_limit();  // three for each program's monitor
  return HubServer::start(std::move(*socket), std::move(options), std::move(offered),
                          std::move(sensors), [&signals] { signals.wake(); });
}

model::RunInfo describe(const SessionOptions& options) {
  model::RunInfo run = run_info_here(options.tool_version);
  run.source = !options.attach.empty() ? "attach" : options.command.empty() ? "monitor" : "run";
  run.command = options.command;
  return run;
}

}  // namespace

Result<SessionResult> run(const SessionOptions& options,
                          std::vector<std::unique_ptr<meters::Meter>> meters, Sink* sink) {
  if (auto ok = check_attachable(options.attach); !ok) return forward_error(ok);
  auto joined = joined_domains(meters);
  const auto selected = select_devices(joined, options.devices);
  if (!selected) return tl::unexpected(selected.error());
  std::vector<bool> usable;  // the others the command cannot open
  for (const auto& domain : joined) usable.push_back(domain.visible);
  const auto warnings = set_visibility(joined, options);
  std::map<model::DomainId, bool> keep;
  std::map<model::DomainId, bool> visible;
  for (std::size_t i = 0; i < joined.size(); ++i) {
    keep[joined[i].id] = (*selected)[i];
    visible[joined[i].id] = joined[i].visible;
  }
  Sampler sampler(std::move(meters), options.gpu_process_period,
                  [&keep](const model::Domain& domain) { return keep[domain.id]; });
  auto domains = sampler.domains();
  for (auto& domain : domains) domain.visible = visible[domain.id];

  auto signals = SignalStream::create();
  if (!signals) return forward_error(signals);
  Result<std::unique_ptr<HubServer>> hub{nullptr};
  if (!options.command.empty() && (options.attach.empty() || options.owns_attached)) {
    hub = start_hub(joined, usable, keep, sampler.sensors(), **signals);
  }
  std::unique_ptr<TraceWatch> traces;
  std::string not_traced;
  if (options.trace.any()) {
    auto made = TraceWatch::create(options.trace);
    if (!made && (!options.attach.empty() || options.command.empty())) return forward_error(made);
    if (made) traces = std::move(*made);
    if (!made) not_traced = fmt::format("nothing is traced: {}", made.error().message);
  }
  const Subreaper subreaper;
  std::optional<spans::Cgroup> group;  // outlives the engine, which looks into it
  Engine engine(options, **signals, std::move(sampler), std::move(domains), sink);
  engine.run = describe(options);
  if (hub) engine.hub = hub->get();
  engine.traces = traces.get();
  if (traces != nullptr) engine.run.trace_folder = traces->folder().string();
  engine.start();
  for (const auto& warning : warnings) engine.warn(warning);
  for (const auto& remark : options.remarks) engine.warn(remark);
  if (!not_traced.empty()) engine.warn(std::move(not_traced));
  if (!hub) {
    engine.warn(fmt::format("windows of the command are not recorded: {}", hub.error().message));
  }

  Result<Outcome> outcome = Outcome{};
  if (!options.attach.empty()) {
    outcome = run_attached(options, engine, **signals);
  } else if (options.command.empty()) {
    outcome = run_machine(options, engine);
  } else {
    outcome = run_command(options, engine, **signals, group);
  }
  SessionResult result;
  try {
    result = engine.finish();
  } catch (const std::exception& e) {
    // A command that ran has a status, whatever became of the recording.
    if (!outcome || !outcome->exit_status) return fail(Errc::kUnavailable, e.what());
    result.sink_error = {Errc::kInternal, fmt::format("the measuring failed: {}", e.what())};
  }
  if (!outcome) return forward_error(outcome);
  result.exit_status = outcome->exit_status;
  result.start_error = outcome->start_error;
  return result;
}

}  // namespace jouleprof::session
