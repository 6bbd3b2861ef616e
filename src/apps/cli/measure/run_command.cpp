#include "apps/cli/measure/run_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <set>
#include <thread>

#include "analysis/compare/statistics.h"
#include "apps/cli/terminal/output.h"
#include "base/file.h"
#include "base/say.h"
#include "report/cells.h"
#include "report/format/format.h"
#include "report/headline_text.h"
#include "report/quantity.h"
#include "report/text/table.h"
#include "session/run/trace_watch.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

// A signal handler reaches nothing but globals.
volatile std::sig_atomic_t kept = 0;
volatile std::sig_atomic_t interruptions = 0;

void end_at_second(int) {
  if (interruptions != 0) ::_exit(kept);
  interruptions = 1;
}

constexpr Duration kPatience = 60s;  // for a place in the job
constexpr Duration kLookAgain = 50ms;
constexpr Duration kPatienceWithNext = 20s;  // to open its meters and its file

struct Spread {
  double mean = 0;
  double deviation = 0;
  double low = 0;
  double high = 0;
  double half = 0;  // of the 95 % interval of the mean, by the spread; 0 for one run
};

Spread spread_of(const std::vector<double>& values) {
  const auto estimate = analysis::estimate_of_pairs(values);
  double squares = 0;
  for (const double v : values) squares += (v - estimate.mean) * (v - estimate.mean);
  const auto n = static_cast<double>(values.size());
  return {estimate.mean, n > 1 ? std::sqrt(squares / (n - 1)) : 0,
          *std::ranges::min_element(values), *std::ranges::max_element(values),
          estimate.half.value_or(0)};
}

template <typename Text>
std::string spread_text(const Spread& s, Text text) {
  return fmt::format("mean {}, standard deviation {} ({}), {} to {}", text(s.mean),
                     text(s.deviation), report::percent_text(s.mean > 0 ? s.deviation / s.mean : 0),
                     text(s.low), text(s.high));
}

std::string seconds_text(double value) { return report::duration_text(duration_of(value)); }

}  // namespace

int run_unmeasured(const std::vector<std::string>& command, const Error& why) {
  say("jouleprof: {}; the command runs without being measured\n", why.message);
  std::vector<char*> words;
  for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  const int err = errno;
  return complain(system_error(fmt::format("cannot run '{}'", command.front()), err),
                  err == ENOENT ? 127 : 126);
}

KeepStatus::KeepStatus(int status) {
  kept = status;
  interruptions = 0;
  struct sigaction action {};
  action.sa_handler = end_at_second;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &before_[i]);
    // nohup
    if (before_[i].sa_handler == SIG_IGN) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
}

KeepStatus::~KeepStatus() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
}

namespace {

// The lock of the job's recorder, a place with the recorder that has it, or neither as yet. Errors:
// why there can be none.
Result<JobPlace> look_for_place(const std::filesystem::path& folder, const std::string& key) {
  JobPlace place;
  auto lock = session::RecorderLock::take(folder, key);
  if (!lock) return forward_error(lock);
  if (*lock) {
    place.lock.emplace(std::move(**lock));
    return place;
  }
  const auto socket = session::RecorderLock::socket(folder, key);
  if (socket.empty()) return place;
  auto membership = session::join_recorder(socket);
  if (membership) {
    place.membership = std::move(*membership);
  } else if (membership.error().code == Errc::kUnsupported) {
    return forward_error(membership);
  }
  return place;
}

}  // namespace

JobPlace find_job_place() {
  const std::string key = session::job_key();
  if (key.empty()) return {};
  const auto folder = session::recorder_folder();
  const auto alone = [&](const std::string& why) {
    say("jouleprof: {}: this process records by itself. Its file and those of the job's "
        "other processes have the same devices; `jouleprof merge` counts them once\n",
        why);
  };
  for (const HostTime last = HostClock::now() + kPatience; HostClock::now() < last;
       std::this_thread::sleep_for(kLookAgain)) {
    auto place = look_for_place(folder, key);
    if (!place) {
      alone(place.error().message);
      return {};
    }
    if (place->lock || place->membership) return std::move(*place);
  }
  alone("the recorder of this job on this host did not answer");
  return {};
}

JobPlace find_next_place(pid_t command) {
  const std::string key = session::job_key();
  const auto folder = session::recorder_folder();
  for (const HostTime last = HostClock::now() + kPatienceWithNext; HostClock::now() < last;
       std::this_thread::sleep_for(kLookAgain)) {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(command), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        ended.si_pid != 0) {
      break;
    }
    auto place = look_for_place(folder, key);
    if (!place) break;
    if (place->lock || place->membership) return std::move(*place);
  }
  return {};
}

int run_as_member(const std::vector<std::string>& command, session::Membership membership,
                  bool traced, bool quiet, const session::Succeed& succeed) {
  const pid_t recorder = membership.recorder;
  const std::string file = membership.recording;
  const std::string prefix = fmt::format("{}=", session::kTraceVariable);
  const bool is_traced = std::ranges::any_of(
      membership.variables, [&](const auto& variable) { return variable.starts_with(prefix); });
  if (!quiet) {
    say("jouleprof: recorded by process {} of this job{}\n", recorder,
        file.empty() ? "" : ", in " + file);
  }
  if (traced && !is_traced) {
    say("jouleprof: kernels are not traced: the recorder of this job was started without "
        "--kernels or --layers; give all processes the same options\n");
  }
  const auto result = session::run_joined(command, std::move(membership), succeed);
  if (!result) return complain(result.error(), kNotStarted);
  if (result->start_error) return complain(*result->start_error, result->exit_status);
  if (!result->was_recorded) {
    say("jouleprof: the recorder, process {}, ended before this command: what this command "
        "used from then on is in no file{}\n",
        recorder, file.empty() ? "" : "; what came before is in " + file);
  }
  return result->exit_status;
}

RepeatedRun RepeatedRun::of(const model::Profile& profile, bool whole_machine) {
  constexpr double kMostUndecided = 0.1;  // of the command's energy
  RepeatedRun run;
  run.seconds = jouleprof::seconds(profile.duration());
  const report::Total total = report::total_of(profile);
  run.whole = report::quoted(total, true);
  run.energy = report::quoted(total, whole_machine);
  run.is_undecided =
      run.energy && run.energy->is_command &&
      total.command->undivided.joules() > kMostUndecided * run.energy->energy.joules();
  if (run.is_undecided) run.energy = run.whole;
  for (const auto* d : total.counted) run.domains.push_back(report::label_of(profile, *d));
  for (const auto& [d, why] : total.excluded) {
    if (d->domain.kind == model::DomainKind::kGpu && d->domain.visible && !d->energy) {
      run.lost.push_back(report::label_of(profile, *d));
    }
  }
  return run;
}

std::string progress_text(const RepeatedRun& run, std::size_t number, std::size_t of) {
  const std::string lost =
      run.lost.empty() || !run.energy
          ? ""
          : fmt::format(" {} {}", run.energy->is_partial ? "with at most a part of" : "without",
                        fmt::join(run.lost, ", "));
  return fmt::format("run {} of {}: {}{}{}, {}", number, of,
                     run.energy ? report::quoted_energy_text(*run.energy) : "energy unknown",
                     run.is_undecided ? " of all devices" : "", lost, seconds_text(run.seconds));
}

std::string repeats_to_text(const std::vector<RepeatedRun>& runs,
                            const std::optional<report::UnitCount>& unit,
                            const report::CostFactors& factors, const report::TextOptions& text) {
  report::TextPage page(text);
  const auto add = [&](const std::string& label, const std::string& words) {
    page.note(page.safe(label), words, report::Style::kBold);
  };
  std::vector<double> joules;
  std::vector<double> times;
  double error = 0;
  double repeatability = 0;  // of the sensors
  auto provenance = model::Provenance::kUnavailable;
  // A mean is of one thing: of all devices where it is that of one run.
  // One that lost a device is in no mean.
  const bool is_command = std::ranges::all_of(runs, [](const RepeatedRun& run) {
    return !run.energy || run.energy->is_partial || run.energy->is_command;
  });
  const bool is_undecided =
      std::ranges::any_of(runs, [](const RepeatedRun& run) { return run.is_undecided; });
  std::set<std::string> domains;
  for (const auto& run : runs) domains.insert(run.domains.begin(), run.domains.end());
  for (const auto& run : runs) {
    times.push_back(run.seconds);
    const auto& energy = is_command ? run.energy : run.whole;
    if (!energy || energy->is_partial || run.domains.size() < domains.size()) continue;
    // Of the least known run: a mean carries the weakest provenance of its parts.
    if (joules.empty() || energy->provenance != model::Provenance::kMeasured) {
      provenance = energy->provenance;
    }
    joules.push_back(energy->energy.joules());
    error += std::max(energy->error, energy->upper_error).joules();
    repeatability += energy->repeatability.joules();
  }
  const std::string label = fmt::format("{} runs", runs.size());
  if (joules.empty()) {
    add(label, domains.empty() ? "no energy is known"
                               : "no energy is known of all devices that were measured");
    add("time", spread_text(spread_of(times), seconds_text));
    return page.joined();
  }
  const Spread energy = spread_of(joules);
  const double sensors = error / static_cast<double>(joules.size());
  const double half = std::hypot(energy.half, sensors);
  const auto relative = [&](double x) {
    return (text.ascii ? "+-" : "±") +
           report::error_width_text(Energy::joules(x), Energy::joules(energy.mean));
  };
  const bool is_bound = is_command && energy.mean <= half;
  const std::string unknown = joules.size() < runs.size()
                                  ? fmt::format(
                                        "; {} of the runs, without a known energy of {}, "
                                        "{} not in it",
                                        runs.size() - joules.size(), fmt::join(domains, " and "),
                                        runs.size() - joules.size() == 1 ? "is" : "are")
                                  : "";
  if (is_bound) {
    add(label,
        fmt::format("at most {} a run (95 %), {}, of the command: below what can be resolved{}",
                    report::energy_text(Energy::joules(energy.mean + half)),
                    report::provenance_word(provenance), unknown));
  } else {
    const auto joules_text = [](double v) { return report::energy_text(Energy::joules(v)); };
    const std::string mean =
        joules.size() == 1
            ? fmt::format("{} of one run, {}; how much runs vary is not known",
                          joules_text(energy.mean), relative(half))
            : fmt::format("{}; the mean is known to {}, of it {} by the spread of the runs",
                          spread_text(energy, joules_text), relative(half), relative(energy.half));
    add(label, fmt::format("{}; {}, of {}{}", mean, report::provenance_word(provenance),
                           is_command     ? "the command"
                           : is_undecided ? "all devices: which part is the command's is not known"
                                          : "all devices",
                           unknown));
  }
  add("time", spread_text(spread_of(times), seconds_text));
  const report::Costs costs = report::costs_of(factors, {Energy::joules(energy.mean),
                                                         Energy::joules(half),
                                                         Energy::joules(half),
                                                         {},
                                                         provenance,
                                                         is_command});
  if (factors.any()) {
    add("cost",
        (costs.is_bound() ? "at most " : "") +
            report::amounts_text(costs.shown_money(), factors.price ? factors.price->currency : "",
                                 costs.shown_grams()) +
            " for one run");
  }
  std::string all = page.joined();
  if (unit) {
    const double count = unit->count;
    report::PerUnit per;
    per.unit = *unit;
    per.seconds = spread_of(times).mean / count;
    per.joules = energy.mean / count;
    per.is_command = is_command;
    per.error_joules = per.upper_error_joules = half / count;
    per.repeatability_joules =
        std::hypot(energy.half, repeatability / static_cast<double>(joules.size())) / count;
    per.provenance = provenance;
    report::add_costs(per, costs);
    all += report::per_unit_to_text(per, text);
  }
  return all;
}

}  // namespace jouleprof::cli
