// Options of the verbs that compare and that set GPUs.
#include "apps/cli/options/common_texts.h"
#include "apps/cli/options/option_table.h"

namespace jouleprof::cli {

VerbText compare_text() {
  VerbText text;
  text.name = "compare";
  text.brief = "compare recordings or commands: what changed, and is it certain?";
  text.usage = {"jouleprof compare 'COMMAND BEFORE' 'COMMAND AFTER' [options]",
                "jouleprof compare BEFORE.jprof AFTER.jprof [options]",
                "jouleprof compare --before FILE... --after FILE... [options]",
                "jouleprof compare --baseline NAME AFTER... [options]",
                "jouleprof compare --pairs N [options] -- COMMAND --- COMMAND",
                "jouleprof compare --save-baseline NAME FILE..."};
  text.about =
      "Compares energy, time and power of two sets of recordings, or of two commands that it runs "
      "in turn. Each change has a 95 % interval and a verdict: lower, higher, same or "
      "inconclusive, with a reason.\nExits with 0, also where the energy is higher. With --fail-if "
      "it exits with 8 where a limit is exceeded, and with 9 where that is inconclusive.";
  text.common = {
      {"--pairs", "N",
       "run both commands N times, by default 4: in the order A B B A B A A B and again; their "
       "output goes to stderr"},
      {"--by", "WHAT",
       "also compare each window, phase, layer or kernel; with --pairs commands are then traced"},
      {"--per", "WINDOW", "compare the mean of windows of this name, not runs"},
      {"--fail-if", "LIMIT",
       "exit with 8 if above LIMIT, such as 'energy>+3%': where the whole interval lies above it; "
       "also of time or power; repeatable"},
      {"--baseline", "NAME",
       "compare with recordings kept by this name: of the newest commit or of NAME@COMMIT"},
      kJson,
      {"--html", "FILE", "also write a page for a browser"},
      {"--format", "KIND[=FILE]",
       "also write for a pull request: markdown=FILE, junit=FILE (a case each --fail-if), "
       "benchmark=FILE (of github-action-benchmark), github (stdout)"}};
  text.more = {
      {"--before", "FILE...", "recordings of one side"},
      {"--after", "FILE...", "recordings of the other side"},
      {"--save-baseline", "NAME",
       "keep the recordings after by this name: and by the checked out commit (docs/compare.md)"},
      {"--details", "",
       "also print runs, test, devices and all warnings, as to a file or pipe without it"},
      {"--warmup", "N", "with --pairs: first run each N times without counting it (default 1)"},
      {"--replay", "=TIME",
       "with --pairs: re-run layers and kernels in isolation after each run, as jouleprof run "
       "--replay, so that more rows have a figure (default 0.4s each)"},
      {"--keep", "DIR", "with --pairs: keep the recordings in this folder"},
      kDevices,
      kWholeMachine,
      {"--paired", "", "the first file before and the first after are a pair, and so on"},
      {"--spread", "P",
       "the relative standard deviation between runs, known from elsewhere, such as 2%; needed "
       "where each side has one recording or one block of them"},
      {"--same-within", "P",
       "a change whose interval lies within P is no change: same (default 1%)"},
      {"--accept", "CODES", "give verdicts although these conditions differ, such as work_differs"},
      {"--inconclusive", "X",
       "fail (default) or pass: the exit status where the interval holds the limit"},
      {"--self-test", "",
       "multiply the figures after by (1 + limit)^2 first. A gate that can resolve its limit must "
       "fail then"},
      kPrice,
      kCarbonNumber,
      kPue,
      {"--top", "N", "at most N rows of --by; 0: all (default 20; JSON has all)"},
      kRedact,
      {"-q,--quiet", "", "no line for each pair"}};
  text.examples = {"jouleprof compare before.jprof after.jprof --by layer",
                   "jouleprof compare before.jprof after.jprof --by kernel --html change.html",
                   "jouleprof compare --pairs 10 -- python old.py --- python new.py",
                   "jouleprof compare 'python old.py' 'python new.py' --fail-if 'energy>+3%'",
                   "jouleprof compare --before a*.jprof --after b*.jprof --per step --by kernel",
                   "jouleprof compare --save-baseline main run1.jprof run2.jprof",
                   "jouleprof compare --baseline main run3.jprof --format junit=energy.xml"};
  return text;
}

VerbText sweep_text() {
  VerbText text;
  text.name = "sweep";
  text.brief = "measure a command at several power limits or clocks of the GPU";
  text.usage = {"jouleprof sweep [options] [--] COMMAND [ARGUMENT...]",
                "jouleprof sweep --bench WORKLOAD [options]",
                "jouleprof sweep [--observe] --resume [-o FILE]"};
  text.about =
      "Measures the command, or a benchmark of a model, at several power limits or clocks of its "
      "GPUs, and recommends one. The setting found before is restored at the end, and after any "
      "failure, kill or interrupt. Needs root (in a container: --cap-add SYS_ADMIN); without it "
      "nothing is changed. Each setting is moved to the nearest that the board accepts.\nExits "
      "with the command's status where the command fails, with 10 where permission is missing, "
      "with 4 where no setting can be recommended, and with 6 where the work could not be "
      "measured, or a setting could not be restored or was changed by another program, which is "
      "named.";
  text.common = {
      {"--knob", "WHAT",
       "power, sm-clock or memory-clock; power, the default, is the power limit in W, the others "
       "are locked clocks in MHz"},
      {"--limits", "LIST",
       "the settings, separated by commas; default: 8 over the range of the board, and the present "
       "one"},
      {"--range", "LOW:HIGH", "settings in this range instead"},
      {"--per", "NAME", "the work is one window of this name, such as step"},
      {"--throughput", "REGEX",
       "the work is a unit of a rate that the command prints: such as '([0-9.]+) tokens/s'"},
      {"--bench", "WORKLOAD",
       "the work is one iteration of jouleprof bench; its options are under --help-all"},
      kMaxSlowdown,
      kObjective,
      {"--dry-run", "",
       "run the command once and print the plan: time, energy and privilege; change nothing"},
      {"--resume", "", "go on with the sweep in FILE; with --observe: add a run"},
      kDevices,
      {"-o,--output", "FILE", "default sweep.jprof"}};
  text.more = {
      {"--step", "X", "with --range: the distance between settings"},
      kSeqLength,
      kMode,
      {"--batch", "N", "one batch size (default 1)"},
      kNewTokens,
      kDtype,
      kDevice,
      kMinTime,
      kMaxWarmUp,
      kPython,
      {"--observe", "",
       "set nothing, which needs no privilege: run the command once, and compare the power limits "
       "that someone else sets meanwhile. With --resume: add a run"},
      kEta,
      kMaxPower,
      {"--max-time", "TIME", "start no run that would end after this time, such as 30min"},
      {"--tolerance", "P", "end when no setting can be better by more than P; default 1%"},
      {"--min-repeats", "N",
       "measure each setting that is not ruled out at least N times; default 3, or --repeats where "
       "that is less"},
      {"--repeats", "N", "and at most N times; default 8, or --min-repeats where that is more"},
      {"--seed", "N", "of the random order; default 1"},
      {"--cool-to", "C",
       "before each run, wait until the GPU is at C degrees Celsius or below, at most 2 min"},
      {"--whole-machine", "", "the energy of a run is that of whole GPUs, and not the command's"},
      kShared,
      kForce,
      {"-q,--quiet", "", "no table of runs, no recommendation"}};
  text.examples = {"jouleprof sweep --dry-run -- python train.py",
                   "sudo jouleprof sweep --max-slowdown 5% -- python train.py",
                   "sudo jouleprof sweep --throughput '([0-9.]+) tokens/s' -- python infer.py",
                   "sudo jouleprof sweep --bench bert-l -s 320 --batch 8 --knob sm-clock",
                   "sudo jouleprof sweep --resume",
                   "jouleprof sweep --observe --per step -- python train.py"};
  return text;
}

VerbText recommend_text() {
  VerbText text;
  text.name = "recommend";
  text.brief = "choose the best setting of a power-limit or clock sweep";
  text.usage = {"jouleprof recommend FILE [options]"};
  text.about =
      "Chooses the best power limit or clock of a sweep: the setting with the least objective that "
      "meets the constraints. FILE was written by jouleprof sweep, whose objective and constraints "
      "are the defaults, or is a recording with a sweep, such as an imported table of Zeus.";
  text.common = {kObjective,
                 kMaxSlowdown,
                 {"--hours", "H", "what the saving means a day, for H hours of this work"},
                 kPrice,
                 kCarbonNumber,
                 {"--html", "FILE",
                  "also write a page for a browser: energy against time with the Pareto front, and "
                  "every quantity against the setting; an existing file is replaced"},
                 kJson};
  text.more = {kEta,
               kMaxPower,
               {"--reference", "X", "the setting to compare with; default: the highest"},
               {"--profile", "FILE",
                "also write the power limits, energies and times as a profile of Zeus (JSON), "
                "which jouleprof.PowerLimitOptimizer reads; an existing file is replaced"},
               kRedact,
               {"--svg", "FILE",
                "also draw it: energy, time, throughput, power, clock, temperature and utilisation "
                "against the setting; an existing file is replaced"}};
  text.examples = {"jouleprof import summary_power_v100.csv -o v100.jprof",
                   "jouleprof recommend v100.jprof --max-slowdown 10%",
                   "jouleprof recommend sweep.jprof --objective edp --hours 20 --price 0.30/kWh",
                   "jouleprof recommend sweep.jprof --svg report.svg",
                   "jouleprof recommend sweep.jprof --html sweep.html"};
  return text;
}

VerbText apply_text() {
  VerbText text;
  text.name = "apply";
  text.brief = "run a command at a power limit or clock";
  text.usage = {"jouleprof apply FILE [options] -- COMMAND [ARGUMENT...]",
                "jouleprof apply --power WATTS [options] -- COMMAND [ARGUMENT...]",
                "jouleprof apply --restore"};
  text.about =
      "Sets the power limit or clock that the sweep in FILE recommends by the objective and "
      "constraints it was measured with, on its GPUs, or the one given, runs the command, and "
      "restores the setting that it found. Needs root. The exit status is the "
      "command's; 125 where it was not started; 10 where the command ended with 0 and the setting "
      "could not be restored.";
  text.common = {{"--power", "WATTS", "the power limit"},
                 {"--sm-clock", "MHZ", "the SM clock to lock"},
                 {"--memory-clock", "MHZ", "the memory clock to lock"},
                 kDevices,
                 kShared,
                 {"-q,--quiet", "", "no message about the setting"}};
  text.more = {{"--restore", "",
                "without a command: restore the settings of GPUs that a sweep has left which was "
                "killed with its guard process"}};
  text.examples = {"sudo jouleprof apply sweep.jprof -- python train.py",
                   "sudo jouleprof apply --power 350 -- python train.py",
                   "sudo jouleprof apply --restore"};
  return text;
}

}  // namespace jouleprof::cli
