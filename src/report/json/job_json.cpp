#include "report/json/json_format.h"
#include "report/json/records.h"
#include "report/json/values.h"
#include "report/quantity.h"
#include "report/results/job.h"

namespace jouleprof::report {

namespace {

constexpr const char* kJobSchema = "jouleprof.job/2";

void energy_columns(const std::optional<model::Measurement>& m, std::string_view meaning,
                    std::string_view null, Columns& column, bool is_partial = false) {
  const auto part = [&](Energy model::Measurement::*member) {
    return m ? std::optional(*m.*member) : std::nullopt;
  };
  column("energy_joules", part(&model::Measurement::energy), meaning, null);
  column("error_joules", part(&model::Measurement::error), "half of its 95 % interval", null);
  column("interval_joules", bounds_of(m, is_partial), "[lower, upper bound], 95 %", null);
  column("repeatability_joules", part(&model::Measurement::repeatability),
         "the same without the calibration error", null);
  column("provenance", m ? m->provenance : model::Provenance::kUnavailable, "of the energy");
}

Json spread_json(const analysis::Spread& spread) {
  if (spread.of == 0) return nullptr;
  Json j = Json::object();
  j["of"] = spread.of;
  j["least"] = number_json(spread.least);
  j["mean"] = number_json(spread.mean);
  j["most"] = number_json(spread.most);
  j["standard_deviation"] = number_json(spread.deviation);
  j["most_in"] = text_json(spread.most_in);
  return j;
}

}  // namespace

void columns(const analysis::HostClock& clock, Columns& column) {
  column("reference", clock.reference, "the other machine", "");
  column("offset_seconds", clock.offset_seconds,
         "its wall clock less the reference's, at the first operation");
  column("drift_ratio", clock.drift, "seconds that its steady clock gains in a second of its own");
  column("error_seconds", clock.error_seconds, "the alignment is wrong by no more than this");
  column("residual_seconds", clock.residual_seconds,
         "root mean square of the operations' ends about the line");
  column("collectives", clock.calls, "number of operations");
}

void columns(const analysis::JobDomain& domain, Columns& column) {
  column("name", domain.label, "the device, and the domain where it is not the whole device");
  column("identity", domain.identity, "the GPU's UUID, else its device");
  column("counted", domain.is_counted, "whether it is in the total");
  energy_columns(domain.energy, "over the union of the recordings' times", "`reason` states why",
                 column, domain.lacks_time);
  column("reason", domain.energy && !domain.lacks_time ? std::string_view{} : domain.reason,
         "why there is no energy, or none of a part of the time: then it is a lower bound, and has "
         "no upper one",
         "there is one of all the time");
}

void columns(const analysis::JobHost& host, Columns& column) {
  column("host", host.host,
         "the machine; where several share a name, the first digits of their boot id follow it; of "
         "a recording that names none, the name of its file");
  column("boot_id", host.boot_id, "the boot of the machine", "not recorded");
  column(
      "recordings", [&] { return Json(host.recordings); },
      "names of files, a list in the order of time");
  column("start_time", host.began, "begin of the first recording", "it has no wall clock");
  column("recorded_seconds", host.covered, "the union of the recordings' times");
  column("clock_change_seconds", host.clock_change,
         "by how much the wall clock moved against the steady clock, without the time that the "
         "machine was suspended");
  column("clock", nested(host.clock),
         "its clock against another machine's, by the collectives that ranks of both ran",
         "there are none, or it is the reference");
  energy_columns(host.total, "the total of its domains", "no counted domain has one", column,
                 host.is_partial);
  column("is_partial", host.is_partial,
         "true: a device has no energy for a part of the time, and the sum is without it: it is a "
         "lower bound, and has no upper one");
  column("domains", nested(host.domains), "its domains, a list");
}

void columns(const analysis::JobRank& rank, Columns& column) {
  constexpr std::string_view kNotSet = "not set";
  constexpr std::string_view kNotTraced = "its kernels were not traced";
  constexpr std::string_view kNotMatched = "collectives were not traced, or not matched over ranks";
  column("rank", rank.rank.global, "in the whole job, as the launcher set it", kNotSet);
  column("local_rank", rank.rank.local, "on its machine", kNotSet);
  column("world_size", rank.rank.world_size, "processes in the whole job", kNotSet);
  column("launcher", rank.rank.launcher, "what numbered it", kNotSet);
  column("job", rank.rank.job, "Slurm's number of the job", kNotSet);
  column("step", rank.rank.step, "the step in it", kNotSet);
  column("host", rank.host, "the machine; in a container, the container's name", "not recorded");
  column("recording", rank.recording, "name of the file");
  column("seconds", rank.length, "length of the recording");
  column("cpu_seconds", rank.cpu_time, "CPU time of the rank's processes", "not recorded");
  column("dynamic_joules", rank.energy, "their shares of the energy above rest",
         "no share is known");
  column(
      "without", [&] { return Json(rank.without); },
      "devices that it used and of which its energy above rest is unknown: `dynamic_joules` lacks "
      "them, a list");
  column("division_interval_joules",
         rank.energy ? std::optional(Bounds{rank.bounds.low, rank.bounds.high}) : std::nullopt,
         "lower and upper bound of it, if the devices' energy is exact", "no share is known");
  column("held_joules", rank.held, "of it, their part of the held energy of GPUs", kNotTraced);
  column("kernels_joules", rank.kernels, "of it, the energy of their kernels", kNotTraced);
  column("idle_between_launches_joules", rank.idle_between,
         "of it, their part of the energy between launches", kNotTraced);
  const auto part = [](const std::optional<model::Measurement>& m,
                       Energy model::Measurement::*member) {
    return m ? std::optional(*m.*member) : std::nullopt;
  };
  using model::Measurement;
  column("collective_waiting_seconds", rank.waiting,
         "time in collectives before all ranks had begun them", kNotMatched);
  column("collective_waiting_joules", part(rank.waiting_energy, &Measurement::energy),
         "energy in that time", kNotMatched);
  column("collective_waiting_error_joules", part(rank.waiting_energy, &Measurement::error),
         "half of its 95 % interval", kNotMatched);
  column("collective_transfer_seconds", rank.transfer, "time in collectives after that",
         kNotMatched);
  column("collective_transfer_joules", part(rank.transfer_energy, &Measurement::energy),
         "energy in that time", kNotMatched);
  column("collective_transfer_error_joules", part(rank.transfer_energy, &Measurement::error),
         "half of its 95 % interval", kNotMatched);
  column("kernel_seconds", rank.kernel_time, "time on GPUs in kernels that are no collectives",
         kNotTraced);
  column("imbalance_ratio", rank.imbalance,
         "by how much that exceeds the mean of the recording's ranks, relative to it",
         "it is unknown, or there is one rank");
}

void columns(const analysis::JobShare& share, Columns& column) {
  column("job", share.job, "Slurm's number of the job", "there is none");
  column("hosts", share.hosts, "number of machines");
  column("recordings", share.recordings, "number of recordings");
  column("ranks", share.ranks, "number of ranks");
  column("recorded_seconds", share.recorded, "recorded time, summed over machines");
  column("charged_joules", share.charged(), "`dynamic_joules` + `rest_joules`");
  column("dynamic_joules", share.has_unknown_rest ? std::nullopt : std::optional(share.dynamic),
         "of the job's processes", "it has energy at rest that is unknown");
  column("rest_joules", share.knows_rest ? std::optional(share.rest) : std::nullopt,
         "energy at rest of devices that no other family used ([rule](jobs.md#by-job))",
         "it is unknown");
}

void columns(const analysis::JobWindow& window, Columns& column) {
  column("name", window.name, "the windows' name");
  column("count", window.count, "number of windows");
  energy_columns(window.energy, "their energy; each device and time counts once",
                 "no window has one", column, window.is_partial);
  column("is_partial", window.is_partial,
         "true: a window has no energy of a device that has one at other times: the sum is a lower "
         "bound, and has no upper one");
  column("reason", window.reason, "the first reason", "`is_partial` is false");
  column(
      "rank_joules", [&] { return spread_json(window.joules); },
      "the sum of a rank's windows, over ranks whose windows lack no device: `of` (how many), "
      "`least`, `mean`, `most`, `standard_deviation` and `most_in` (the rank with the most; a "
      "recording where ranks are unknown)",
      "no rank has the figure");
  column(
      "rank_seconds", [&] { return spread_json(window.seconds); }, "the same of their durations",
      "no rank has the figure");
}

void columns(const analysis::JobLayer& layer, Columns& column) {
  column("name", layer.name, "a layer in all recordings");
  column("launches", layer.launches, "launches on GPUs, by this layer itself");
  energy_columns(layer.energy, "of its own kernels", "no recording has one", column);
  column(
      "recording_joules", [&] { return spread_json(layer.joules); },
      "of one recording, over recordings: as `rank_joules`", "no recording has the figure");
  column(
      "recording_seconds", [&] { return spread_json(layer.seconds); },
      "the same of its time on GPUs", "no recording has the figure");
}

void columns(const analysis::RankGroup& group, Columns& column) {
  column("launcher", group.launcher, "what numbered the ranks", "not set");
  column("job", group.job, "Slurm's number of the job", "not set");
  column("step", group.step, "the step in it", "not set");
  column("world_size", group.world_size, "how many ranks there are");
  column("present", group.present, "how many of them are in the recordings");
  column(
      "missing", [&] { return Json(group.missing); }, "numbers in no recording, a list");
  column(
      "repeated", [&] { return Json(group.repeated); },
      "numbers on several machines, or at the same time in several recordings of one, a list");
}

namespace {

// The document, and what is computed before it is written.
struct JobDocument {
  const analysis::Job& job;
  const JobOptions& options;
  std::optional<Costs> costs;
  Json walls = Json::array();
};

Json slurm_json(const std::vector<SlurmEnergy>& all) {
  return list_json(all, [](const SlurmEnergy& slurm) -> Json {
    return {{"job", text_json(slurm.job)},
            {"consumed_joules", optional_json(slurm.energy, joules_json)},
            {"reason", slurm.energy ? Json(nullptr) : text_json(slurm.reason)}};
  });
}

void columns(const JobDocument& document, Columns& column) {
  const auto& [job, options, costs, walls] = document;
  constexpr std::string_view kNoClock = "a recording has no wall clock";
  column("recordings", job.recordings, "how many there are");
  column("start_time", job.began, "the first begin", kNoClock);
  column("elapsed_seconds", job.elapsed, "from the first begin to the last end", kNoClock);
  column("aligned", job.is_aligned,
         "true: `elapsed_seconds` and waiting in collectives are by the clocks that collectives "
         "align; false: by wall clocks");
  energy_columns(job.total, "the total of the hosts", "no host has one", column, job.is_partial);
  column("is_partial", job.is_partial,
         "true: a device has no energy for a part of the time, and all sums are without it: they "
         "are lower bounds, and their `interval_joules` have null as upper bound");
  column(
      "domains_without_energy", [&] { return Json(job.without_energy); },
      "domains outside of the total because their energy is unavailable, a list");
  column("hosts", nested(job.hosts), "machines, a list");
  column("ranks", nested(job.ranks), "a list");
  column(
      "rank_groups", nested(job.rank_groups),
      "the processes that one launcher numbered together, the largest group first; without those "
      "of one process");
  column("jobs", nested(job.shares), "what each is charged with, a list");
  column("others_joules", job.others,
         "dynamic energy of processes outside of the recorded commands");
  column("undivided_joules", job.undivided,
         "of no known process; where recordings overlap, others' energy too");
  column("not_charged_joules", job.not_charged,
         "at rest, of devices that other families used, and of CPUs and DRAM beyond "
         "`--rest-share`. All `charged_joules`, `others_joules`, `undivided_joules` and this sum "
         "exactly to `energy_joules`");
  column(
      "command_energy", [&] { return command_json(job.command); },
      "what all jobs are charged with: keys as of the "
      "[profile](#the-profile-jouleprofprofile3)'s",
      "no recording is of a command, or a device was lost and nothing is known of the rest");
  column("machine_share_ratio", options.rules.machine_share, "`--rest-share`", "not given");
  column(
      "slurm", [&] { return slurm_json(options.slurm); },
      "with `--sacct`, for each job: `job`, `consumed_joules` by Slurm's accounting, or null and a "
      "`reason`");
  column("windows", nested(job.windows), "windows of one name, a list");
  column("layers", nested(job.layers), "layers in all recordings, a list");
  column(
      "costs", [&] { return costs ? costs_json(*costs) : Json(nullptr); },
      "[money and carbon](#money-and-carbon-the-object-costs)", "not requested");
  column(
      "walls", [&] { return walls; }, "[wall meters](#a-wall-meter-the-object-wall) of machines");
  column(
      "warnings", [&] { return Json(job.warnings); }, "a list");
}

}  // namespace

Result<std::string> job_to_json(const analysis::Job& job, const JobOptions& options) {
  JobDocument document{job, options, costs_of(job, options.costs, options.whole_machine)};
  for (const auto& [host, log] : options.walls) {
    const auto wall = compare_wall(job, host, log);
    if (!wall) return forward_error(wall);
    document.walls.push_back(wall_json(*wall));
  }
  Json j = Json::object();
  j["schema"] = kJobSchema;
  JsonColumns column(j);
  columns(document, column);
  return write_json(j) + '\n';
}

std::string merge_to_json(const std::string& output, std::size_t recordings,
                          const analysis::RankCensus::Found& found) {
  Json j = Json::object();
  j["schema"] = "jouleprof.merge/1";
  j["output"] = text_json(output);
  j["recordings"] = recordings;
  j["rank_groups"] = records_json(found.groups);
  j["warnings"] = found.warnings;
  return write_json(j) + '\n';
}

std::vector<RecordKind> job_kinds() {
  return {record_kind("", "job", JobDocument{analysis::Job{}, JobOptions{}, {}}),
          record_kind("hosts[].", "job_host", analysis::JobHost{}),
          record_kind("hosts[].clock.", "job_clock", analysis::HostClock{}),
          record_kind("hosts[].domains[].", "job_domain", analysis::JobDomain{}),
          record_kind("ranks[].", "rank", analysis::JobRank{}),
          record_kind("rank_groups[].", "rank_group", analysis::RankGroup{}),
          record_kind("jobs[].", "job_share", analysis::JobShare{}),
          record_kind("windows[].", "job_window", analysis::JobWindow{}),
          record_kind("layers[].", "job_layer", analysis::JobLayer{})};
}

}  // namespace jouleprof::report
