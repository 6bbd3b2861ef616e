// Options of the verbs that read and write files.
#include <fmt/format.h>

#include "apps/cli/options/common_texts.h"
#include "apps/cli/options/option_table.h"
#include "importers/import.h"
#include "report/format/format.h"

namespace jouleprof::cli {

VerbText report_text() {
  VerbText text;
  text.name = "report";
  text.brief = "report a recording, or a part of it";
  text.usage = {"jouleprof report FILE... [options]"};
  text.about =
      "Prints the results of a recording. The recording may still be written to, or have been cut "
      "off. If the tool was killed while traced programs ran on, their trace is read from the "
      "folder FILE.spool.";
  text.common = {kJson,
                 {"--csv", "", "write one row per domain instead of text"},
                 {"--html", "FILE", "write a page for a browser, which needs no network"},
                 {"--svg", "FILE", "write headline, balance and power as one figure"},
                 {"--png", "FILE", "write that figure as a picture (needs librsvg2-2)"},
                 {"--by", "WHAT",
                  "a table by kernel, layer, phase, window, job or others: kernel, layer, range "
                  "and phase are of run --kernels or --layers; collective has the ranks in NCCL's "
                  "kernels; request and tenant are of an inference server (docs/serving.md); host, "
                  "rank and job of jobs (docs/jobs.md)"},
                 {"--top", "N", "with --by: the first N rows (default in text: 20)"},
                 {"--depth", "N", "with --by: the first N levels of a tree"},
                 kFrom,
                 kTo,
                 kPerUnits,
                 kPrice,
                 kCarbon,
                 kDetails};
  text.more = {
      {"--open", "", "with --html: show the page with xdg-open"},
      kRedact,
      kForce,
      {"--rest-share", "RATIO",
       "with --by job: charge the job with this part of the rest of CPUs and DRAM, such as 0.25 "
       "where it has 16 of 64 cores (default: all of it where no other family used them, else "
       "none)"},
      {"--strict", "", "of a job: exit with 8 where there is a warning, such as a missing rank"},
      {"--sacct", "",
       "with --by job: also what Slurm's accounting has for the jobs (docs/jobs.md)"},
      {"--sort", "WHAT", "with --by: energy (default for kernels), time, count or power"},
      {"--fold", "",
       "with --by layer: layers of one type and shape that differ only in numbers are one row, "
       "such as layers.*.mlp, with their number, mean energy and standard deviation; text does so "
       "by itself where there are twelve"},
      {"--no-fold", "", "with --by layer: a row for each layer"},
      {"--wide", "", "cut no name and wrap no line, however wide the terminal or COLUMNS is"},
      kReadMemory,
      kRun,
      kWholeMachine,
      kPue,
      {"--wall", "FILE",
       "also print the energy that a meter at the machine's supply reported, and which share of it "
       "the domains explain. FILE is a log of wattmetre-read, of ipmitool dcmi power reading, of "
       "Redfish, or CSV (docs/jobs.md); of a job: MACHINE=FILE, once for each machine"},
      {"--wall-column", "NAME", "with --wall: the column of the power"}};
  text.examples = {"jouleprof report train.jprof",
                   "jouleprof report train.jprof --from 60s --to 2min",
                   "jouleprof report train.jprof --json > train.json",
                   "jouleprof report train.jprof --html train.html --open",
                   "jouleprof report train.jprof --svg train.svg --png train.png --redact",
                   "jouleprof report infer.jprof --by kernel --top 50",
                   "jouleprof report infer.jprof --by layer --depth 2",
                   "jouleprof report train.jprof --by window",
                   "jouleprof report ddp.jprof --by collective",
                   "jouleprof report node1.jprof node2.jprof --by job",
                   "jouleprof report train.jprof --wall wall.csv",
                   "jouleprof report train.jprof --price 0.30/kWh --carbon 230 --pue 1.2"};
  return text;
}

VerbText merge_text() {
  VerbText text;
  text.name = "merge";
  text.brief = "merge recordings of hosts, ranks or parts of a job into one file";
  text.usage = {"jouleprof merge FILE... -o OUTPUT [options]"};
  text.about =
      "Merges recordings of hosts, ranks or parts of a job into one file, of which jouleprof "
      "report prints the energy by host or rank. Each recording is kept unchanged. FILE may be a "
      "merged file. The same recording twice is an error. Warnings name ranks that are missing or "
      "come twice, machines whose clocks differ, and recordings that were cut off.";
  text.common = {
      {"-o,--output", "FILE", "the merged file"},
      kForce,
      {"-q,--quiet", "", "warnings only"},
      kJson,
      {"--strict", "", "exit with 8 where there is a warning; the file is written all the same"}};
  text.examples = {"jouleprof merge job.*.jprof -o job.jprof",
                   "jouleprof report job.jprof --by rank --price 0.30/kWh --carbon 230 --pue 1.2"};
  return text;
}

VerbText export_text() {
  VerbText text;
  text.name = "export";
  text.brief = "write a recording's samples or results for other programs";
  text.usage = {"jouleprof export FILE [options]"};
  text.about = "Writes the contents of a recording for other programs.";
  text.common = {
      {"--format", "FORMAT",
       "one of the formats below; default: by the ending of the output's name, else csv"},
      {"-o,--output", "FILE", "the file to write; default: stdout; FILE.gz is compressed"},
      kForce,
      kFrom,
      kTo};
  text.more = {
      kReadMemory,
      kRun,
      {"--tables", "LIST", "parquet: only these tables, separated by commas, such as runs,kernels"},
      {"--wall", "FILE", "evidence: also the log of a meter at the machine's supply, as of report"},
      {"--wall-column", "NAME", "with --wall: the column of the power"},
      kPython};
  text.list_title = "Formats, each with the ending of a name that selects it:";
  for (const report::Format* format : report::formats()) {
    if (report_option(format->name)) continue;
    text.list.push_back(
        {fmt::format("{:<12}  {}", format->name, format->extension), std::string(format->shows)});
  }
  text.list.push_back({"parquet",
                       "tables in the folder of -o, as FOLDER/TABLE/day=DAY/RECORDING.parquet "
                       "(docs/fleet.md). It needs pyarrow: pip install pyarrow"});
  text.examples = {"jouleprof export train.jprof > power.csv",
                   "jouleprof export train.jprof -o power_metrics.json",
                   "jouleprof export infer.jprof -o infer.trace.json.gz",
                   "jouleprof export infer.jprof -o infer.pb.gz",
                   "jouleprof export infer.jprof -o infer.evidence.html",
                   "jouleprof export job.jprof --format parquet -o /data/energy"};
  return text;
}

VerbText ledger_text() {
  VerbText text;
  text.name = "ledger";
  text.brief = "add recordings to a table of jobs and devices (Parquet)";
  text.usage = {"jouleprof ledger FILE... -o FOLDER [options]"};
  text.about =
      "Adds recordings and merged files to a table with a row for each job and device: "
      "FOLDER/ledger/month=MONTH/*.parquet (docs/fleet.md). A recording that is already there "
      "changes nothing. Several programs may add to one table at the same time. Small files are "
      "joined as they become many. It needs pyarrow: pip install pyarrow.\nExits with 1 where a "
      "file could not be read; the others are added.";
  text.common = {
      {"-o,--output", "FOLDER", "where the table is, or begins"},
      {"--compact", "", "join the files of each month into one; FILE is then not needed"},
      kPython};
  text.examples = {"jouleprof ledger job.jprof -o /data/energy",
                   "jouleprof ledger --compact -o /data/energy"};
  return text;
}

VerbText import_text() {
  VerbText text;
  text.name = "import";
  text.brief = "convert another tool's file into a recording";
  text.usage = {"jouleprof import FILE... -o OUT.jprof [options]",
                "jouleprof import FILE.csv --power-column NAME [options] -o OUT.jprof",
                "jouleprof import --format csv --samples FILE [options] -o OUT.jprof"};
  text.about =
      "Converts another tool's files into a recording, for report and export. Several files of one "
      "experiment become one recording: they are placed by their dates and times, and no device "
      "counts twice. FILE may be a folder. Columns and figures that have no place in a recording "
      "are left out, and named. Rows that cannot be right are left out, and counted. Rows of one "
      "device that contradict each other are refused: they are of several machines or GPUs. Any "
      "other CSV file is read by the names of its columns. Tables for --format csv have the "
      "columns that docs/formats.md lists.";
  text.common = {
      {"-o,--output", "FILE", "the recording to write"},
      kForce,
      {"--format", "FORMAT",
       "the files' format, one of those below; default: recognised by their content"},
      {"--interval", "TIME", "time between rows of a log without timestamps (default 1s)"},
      {"--power-column", "[DEVICE=]NAME[:UNIT]",
       "of any CSV file, the column with the power of DEVICE; DEVICE is gpu0 (default), cpu, dram "
       "or socket1, UNIT is W, mW or kW (default: as its name says); may be repeated"},
      {"--time-column", "NAME[:UNIT]",
       "its column of times: dates, with a zone or local; or numbers since 1970, or since any "
       "other time in UNIT (s, ms, us, ns; default s). Without it the one called time, timestamp, "
       "date or epoch; rows of a file without one, and with --interval, are that far apart"},
      {"--trim", "",
       "of dmon, only the rows in which the GPU worked: those with sm at 30 % or more, less one at "
       "each end; what is left out is printed"}};
  text.more = {
      {"--samples", "FILE", "of --format csv: power samples (docs/formats.md)"},
      {"--counter", "FILE", "reads of an energy counter"},
      {"--kernels", "FILE", "what ran on the GPU"},
      {"--names", "FILE", "JSON: the kernels' names, and the origin of their times"},
      {"--idle", "BEGIN:END",
       "an idle interval: Unix seconds, or with a unit since the first reading (0s:5s); may be "
       "repeated"},
      {"--device-name", "NAME",
       "of the GPU, such as \"NVIDIA H100 80GB HBM3\": use what is known of its sensors"},
      {"--sampled", "HOW", "kind of samples: ring (default), instant or average"},
      {"--events", "", "keep each kernel, for a timeline"},
      {"--columns", "LIST", "the list of --query-gpu, of a log of nvidia-smi without header"},
      {"--device-column", "NAME",
       "its column with the device's name or number, of a file with a row a device"},
      {"--block", "N", "dmon: import block N of a text that holds several"},
      {"--latency", "TIME",
       "of a power log: print the idle, active and total energy of one inference that takes TIME, "
       "such as 4.37ms; includes --trim"}};
  text.list_title = "Formats:";
  for (const auto& format : importers::formats()) {
    text.list.push_back({std::string(format.name), std::string(format.description)});
  }
  text.list.push_back({"csv", "your own tables, which --samples, --counter and --kernels name"});
  text.examples = {"jouleprof import power.csv -o run.jprof",
                   "jouleprof import --trim power_usage.csv -o deit.jprof",
                   "jouleprof import gpus.csv power_metrics.json omegawatt.csv -o experiment.jprof",
                   "jouleprof import deit-b-power.csv -o deit-b.jprof --latency 4.37ms",
                   "jouleprof import --format csv --samples s.csv --kernels k.csv.gz -o mix.jprof",
                   "jouleprof import --format aipowermeter power_metrics.json -o run.jprof",
                   "jouleprof import log.csv --power-column gpu0=board_mw:mW -o run.jprof"};
  return text;
}

VerbText annotate_text() {
  VerbText text;
  text.name = "annotate";
  text.brief = "add energies to a trace written by torch.profiler";
  text.usage = {"jouleprof annotate TRACE --power RUN.jprof -o OUT [options]"};
  text.about =
      "Reads a trace written by torch.profiler (export_chrome_trace). Adds the energy of each "
      "kernel and copy, the energy of each operator and range that launched one, and the power "
      "curve. All other bytes stay unchanged. TRACE may be compressed. A trace that was cut off "
      "ends after its last whole event.";
  text.common = {{"--power", "FILE",
                  "a recording of the same time, made by jouleprof run (without --kernels: "
                  "torch.profiler records the kernels)"},
                 {"-o,--output", "FILE", "the trace to write; FILE.gz is compressed"},
                 kForce};
  text.examples = {"jouleprof run -o infer.jprof -- python profile_with_torch.py",
                   "jouleprof annotate trace.json.gz --power infer.jprof -o with_energy.json.gz"};
  return text;
}

}  // namespace jouleprof::cli
