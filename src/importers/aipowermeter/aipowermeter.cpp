// AIPowerMeter's power_metrics.json: one JSON object a line, {"date", "metrics": {"cpu", "gpu"}}.
//
// All schemas are read: the first one (mem_use_abs, cpu_uses, one nvidia_draw_absolute), the next
// (per_process_*, per_gpu_*; the string "END OF RECORDING SEGMENT" on a line of its own where
// recording stopped) and the present one (nvidia_power, per_gpu_nvidia_power). Powers are watts, -1
// or null where there is none. Dates are local time. What AIPowerMeter charged to a process becomes
// an imported window of that process. Other figures are left out, and named. Of results_exp.json
// the epochs become windows; model_summary.json becomes a note.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "importers/aipowermeter/experiment_files.h"
#include "importers/builder.h"
#include "importers/import.h"
#include "importers/one_value.h"
#include "importers/source_text.h"

namespace jouleprof::importers {
namespace {

using nlohmann::json;

constexpr std::string_view kSegmentEnd = "END OF RECORDING SEGMENT";
// A record of some hundred processes is a few 10 kB.
constexpr std::size_t kLongestLine = std::size_t{16} << 20;

// Calls `take` with each member of the object under `key`; false where there is none.
template <typename F>
bool each_member(const json& section, std::string_view key, F take) {
  const json* object = member(section, key);
  if (!object || !object->is_object()) return false;
  for (const auto& [name, value] : object->items()) take(name, value);
  return true;
}

// Calls `take` with each process and its value; false where there is no such object.
template <typename F>
bool each_process(const json& section, std::string_view key, F take) {
  return each_member(section, key, [&](const std::string& pid, const json& value) {
    const auto number = number_of(&value);
    if (is_pid(pid) && number && *number >= 0) take(pid, *number);
  });
}

class Import {
 public:
  explicit Import(const std::string& path) : path_(path), builder_("aipowermeter") {}

  // A file's lines; they are only checked here, so that the memory needed stays that of the result.
  Result<void> scan(const SourceText& source) {
    bool starts_segment = true;
    const std::size_t before = stamps_.size();
    auto read = for_each_line(source, true, [&](const json& line, std::size_t number) {
      if (line.is_string()) {
        starts_segment = true;
        return;
      }
      const json* date = member(line, "date");
      const auto time = date && date->is_string()
                            ? parse_log_time(date->get_ref<const std::string&>())
                            : std::nullopt;
      const auto at =
          time && time->kind == LogTime::Kind::kCalendar ? std::optional(time->at) : std::nullopt;
      const json* metrics = member(line, "metrics");
      if (!at || !metrics || !metrics->is_object()) {
        bad_.add(number,
                 "not a record of AIPowerMeter: it needs a 'date' as '2026-11-21 03:13:59.5' and "
                 "an object 'metrics'");
        left_out_lines_.emplace(&source, number);
        return;
      }
      if (!records_.emplace(*at, std::hash<json>{}(line)).second) {
        ++repeated_;
        left_out_lines_.emplace(&source, number);
        return;
      }
      stamps_.push_back({*at, starts_segment});
      starts_segment = false;
    });
    if (!read) return read;
    return bad_.check(source, stamps_.size() - before);
  }

  void lay_out_stamps(ExperimentFiles& files) {
    std::array series{std::move(stamps_), std::move(files.ends())};
    builder_.read_local_times(series);
    stamps_ = std::move(series[0]);
    files.ends() = std::move(series[1]);
    layout_ = lay_out(stamps_);
    builder_.set_clock(layout_, utc_to_real);
  }

  Result<void> add(const SourceText& source) {
    return for_each_line(source, false, [&](const json& line, std::size_t number) {
      const json* metrics = member(line, "metrics");
      if (metrics && !left_out_lines_.contains({&source, number})) {
        const HostTime at = layout_.times[next_++];
        const auto begins = [at](const Segment& segment) { return segment.begin == at; };
        if (std::ranges::any_of(layout_.segments, begins)) {
          shares_.end_segment();
        }
        add_record(line, *metrics, at);
      }
    });
  }

  bool empty() const { return stamps_.empty(); }

  void add_experiment(const ExperimentFiles& files) {
    builder_.recording().windows = files.epochs(layout_);
    for (std::string& text : files.warnings(layout_)) builder_.warn(std::move(text));
  }

  Result<model::Recording> finish() && {
    // Records of two machines in one file, or of two files of one time.
    for (const auto& [device, rows] : series_) {
      if (auto one = rows_of_one_value(rows, path_, builder_); !one) return forward_error(one);
    }
    for (std::string& text : bad_.warnings()) builder_.warn(std::move(text));
    if (repeated_ > 0) {
      builder_.warn(fmt::format("{} left out that stand{} in the log twice",
                                counted(repeated_, "record"), repeated_ == 1 ? "s" : ""));
    }
    if (!left_out_.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, records] : left_out_) {
        names.push_back(fmt::format("{} ({})", name, counted(records, "record")));
      }
      builder_.warn(
          fmt::format("{} left out: {}", counted(names.size(), "figure"), fmt::join(names, ", ")));
    }
    builder_.recording().imported_windows =
        shares_.windows(layout_.times.front(), layout_.times.back());
    return std::move(builder_).finish(path_, layout_.times.front(), layout_.times.back());
  }

 private:
  // Calls `take` with each line's value and number. A last line without a line end that is not
  // whole is what an interrupted run leaves: it is left out. What is no JSON is counted once.
  template <typename F>
  Result<void> for_each_line(const SourceText& source, bool counts, F take) {
    for (Lines lines(source.text); lines.next();) {
      if (trim(lines.text()).empty()) continue;
      if (lines.text().size() > kLongestLine) {
        return fail_at(source, lines.number(), "longer than 16 MiB; not a record of AIPowerMeter");
      }
      const json line = json_value(lines.text());
      const bool fits = line.is_object() || line == kSegmentEnd;
      if (!fits && !lines.ended()) {
        if (counts) {
          builder_.warn(cut_off_warning(source.path, lines.number()));
        }
        return {};
      }
      if (fits) {
        take(line, lines.number());
      } else if (counts) {
        bad_.add(lines.number(),
                 fmt::format("{} is not a JSON record of AIPowerMeter", show(lines.text())));
      }
    }
    return {};
  }

  // A power; texts are numbers too, and others are named.
  std::optional<double> watts_of(const json* value, std::string_view key) {
    if (!value || !value->is_string()) return number_of(value);
    const auto number = parse_number(trim(value->get_ref<const std::string&>()));
    if (!number) ++left_out_[fmt::format("{} as a text", key)];
    return number;
  }

  void add_record(const json& line, const json& metrics, HostTime at) {
    if (const json* cpu = member(metrics, "cpu")) {
      provenance_ = provenance_of(line, "cpu");
      for (const PowerField& field : kCpuFields) {
        add_power(field.kind, std::string(field.device), std::string(field.name),
                  model::SensorKind::kPowerInstant, std::string(field.key), at,
                  watts_of(member(*cpu, field.key), field.key));
      }
      note_own_pids(*cpu, at);
      add_cpu_shares(*cpu, at);
      note_left_out(*cpu);
    }
    const json* gpu = member(metrics, "gpu");
    if (!gpu) return;
    provenance_ = provenance_of(line, "gpu");
    add_gpu_power(*gpu, at);
    add_gpu_processes(*gpu, at);
    each_member(*gpu, "per_gpu_attributable_power", [&](const auto& index, const json& watts) {
      charge("processes of the experiment", "gpu" + index, at, number_of(&watts));
    });
    note_left_out(*gpu);
  }

  // Each GPU's power, else that of all together.
  void add_gpu_power(const json& gpu, HostTime at) {
    for (const char* key : {"per_gpu_power_draw", "per_gpu_nvidia_power"}) {
      const json* draws = member(gpu, key);
      if (!draws || draws->empty()) continue;
      const bool any = each_member(gpu, key, [&](const auto& index, const json& watts) {
        add_power(model::DomainKind::kGpu, "gpu" + index, "GPU " + index,
                  model::SensorKind::kPowerAverage, key, at, watts_of(&watts, key));
      });
      if (any) return;
    }
    for (const char* key : {"nvidia_draw_absolute", "nvidia_power"}) {
      if (!member(gpu, key)) continue;
      add_power(model::DomainKind::kGpu, "gpus", "All NVIDIA GPUs",
                model::SensorKind::kPowerAverage, key, at, watts_of(member(gpu, key), key));
      return;
    }
  }

  void add_cpu_shares(const json& cpu, HostTime at) {
    const auto add_share = [&](const std::string& pid, double share) {
      shares_.add_cpu_share("process " + pid, share);
    };
    const auto add_memory = [&](const std::string& pid, double bytes) {
      shares_.add_memory("process " + pid, bytes);
    };
    each_process(cpu, "per_process_cpu_uses", add_share) ||
        each_process(cpu, "cpu_uses", add_share);
    each_process(cpu, "per_process_mem_use_abs", add_memory) ||
        each_process(cpu, "mem_use_abs", add_memory);
    // The share of the cores' power where that was read, else of the packages'.
    charge_each(cpu, "per_process_cpu_power", sensors_.contains("cores") ? "cores" : "cpu", at);
    charge_each(cpu, "per_process_dram_power", "dram", at);
  }

  void charge_each(const json& section, std::string_view key, const std::string& device,
                   HostTime at) {
    const bool any = each_process(section, key, [&](const std::string& pid, double watts) {
      charge("process " + pid, device, at, watts);
    });
    const auto sensor = sensors_.find(device);
    if (any && sensor != sensors_.end()) shares_.end_record(sensor->second.first, at);
  }

  void charge(const std::string& name, const std::string& device, HostTime at,
              std::optional<double> watts) {
    const auto sensor = sensors_.find(device);
    if (sensor == sensors_.end() || !watts || *watts < 0) return;
    shares_.add_power(name, sensor->second.first, at, *watts);
  }

  void note_left_out(const json& section) {
    if (!section.is_object()) return;
    for (const auto& [key, value] : section.items()) {
      if (!is_known_figure(key)) ++left_out_[key];
    }
  }

  void add_power(model::DomainKind kind, const std::string& device, const std::string& name,
                 model::SensorKind sensor_kind, const std::string& key, HostTime at,
                 std::optional<double> watts) {
    if (watts == -1) watts.reset();
    auto found = sensors_.find(device);
    if (found == sensors_.end()) {
      if (!watts) return;
      const auto domain = builder_.add_domain(kind, device, name);
      const auto sensor = builder_.add_sensor(domain, sensor_kind, "AIPowerMeter " + key);
      found = sensors_.emplace(device, std::pair{domain, sensor}).first;
    }
    auto& sensor = builder_.recording().sensors[static_cast<std::size_t>(found->second.second)];
    sensor.provenance = combine(sensor.provenance, provenance_);
    builder_.add_power(found->second.second, at, watts);
    if (!watts) return;
    DeviceRows& rows = series_[device];
    if (rows.columns.empty()) rows.columns.push_back({"the power", false, false, {}});
    rows.device = device;
    rows.stamps.push_back(stamps_[next_ - 1].at);
    rows.lines.push_back(next_);
    rows.begins.push_back(stamps_[next_ - 1].starts_segment);
    rows.columns.front().values.push_back(*watts);
  }

  model::Process& process(const std::string& pid, HostTime at) {
    return builder_.process(static_cast<pid_t>(*parse_integer(pid)), at);
  }

  // The experiment's own processes. Their share of the CPU's time is recorded, but not the time
  // itself, so that no CPU readings can be made of it.
  void note_own_pids(const json& cpu, HostTime at) {
    for (const std::string_view key : {"per_process_mem_use_abs", "mem_use_abs"}) {
      each_member(cpu, key, [&](const std::string& pid, const json&) {
        if (is_pid(pid)) process(pid, at).in_tree = true;
      });
    }
  }

  void add_gpu_processes(const json& gpu, HostTime at) {
    std::map<std::pair<std::string, std::string>, model::GpuProcessReading> readings;
    const auto for_each = [&](std::string_view key, auto set) {
      each_member(gpu, key, [&](const std::string& index, const json&) {
        const auto sensor = sensors_.find("gpu" + index);
        if (sensor == sensors_.end()) return;
        each_process(*member(gpu, key), index, [&](const std::string& pid, double number) {
          auto& reading = readings[{index, pid}];
          reading.process = process(pid, at).id;
          reading.domain = sensor->second.first;
          reading.at = at;
          set(reading, number);
        });
      });
    };
    for_each("per_gpu_per_pid_utilization_absolute", [](auto& reading, double share) {
      if (share <= 1) reading.compute_utilisation = share;
    });
    for_each("per_gpu_attributable_mem_use", [](auto& reading, double bytes) {
      if (bytes < 1e15) reading.memory_bytes = static_cast<std::uint64_t>(bytes);
    });
    auto& all = builder_.recording().process_readings.gpu_processes;
    for (const auto& [key, reading] : readings) all.push_back(reading);
  }

  const std::string& path_;
  RecordingBuilder builder_;
  std::vector<Stamp> stamps_;
  Layout layout_;
  std::size_t next_ = 0;
  BadRows bad_;
  std::set<std::pair<const SourceText*, std::size_t>> left_out_lines_;  // of records
  std::set<std::pair<Duration, std::size_t>> records_;                  // by date and hash
  std::size_t repeated_ = 0;
  std::map<std::string, DeviceRows> series_;                                    // by device
  std::map<std::string, std::pair<model::DomainId, model::SensorId>> sensors_;  // by device
  model::Provenance provenance_ = model::Provenance::kMeasured;  // of the section that is read
  ProcessShares shares_;
  std::map<std::string, std::size_t> left_out_;  // names of figures -> records that have them
};

bool recognises_aipowermeter(std::string_view text) {
  if (is_experiment_file(text)) return true;
  for (Lines lines(text); lines.next();) {
    const std::string_view line = trim(lines.text());
    if (line.empty()) continue;
    if (line.starts_with('"')) return line == fmt::format("\"{}\"", kSegmentEnd);
    return line.starts_with('{') && line.find("\"metrics\"") != std::string_view::npos &&
           line.find("\"date\"") != std::string_view::npos;
  }
  return false;
}

Result<model::Recording> read_aipowermeter(std::span<const SourceText> sources,
                                           const ImportOptions& options) {
  ExperimentFiles experiment;
  std::vector<const SourceText*> records;
  for (const SourceText& source : sources) {
    if (!is_experiment_file(source.text)) {
      records.push_back(&source);
    } else if (auto added = experiment.add(source); !added) {
      return forward_error(added);
    }
  }
  if (records.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: it has no power; import it together with "
                                                "power_metrics.json",
                                                sources.front().path));
  }
  const std::string& path = records.front()->path;
  Import import(path);
  for (const SourceText* source : records) {
    if (auto scanned = import.scan(*source); !scanned) return forward_error(scanned);
  }
  if (import.empty()) {
    return fail(Errc::kUnavailable, fmt::format("{}: no whole record of AIPowerMeter in it", path));
  }
  import.lay_out_stamps(experiment);
  for (const SourceText* source : records) {
    if (auto added = import.add(*source); !added) return forward_error(added);
  }
  import.add_experiment(experiment);
  auto recording = std::move(import).finish();
  if (recording && options.interval) {
    recording->warnings.push_back(
        {HostTime{}, "--interval is not used: the records have their own dates"});
  }
  return recording;
}

}  // namespace

extern const Importer kAiPowerMeterImporter{
    {"aipowermeter",
     "AIPowerMeter's power_metrics.json, several of which follow each other in time; with its "
     "results_exp.json and model_summary.json"},
    true,
    recognises_aipowermeter,
    read_aipowermeter,
    is_experiment_file};

}  // namespace jouleprof::importers
