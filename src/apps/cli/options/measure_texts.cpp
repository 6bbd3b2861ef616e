// Options of the verbs that measure.
#include "apps/cli/options/common_texts.h"
#include "apps/cli/options/option_table.h"

namespace jouleprof::cli {
namespace {

// Of every verb that measures; SensorChoice reads them.
void add_sensors(std::vector<OptionText>& options) {
  options.insert(options.end(), {kCpuTdp, kGuestFile, kWallMeter});
}

}  // namespace

VerbText doctor_text() {
  VerbText text;
  text.name = "doctor";
  text.brief = "list the sensors of this machine, their traits, and what is missing";
  text.usage = {"jouleprof doctor [options]"};
  text.about =
      "Lists every sensor found, with its traits and its use. Lists every sensor that is not "
      "available, with the reason and the least invasive way to enable it.\nExits with 6 if "
      "nothing can be measured.";
  text.common = {
      kJson,
      {"--calibrate", "",
       "measure each GPU's sensors, at rest and under a load: their refresh period, averaging "
       "window and lag, and the power while a context holds the GPU (needs CUDA; about 30 s per "
       "GPU). The results are stored by GPU UUID and used by later runs"},
      {"--wall", "METER",
       "with --calibrate, find one GPU's gain by a meter at the supply: one as of run's "
       "--wall-meter, or a CSV file that grows meanwhile"},
      kDevices,
      kCpuTdp};
  text.more = {
      {"--wall-error", "PERCENT", "of the meter of a file, at 95 % (default 1)"},
      {"--supply-efficiency", "RATIO",
       "of the supply behind the meter: watts out for each watt more that goes in, such "
       "as 0.94 (taken as within 0.01) or 0.92:0.95; 1: the meter is behind it (default "
       "0.88:0.97)"},
      {"--load", "COMMAND",
       "with --wall: a command that loads the GPU in steps of some seconds, instead of "
       "the own load, which needs CUDA"},
      {"--forget", "",
       "remove what is stored of all GPUs, or of those of --devices. It comes first: with "
       "--calibrate only the new results are stored"},
      {"--forget-kernels", "", "remove the power of kernels that runs with --kernels stored"},
      {"--capture", "DIR",
       "write what the sensors show into a new folder, to prove or to mend their support "
       "elsewhere: the files of /sys that are read, and a minute of readings; no names, serial "
       "numbers or UUIDs"},
      {"--capture-time", "TIME", "with --capture: how long to read (default 1min)"}};
  text.examples = {"jouleprof doctor", "jouleprof doctor --json | python3 -m json.tool",
                   "jouleprof doctor --calibrate --devices 0",
                   "jouleprof doctor --calibrate --wall shelly:192.168.1.20 --devices 0",
                   "jouleprof doctor --forget --devices 0"};
  return text;
}

VerbText run_text() {
  VerbText text;
  text.name = "run";
  text.brief = "run a command and report its energy";
  text.usage = {"jouleprof run [options] [--] COMMAND [ARGUMENT...]",
                "jouleprof run [options] --pid PID [--pid PID ...]"};
  text.about =
      "Runs the command and measures until it ends. The command keeps its stdin, stdout, stderr "
      "and signals; run exits with the command's status (128+N after signal N, 127 not found, 126 "
      "not executable). Windows that the command opens with jouleprof's library are recorded and "
      "measured with this run's sensors; for windows below a few seconds give --shortest, such as "
      "50ms. With --kernels the recording also holds what ran on the GPUs; `jouleprof report --by "
      "kernel` prints the energy of each kernel. The program needs no change. The tool then reads "
      "the energy counter at each of its updates. Figures of the program do not include the "
      "re-runs of --replay.";
  text.common = {{"-o,--output", "FILE", "the recording; default: named after the command"},
                 {"--html", "FILE", "write the results as a page for a browser"},
                 {"--json", "FILE", "write the results as JSON; - is stdout"},
                 {"--kernels", "",
                  "trace kernels, copies and NVTX ranges of CUDA programs; takes about 2.6 % of "
                  "one core per GPU"},
                 {"--layers", "",
                  "trace layers of PyTorch models: with --kernels on the GPU; without, an estimate "
                  "from CPU time"},
                 {"--replay", "=TIME",
                  "re-run each kernel in isolation when a program ends: separates what runs "
                  "together. As --kernels --layers; each for TIME (default 0.4s), 30 s in all"},
                 {"--pid", "PID",
                  "measure a running process and its children: until it ends; of several, "
                  "separated by commas, until the last does"},
                 {"--repeat", "N", "run N times: mean and spread of energy and time"},
                 kPerUnits,
                 kPrice,
                 kCarbon,
                 kDetails,
                 {"-q,--quiet", "", "print errors only: no live line, no summary"}};
  text.more = {
      {"--serving", "",
       "record the steps and requests that jouleprof.serving reports, for `report --by "
       "request` (docs/serving.md)"},
      kForce,
      {"--append", "FILE",
       "add this run to FILE, a recording or several in one file, as its next run; where FILE does "
       "not exist, as -o. `report FILE` then has all runs together, and --run N one of them"},
      {"--no-record", "", "keep no recording"},
      {"--duration", "TIME",
       "end after TIME: the command gets SIGTERM, a process of --pid runs on"},
      {"--svg", "FILE", "write headline, balance and power over time as one figure"},
      {"--per-regex", "REGEX",
       "the number of units is the last number in the command's output that the group of the "
       "expression finds, such as '([0-9]+) images'; --per then has their name only. The command "
       "does not see a terminal"},
      kWholeMachine,
      kDevices,
      {"--no-memory", "",
       "do not use the power of kernels that earlier runs on the same GPU found, and store none "
       "for later runs"},
      {"--trace", "",
       "with --kernels: keep each launch, for a timeline; the recording grows by about 8 bytes per "
       "launch"},
      {"--counter-interval", "TIME",
       "how often to read the energy counter (default with --kernels 500ms, for short windows at "
       "each of its updates, else 10s)"},
      {"--trace-folder", "DIR",
       "with --pid: the folder of the trace that the process already writes"},
      {"--interval", "TIME",
       "how often to read polled sensors, such as 20ms; default: the refresh period of each sensor",
       "JOULEPROF_INTERVAL"},
      {"--shortest", "TIME",
       "the shortest interval of interest: below 2s the tool reads the sensors more often and uses "
       "more CPU time (default 5s; with --kernels 1s)"},
      {"--idle", "TIME",
       "how long to measure idle power before and after the command (default 1s; 0s: not at all, "
       "and no idle energy is reported)",
       "JOULEPROF_IDLE"},
      kPue,
      kNoService};
  add_sensors(text.more);
  text.examples = {"jouleprof run -- python train.py --epochs 3",
                   "jouleprof run -o before.jprof --json before.json -- ./benchmark",
                   "jouleprof run --kernels --html train.html -- python train.py",
                   "jouleprof run --devices 0,1 -- torchrun --nproc-per-node 2 train.py",
                   "jouleprof run --per 22600:inference --price '0.30 EUR/kWh' -- python infer.py",
                   "jouleprof run --repeat 10 -- ./benchmark",
                   "jouleprof run --append experiment.jprof -- python train.py --epochs 1",
                   "jouleprof run --pid 4242",
                   "jouleprof run --pid 4242 --pid 4250 -o servers.jprof",
                   "jouleprof run --kernels --layers -- python infer.py",
                   "jouleprof run --layers --replay -- python infer.py"};
  return text;
}

VerbText replay_text() {
  VerbText text;
  text.name = "replay";
  text.brief = "re-run the kernels of a program that goes on";
  text.usage = {"jouleprof replay --pid PID"};
  text.about =
      "Asks a process of `run --kernels --replay`, such as a server, to re-run its kernels in "
      "isolation now and not when it ends. It waits up to a minute until the process makes no call "
      "of CUDA for a second, and holds its calls meanwhile. All memory is as it was afterwards; "
      "where a copy of it has no room, nothing is re-run, and the reason is printed.\n"
      "In the program itself: jouleprof.replay() in Python, jouleprof_replay() in C.";
  text.common = {{"--pid", "PID", "the process"}, {"-q,--quiet", "", "no message but errors"}};
  text.examples = {"jouleprof replay --pid 4711"};
  return text;
}

VerbText monitor_text() {
  VerbText text;
  text.name = "monitor";
  text.brief = "show the machine's power, without a command";
  text.usage = {"jouleprof monitor [options]"};
  text.about =
      "Shows power, energy since the start, clocks, temperature and utilisation of the machine "
      "until interrupted. It stores the power of GPUs that are at rest, which later runs use.";
  text.common = {
      {"--format", "FORMAT",
       "table, csv, jsonl or dmon; table is the default, dmon has the columns of nvidia-smi dmon"},
      {"-d,--delay", "TIME",
       "time between rows, such as 500ms; a bare number is seconds (default 1s)"},
      {"-c,--count", "N", "stop after N rows"},
      kDevices,
      {"--record", "FILE", "write a recording as well"}};
  text.more = {
      {"-s,--select", "LETTERS", "dmon: column groups, in this order: p u c v m e t (default puc)"},
      {"-o,--options", "LETTERS", "dmon: timestamps: D the date, T the time"},
      kNoService};
  add_sensors(text.more);
  text.examples = {"jouleprof monitor", "jouleprof monitor --format csv -d 100ms -c 50 > power.csv",
                   "jouleprof monitor --format dmon -s puc -o DT -i 0"};
  return text;
}

VerbText serve_text() {
  VerbText text;
  text.name = "serve";
  text.brief = "energy by process, container, pod, job and user, for Prometheus";
  text.usage = {"jouleprof serve [options]"};
  text.about =
      "Measures the machine until interrupted, and serves its energy and power over HTTP: a live "
      "page at /, metrics for Prometheus at /metrics, and JSON at /api/v1/snapshot. It divides the "
      "energy of GPUs, CPU and DRAM among processes, containers, pods, jobs, systemd units and "
      "users, exactly. docs/metrics.md has the names and rules.";
  text.common = {
      {"--listen", "ADDRESS",
       "HOST:PORT, by default 127.0.0.1:9877; :PORT is of all interfaces; [IPV6]:PORT; may be "
       "repeated"},
      {"--web.config.file", "FILE",
       "TLS, users and headers; in the format of Prometheus' exporter-toolkit"},
      {"--level", "LIST",
       "what /metrics shows, separated by commas: process, container, pod, job, unit, "
       "user, or node for devices only (default: job,container,user,node)"},
      {"--record", "DIR",
       "record the sensors' readings in DIR, one file a day (UTC), for `report`"},
      {"--state", "FILE",
       "keep the counters in FILE over a restart; with --record default DIR/serve-state.json"},
      kDevices,
      {"--names", "LIST",
       "add other exporters' names to /metrics: for their dashboards, dcgm (dcgm-exporter), "
       "kepler, aipowermeter; prometheus: jouleprof's own, which are always there"}};
  text.more = {
      {"--web.listen-address", "ADDRESS", "as --listen"},
      {"--web.telemetry-path", "PATH", "the path of the metrics (default /metrics)"},
      {"--tick", "TIME",
       "longest time between two measurements (default 10s; 5s in the first minute and while the "
       "live page is open); a scrape has one of its own"},
      {"--max-series", "N",
       "at most N series for each of these (default 1000): ended and small ones make room; what "
       "holds a GPU never does"},
      {"--keep-ended", "TIME",
       "how long the series of an ended process, container, pod, job or unit are kept (default "
       "5min); its energy is then in reason=\"ended\""},
      {"--job-mapping-dir", "DIR",
       "the jobs of each GPU, as dcgm-exporter reads them: files named by GPU index or UUID, with "
       "one job id a line"},
      {"--kube-logs", "DIR",
       "names of pods and containers: DIR/pods and DIR/containers of the kubelet, which are in "
       "/var/log"},
      {"--record-max-size", "SIZE",
       "remove the oldest recordings beyond this size (default 4GiB); after 17 min a message says "
       "how many days fit"},
      {"--record-max-age", "AGE", "remove recordings of days before this age (default 30d)"},
      {"--share", "PATH",
       "the socket at which local programs use these sensors; off: none (default: "
       "jouleprof/serve/sampler.sock in $XDG_RUNTIME_DIR; as a systemd service in /run)"},
      {"--share-group", "GROUP", "let the members of this group use it"},
      {"--share-mode", "MODE",
       "the permissions of the socket, in octal (default 0600; 0660 with a group)"},
      {"--share-fastest", "TIME", "read no sensor more often for these programs (default 10ms)"},
      {"--otlp", "URL",
       "also send the figures to an OpenTelemetry collector, such as http://collector:4318: OTLP "
       "over HTTP, for nodes without an inbound port"},
      {"--otlp-interval", "TIME", "how often (default 1min), and once at the end"},
      {"--otlp-headers-file", "FILE",
       "headers of these requests, such as Authorization: Bearer KEY, one a line; "
       "$OTEL_EXPORTER_OTLP_HEADERS is read, too"},
      {"--created", "",
       "add the start timestamp of each counter to OpenMetrics (NAME_created): twice as many "
       "series"},
      {"--no-estimates", "",
       "leave out figures that a model computes, such as a CPU without a sensor"},
      {"--guest", "UNIT=FILE",
       "write the energy of a virtual machine, by its systemd unit, to FILE each second, for "
       "--guest-file in it; * in UNIT stands for any text"}};
  add_sensors(text.more);
  text.examples = {"jouleprof serve",
                   "jouleprof serve --record /var/lib/jouleprof",
                   "jouleprof serve --listen :9877 --web.config.file web.yml",
                   "jouleprof serve --level job,container,user --job-mapping-dir /run/jobs",
                   "jouleprof serve --otlp https://collector:4318 --otlp-headers-file otlp.txt",
                   "curl -s 127.0.0.1:9877/metrics | grep jouleprof_job_energy"};
  return text;
}

VerbText bench_text() {
  VerbText text;
  text.name = "bench";
  text.brief = "measure the latency and energy of a model's inference or training";
  text.usage = {"jouleprof bench WORKLOAD [options]",
                "jouleprof bench -m WORKLOAD [-s TOKENS] [options]"};
  text.about =
      "Runs a model until it is steady, then measures the latency and the energy of one iteration, "
      "sample, token and multiply-accumulate.\nNeeds a Python with jouleprof, and for models "
      "PyTorch: pip install '.[bench]' in a clone. Without a GPU it runs on the CPU.";
  text.common = {
      kSeqLength,
      kMode,
      {"--batch", "LIST", "batch sizes, one case each, such as 1,8,64 (default 1)"},
      kNewTokens,
      kDtype,
      kDevice,
      {"--layers", "", "also measure the energy of each layer; tracing takes time of its own"},
      {"-o,--output", "FILE", "keep the recording"},
      {"--html", "FILE",
       "also write a page for a browser; it has the distribution of latencies (docs/page.md)"},
      kJson};
  text.more = {
      {"-m,--model", "WORKLOAD", "the workload, as an option"},
      {"--seed", "N", "of weights and inputs (default 0)"},
      kMinTime,
      {"--max-time", "TIME", "with --target-rel: at most so long (default 30s)"},
      {"--target-rel", "P",
       "measure until the 95 % interval of the mean, without the calibration error, is at most P "
       "wide on either side, such as 1%"},
      kMaxWarmUp,
      {"--steady-state", "ml.energy",
       "measure a batched serving loop while its batch is full; --batch is how many requests it "
       "serves at once. --min-time and --max-warm-up do not apply"},
      {"--torch-timer", "",
       "measure the latency with torch.utils.benchmark too, in the same process"},
      {"--card", "", "list the model's layers: sizes, parameters, multiply-accumulates"},
      {"--details", "", "also print input, warm-up, levels, clocks, model, all warnings"},
      {"--top", "N", "with --layers: the N layers with most energy (default 20)"},
      {"--depth", "N", "with --layers: the first N levels of the model"},
      kRedact,
      kForce,
      {"--csv", "", "write one row per case and unit instead of text"},
      kDevices,
      {"--idle", "TIME", "how long to measure power at rest, before the workload (default 2s)",
       "JOULEPROF_IDLE"},
      kPython,
      kNoService};
  add_sensors(text.more);
  text.list_title = "WORKLOAD is one of";
  text.list = {
      {"deit-t, deit-s, deit-b", "image classification, 224x224"},
      {"bert-b, bert-l", "sequence classification"},
      {"hf:FOLDER",
       "a model of the transformers library; a folder with config.json only, or a configuration "
       "file, gets random weights"},
      {"module:function",
       "a function of a module on PYTHONPATH or in this folder. It returns one iteration as a "
       "callable, or a model and its inputs; of batch, device, dtype, seed and seq_length it gets "
       "those that it has parameters for. With --steady-state it returns a serving loop"}};
  text.examples = {"jouleprof bench deit-b", "jouleprof bench bert-l -s 320 --batch 1,8,64",
                   "jouleprof bench hf:./my-model --mode generate --new-tokens 128",
                   "jouleprof bench my_module:make_step --mode train --target-rel 1%",
                   "jouleprof bench my_module:make_server --steady-state ml.energy --batch 16,64"};
  return text;
}

}  // namespace jouleprof::cli
