#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "analysis/sweep/recommend.h"
#include "apps/cli/control/settings.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/say.h"
#include "recording/sweep_file.h"
#include "session/run/session.h"
#include "session/sweep/experiment.h"

namespace jouleprof::cli {
namespace {

using meters::control::Knob;

struct Choice {
  Knob knob = Knob::kPowerLimit;
  double setting = 0;
  std::vector<std::string> devices;  // of a sweep: what it was measured on
};

Result<Choice> recommended(const std::string& file) {
  const auto record = recording::read_sweep(file);
  if (!record) return forward_error(record);
  const auto sweep = analysis::sweep_of(record->plan, record->runs);
  const auto advice = analysis::recommend(sweep, session::recommend_options(record->plan, sweep));
  if (!advice) return forward_error(advice);
  const auto knob = meters::control::knob_of_label(record->plan.knob);
  if (!knob) return fail(Errc::kCorrupt, file + " has an unknown knob");
  return Choice{*knob, advice->points[advice->best].point->setting, record->plan.devices};
}

class ApplyVerb : public Verb {
 public:
  std::string_view name() const override { return "apply"; }

  void declare(CLI::App& app) override {
    auto* file = add(app, "FILE", file_);
    auto* power = add(app, "--power", power_)->check(above_zero())->excludes(file);
    add(app, "--sm-clock", clock_)->check(above_zero())->excludes(file)->excludes(power);
    add(app, "--memory-clock", memory_clock_)
        ->check(above_zero())
        ->excludes(file)
        ->excludes(power)
        ->excludes("--sm-clock");
    add(app, "--restore", restore_);
    add(app, "--devices", devices_)->delimiter(',');
    add(app, "--shared", shared_);
    add(app, "--quiet", quiet_);
  }

  int run(const std::vector<std::string>& command) override {
    if (restore_)
      return command.empty()
                 ? restore()
                 : complain({Errc::kInvalidArgument, "--restore has no command"}, kNotStarted);
    restore_settings();
    if (command.empty()) {
      return complain({Errc::kInvalidArgument,
                       "say for which command: jouleprof apply FILE -- COMMAND. To set "
                       "a limit for longer: nvidia-smi -pl WATTS\nTry 'jouleprof apply --help'."},
                      kNotStarted);
    }
    const auto choice = chosen();
    if (!choice) return complain(choice.error(), kNotStarted);
    const bool as_swept = devices_.empty() && !choice->devices.empty();
    const auto devices = devices_to_set(as_swept ? choice->devices : devices_);
    if (!devices) return complain(devices.error(), kNotStarted);
    auto held = hold_boards(choice->knob, *devices, shared_);
    if (!held && as_swept && held.error().code == Errc::kInvalidArgument) {
      return complain({Errc::kInvalidArgument,
                       fmt::format("{} was measured on other GPUs than this machine's or those "
                                   "that are visible: {}. Name those to set with --devices",
                                   file_, fmt::join(choice->devices, ", "))},
                      kNotStarted);
    }
    if (!held) return complain(held.error(), kNotStarted);
    if (const double nearest = (*held)->range().nearest(choice->setting);
        nearest != choice->setting) {
      return complain(
          {Errc::kInvalidArgument,
           fmt::format("{:g} {} is not a setting of this board; the nearest is {:g}",
                       choice->setting, meters::control::unit_of(choice->knob), nearest)},
          kNotStarted);
    }
    const auto set = (*held)->apply(choice->setting);
    if (!set) return complain(set.error(), kNotStarted);
    for (const auto& board : *set) say_set(*choice, board);

    session::SessionOptions options;
    options.command = command;
    options.idle_before = options.idle_after = Duration{};
    options.use_cgroup = false;
    const auto result = session::run(options, {}, nullptr);
    const auto restored = (*held)->restore();
    for (const auto& warning : (*held)->warnings()) say("warning    {}\n", warning);
    if (const auto lost = (*held)->lost()) complain(*lost, kNotStarted);
    const int left = restored ? kDone : complain(restored.error(), kNotPermitted);
    if (!result) return complain(result.error(), kNotStarted);
    if (result->start_error) {
      return complain(*result->start_error, result->exit_status.value_or(kNotStarted));
    }
    const int status = result->exit_status.value_or(kNotStarted);
    return status == kDone ? left : status;
  }

 private:
  static int restore() {
    const auto outcome = restore_settings(meters::control::Leftovers::kSettle);
    if (outcome.restored + outcome.failed == 0) {
      say("jouleprof: nothing to restore: no killed sweep has left a setting\n");
    }
    return outcome.failed > 0 ? kNotPermitted : kDone;
  }

  Result<Choice> chosen() const {
    if (power_) return Choice{Knob::kPowerLimit, *power_, {}};
    if (clock_) return Choice{Knob::kSmClock, *clock_, {}};
    if (memory_clock_) return Choice{Knob::kMemoryClock, *memory_clock_, {}};
    if (!file_.empty()) return recommended(file_);
    return fail(Errc::kInvalidArgument,
                "say what to set: the file of a sweep, --power WATTS, --sm-clock MHZ or "
                "--memory-clock MHZ");
  }

  void say_set(const Choice& choice, const meters::control::ReadBack& board) const {
    const double now = board.requested.value_or(choice.setting);
    const auto unit = meters::control::unit_of(choice.knob);
    if (std::abs(now - choice.setting) >= 1) {
      say("warning    {}: the driver made {:g} {} of the {:g} {} requested\n", board.device, now,
          unit, choice.setting, unit);
    }
    if (choice.knob == Knob::kPowerLimit && board.enforced_watts &&
        now - *board.enforced_watts >= 1) {
      say("warning    {}: {:g} W is enforced instead, by another limiter of the board\n",
          board.device, *board.enforced_watts);
    }
    if (quiet_) return;
    say("jouleprof: {}: the {} is {:g} {} until the command ends\n", board.device,
        meters::control::name_of(choice.knob), now, unit);
  }

  std::string file_;
  std::optional<double> power_;
  std::optional<double> clock_;
  std::optional<double> memory_clock_;
  bool restore_ = false;
  std::vector<std::string> devices_;
  bool shared_ = false;
  bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_apply() { return std::make_unique<ApplyVerb>(); }

}  // namespace jouleprof::cli
