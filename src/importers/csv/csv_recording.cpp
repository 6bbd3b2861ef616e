#include "importers/csv/csv_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/json/json.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv/csv_file.h"
#include "importers/one_value.h"
#include "importers/source_text.h"
#include "model/activity/device_timeline.h"
#include "model/device/sensor_table.h"

namespace jouleprof::importers {

namespace {

constexpr std::int64_t kLastUnixNanosecond = kLastUnixTime.count();

// --- Power samples and reads of an energy counter ---

struct CsvReadings {
  struct Row {
    RealTime before{};
    RealTime after{};
    std::int64_t value = 0;  // in microwatts or microjoules
  };
  std::vector<Row> rows;       // at least one, in order of time; samples without repetitions
  std::uint64_t repeated = 0;  // samples at the time of the one before
  Energy quantum;              // the smallest step of the file's numbers
  std::vector<std::string> warnings;
};

RealTime instant(CsvFile& file, const CsvColumn& column) {
  const std::int64_t t = file.integer(column);
  if (t < 0 || t > kLastUnixNanosecond) file.fail_at(column, "no time since 1970");
  return RealTime{Duration{t}};
}

// Reads samples of power, or a counter. Errors: as CsvFile::each_row(); corrupt for a header that
// does not fit, and for rows that contradict each other: as one GPU's, samples of two give the
// energy of one.
Result<CsvReadings> read_readings(const std::filesystem::path& path, bool counts) {
  auto file = CsvFile::open(path);
  if (!file) return forward_error(file);
  const CsvColumn time = counts ? file->optional_column(csv::kTime) : file->column(csv::kTime);
  const CsvColumn before = time ? time : file->column(csv::kBefore);
  const CsvColumn after = time ? time : file->column(csv::kAfter);
  const CsvColumn value = file->column(counts ? csv::kEnergy : csv::kPower);
  if (auto ok = file->check_header(); !ok) return forward_error(ok);
  CsvReadings out;
  std::int64_t quantum = 1;
  for (int i = 0; i < value.decimals; ++i) quantum *= 10;
  DeviceRows all;
  all.device = "gpu0";
  all.columns.push_back({counts ? "the counter" : "the power", false, counts, {}});
  auto read = file->each_row([&] {
    const RealTime begin = instant(*file, before), end = instant(*file, after);
    const std::int64_t number = file->integer(value);
    if (end < begin) file->fail_at(after, "the read ends before it begins");
    if (counts && number < 0) file->fail_at(value, "an energy counter is never negative");
    if (file->failed()) return;
    if (!out.rows.empty() && begin < out.rows.back().before) {
      return file->fail_all_at(before, "the time goes back: sort the rows by time");
    }
    if (!counts) all.stamps.push_back(begin.time_since_epoch());
    all.lines.push_back(file->line());
    all.begins.push_back(false);
    all.columns.front().values.push_back(static_cast<double>(number) * (counts ? 1 : 1e-6));
    if (file->field(value).find('.') != std::string_view::npos) quantum = 1;
    if (!counts && !out.rows.empty() && begin == out.rows.back().before) {
      ++out.repeated;
    } else {
      out.rows.push_back({begin, end, number});
    }
  });
  if (!read) return forward_error(read);
  out.warnings = std::move(*read);
  out.quantum = Energy::microjoules(quantum);
  constexpr std::size_t kMostRows = 500'000;
  const auto found = all.lines.size() > kMostRows ? std::nullopt : find_contradiction(all);
  if (found && found->is_certain) {
    return fail(Errc::kCorrupt, fmt::format("{}: {}", file->path(), found->text));
  }
  return out;
}

// --- A timeline of kernels, made into a trace ---

// The content of the JSON file of names.
struct KernelNames {
  std::optional<std::int64_t> base_unix_ns;  // origin of the kernels' times; absent: 1970
  std::map<std::int64_t, std::string> names;
  bool given = false;
};

// Errors: as read_file; corrupt.
Result<KernelNames> read_kernel_names(const std::filesystem::path& path) {
  constexpr std::size_t kMaxNamesBytes = std::size_t{64} << 20;
  const auto source = read_source(path, kMaxNamesBytes);
  if (!source) return forward_error(source);
  const auto json = parse_json(source->text, path.string(), Errc::kCorrupt);
  if (!json) return forward_error(json);
  JsonErrors errors{.file = path.string(), .code = Errc::kCorrupt};
  JsonReader document(*json, "", errors);
  KernelNames out;
  out.given = true;
  document.read("base_unix_ns", out.base_unix_ns, {0, double{kLastUnixNanosecond}});
  document.object("kernels", [&](JsonReader& kernels) {
    for (const auto& [key, name] : kernels.value().items()) {
      const auto id = parse_integer(key);
      if (!id) kernels.error(key, "is not a kernel_id");
      if (id) kernels.read(key.c_str(), out.names[*id]);
    }
  });
  if (errors.first) return tl::unexpected(std::move(*errors.first));
  return out;
}

// Rows of profilers that are no kernels: their own and the driver's overhead on the host.
bool is_overhead(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames{
      "Command Buffer Full",   "Buffer Flush",           "Instrumentation", "Resource",
      "Lazy Function Loading", "Activity Buffer Request"};
  return std::ranges::find(kNames, name) != kNames.end();
}

model::ActivityKind kind_of(std::string_view name) {
  if (name.starts_with("Memcpy ")) return model::ActivityKind::kMemcpy;
  if (name.starts_with("Memset ")) return model::ActivityKind::kMemset;
  return model::ActivityKind::kKernel;
}

struct CsvKernels {
  model::Trace trace;
  RealTime begin = RealTime::max();  // the span that kernels ran in
  RealTime end = RealTime::min();
  std::map<std::string, std::uint64_t> left_out;  // records that are no work of the GPU's
  std::vector<std::string> warnings;
};

class KernelReader {
 public:
  KernelReader(CsvFile& file, KernelNames names) : file_(file), names_(std::move(names)) {}

  // Reads all rows. One that cannot be right is left out: its launch counts as dropped. `origin` is
  // the wall time of host time zero; the first row's begin, where that is earlier.
  // Errors: as CsvFile::each_row(); unavailable where there is no kernel.
  Result<CsvKernels> read(RealTime& origin, bool events) {
    if (auto ok = find_columns(); !ok) return forward_error(ok);
    model::ActivityBins::Options options;
    options.bin = out_.trace.bin;
    options.events = events;
    model::ActivityBins bins(
        options, [&](model::ActivityChunk chunk) { out_.trace.chunks.push_back(chunk); });
    bool is_first = true;
    auto read = file_.each_row([&] {
      Row row;
      take(row);
      if (file_.failed()) return;
      if (std::exchange(is_first, false)) origin = std::min(origin, row.begin);
      if (row.kernel_class == model::kNone) return;
      out_.begin = std::min(out_.begin, row.begin);
      out_.end = std::max(out_.end, row.end);
      bins.add({HostTime{row.begin - origin}, HostTime{row.end - origin}, row.kernel_class,
                model::kNone, row.stream});
    });
    if (!read) return forward_error(read);
    out_.warnings = std::move(*read);
    bins.finish();
    if (bins.launches() == 0) {
      return fail(Errc::kUnavailable, fmt::format("{}: there is no kernel in it", file_.path()));
    }
    out_.trace.status.activities = bins.launches();
    out_.trace.status.late = bins.late();
    out_.trace.status.dropped = file_.left_out();
    out_.trace.status.ended = !file_.is_cut_off();
    return std::move(out_);
  }

 private:
  struct Row {
    RealTime begin{};
    RealTime end{};
    std::uint32_t kernel_class = 0;  // kNone: left out
    std::uint32_t stream = 0;
  };

  Result<void> find_columns() {
    start_ = file_.column(csv::kStart);
    duration_ = file_.optional_column(csv::kDuration);
    stop_ = file_.optional_column(csv::kEnd);
    id_ = file_.optional_column(csv::kKernelId);
    name_ = file_.optional_column(csv::kName);
    stream_ = file_.optional_column(csv::kStream);
    if (bool(duration_) == bool(stop_)) {
      file_.fail_header(
          "the header needs either a duration ('duration_ns', ...) or an end ('end_ns', ...)");
    }
    if (bool(id_) == bool(name_)) {
      file_.fail_header("the header needs either 'kernel_id' or 'name'");
    }
    return file_.check_header();
  }

  RealTime instant_of(const CsvColumn& column) {
    std::int64_t unix_ns = 0;
    if (__builtin_add_overflow(file_.integer(column), names_.base_unix_ns.value_or(0), &unix_ns) ||
        unix_ns < 0 || unix_ns > kLastUnixNanosecond) {
      file_.fail_at(column, fmt::format("{} is no time", show(file_.field(column))));
      return {};
    }
    return RealTime{Duration{unix_ns}};
  }

  void take(Row& row) {
    constexpr Duration kLongestKernel = std::chrono::hours{1};
    row.begin = instant_of(start_);
    const CsvColumn& last = duration_ ? duration_ : stop_;
    if (duration_) {
      const Duration run_time{file_.integer(last)};
      const bool is_possible = run_time >= Duration{} && run_time <= kLongestKernel;
      if (!is_possible) {
        file_.fail_at(last, fmt::format("{} is no duration of a kernel: check the unit",
                                        show(file_.field(last))));
      }
      row.end = row.begin + (is_possible ? run_time : Duration{});
    } else {
      row.end = instant_of(last);
      if (row.end < row.begin || row.end - row.begin > kLongestKernel) {
        file_.fail_at(last, "the kernel ends before it begins, or hours later");
      }
    }
    if (stream_) {
      const std::int64_t stream = file_.integer(stream_);
      if (stream < 0 || stream >= model::kNone) file_.fail_at(stream_, "no stream");
      row.stream = static_cast<std::uint32_t>(stream);
    }
    if (file_.failed()) return;
    if (!limit_.add(row.end - row.begin)) return file_.fail_all_at(last, limit_.message());
    row.kernel_class = class_of_row();
  }

  std::uint32_t class_of_row() {
    if (name_) {
      const std::string_view name = trim(file_.field(name_));
      if (name.empty()) file_.fail_at(name_, "a kernel without a name");
      return name.empty() ? model::kNone : class_of(std::string(name));
    }
    const std::int64_t id = file_.integer(id_);
    constexpr std::int64_t kMostId = 1'000'000'000;
    if (id < 0 || id > kMostId) file_.fail_at(id_, fmt::format("{} is no kernel_id", id));
    if (file_.failed()) return model::kNone;
    const auto named = names_.names.find(id);
    if (named != names_.names.end()) return class_of(named->second);
    if (names_.given) {
      file_.fail_all_at(id_, fmt::format("there is no name for kernel {}", id));
      return model::kNone;
    }
    return class_of(fmt::format("kernel {}", id));
  }

  std::uint32_t class_of(const std::string& name) {
    const auto [known, is_new] =
        classes_.try_emplace(name, static_cast<std::uint32_t>(out_.trace.classes.size()));
    if (is_new && is_overhead(name)) known->second = model::kNone;
    if (known->second == model::kNone) {
      ++out_.left_out[name];
    } else if (is_new) {
      model::KernelClass kernel;
      kernel.kind = kind_of(name);
      kernel.name = name;
      out_.trace.classes.push_back(std::move(kernel));
    }
    return known->second;
  }

  CsvFile& file_;
  KernelNames names_;
  CsvColumn start_, duration_, stop_, id_, name_, stream_;
  CsvKernels out_;
  std::unordered_map<std::string, std::uint32_t> classes_;
  LaunchLimit limit_;
};

// --- The recording made of them ---

std::optional<model::SensorKind> kind_of_samples(std::string_view sampled) {
  if (sampled == "ring") return model::SensorKind::kPowerRing;
  if (sampled == "instant") return model::SensorKind::kPowerInstant;
  if (sampled == "average") return model::SensorKind::kPowerAverage;
  return std::nullopt;
}

std::string_view name_of(model::SensorKind kind, bool nvidia) {
  switch (kind) {
    case model::SensorKind::kEnergyCounter:
      return nvidia ? "nvmlDeviceGetTotalEnergyConsumption" : "energy counter";
    case model::SensorKind::kPowerRing:
      return nvidia ? "nvmlDeviceGetSamples" : "power samples";
    default:
      return "polled power";
  }
}

class Builder {
 public:
  explicit Builder(const CsvSources& sources) : sources_(sources), builder_("csv") {}

  Result<model::Recording> build();

 private:
  Result<void> read();
  Result<void> read_kernels();
  Result<void> add_kernels();
  void add_readings();
  Result<void> add_idle();
  Result<HostTime> parse_edge(std::string_view text) const;

  HostTime host(RealTime t) const { return HostTime{t - origin_}; }
  RealTime first_reading() const {
    return std::min(samples_ ? samples_->rows.front().before : RealTime::max(),
                    counter_ ? counter_->rows.front().before : RealTime::max());
  }
  RealTime last_reading() const {
    return std::max(samples_ ? samples_->rows.back().after : RealTime::min(),
                    counter_ ? counter_->rows.back().after : RealTime::min());
  }

  const CsvSources& sources_;
  RecordingBuilder builder_;
  std::optional<CsvReadings> samples_;
  std::optional<CsvReadings> counter_;
  std::optional<CsvKernels> kernels_;
  model::SensorKind sampled_{};
  RealTime origin_{};
};

Result<void> Builder::read() {
  for (const bool counts : {false, true}) {
    const auto& path = counts ? sources_.counter : sources_.samples;
    if (path.empty()) continue;
    auto read = read_readings(path, counts);
    if (!read) return forward_error(read);
    for (const std::string& text : read->warnings) builder_.warn(text);
    if (read->repeated > 0) {
      builder_.warn(fmt::format("{} with the time of the one before {} left out",
                                counted(read->repeated, "sample"),
                                read->repeated == 1 ? "was" : "were"));
    }
    (counts ? counter_ : samples_) = std::move(*read);
  }
  origin_ = first_reading();
  return sources_.kernels.empty() ? Result<void>() : read_kernels();
}

Result<void> Builder::read_kernels() {
  auto names = sources_.names.empty() ? KernelNames{} : read_kernel_names(sources_.names);
  if (!names) return forward_error(names);
  auto file = CsvFile::open(sources_.kernels);
  if (!file) return forward_error(file);
  auto kernels = KernelReader(*file, std::move(*names)).read(origin_, sources_.events);
  if (!kernels) return forward_error(kernels);
  kernels_ = std::move(*kernels);
  return {};
}

void Builder::add_readings() {
  const auto generation = model::generation_of(sources_.device_name);
  model::GpuTraits known = model::default_traits(generation, false);
  known.set_scale(model::scale_of_gpu(sources_.device_name));
  const auto domain =
      builder_.add_domain(model::DomainKind::kGpu, "gpu0",
                          sources_.device_name.empty() ? "GPU of the files" : sources_.device_name);
  const auto add_sensor = [&](model::SensorKind kind, const model::SensorTraits& traits) {
    const auto id =
        builder_.add_sensor(domain, kind, std::string(name_of(kind, generation.has_value())));
    model::Sensor& sensor = builder_.recording().sensors.back();
    if (generation) sensor.traits = traits;
    sensor.traits.scale = traits.scale;
    return id;
  };
  if (counter_) {
    const auto sensor = add_sensor(model::SensorKind::kEnergyCounter, known.counter);
    builder_.recording().sensors.back().traits.quantum = counter_->quantum;
    for (const auto& row : counter_->rows) {
      builder_.recording().readings.counters.push_back(
          {sensor, host(row.before), host(row.after), Energy::microjoules(row.value)});
    }
  }
  if (samples_) {
    const auto sensor =
        add_sensor(sampled_, sampled_ == model::SensorKind::kPowerRing      ? known.ring
                             : sampled_ == model::SensorKind::kPowerInstant ? known.instant
                                                                            : known.average);
    for (const auto& row : samples_->rows) {
      builder_.add_power(sensor, host(row.before), static_cast<double>(row.value) * 1e-6);
    }
  }
  if (!generation) {
    builder_.warn(
        sources_.device_name.empty()
            ? "the files do not name their device, so the traits of its sensors are unknown; "
              "name it with --device-name"
            : fmt::format("the traits of the sensors of '{}' are unknown", sources_.device_name));
  }
}

Result<void> Builder::add_kernels() {
  const bool is_before = kernels_->end <= first_reading();
  if (is_before || kernels_->begin >= last_reading()) {
    return fail(
        Errc::kUnavailable,
        fmt::format("{}: its kernels ran {:.3f} s {} the readings, so their power is unknown; "
                    "check the unit of their times and 'base_unix_ns'",
                    sources_.kernels.string(),
                    is_before ? seconds(first_reading() - kernels_->end)
                              : seconds(kernels_->begin - last_reading()),
                    is_before ? "before" : "after"));
  }
  if (kernels_->begin < first_reading() || kernels_->end > last_reading()) {
    builder_.warn("some kernels ran before the first or after the last reading");
  }
  for (const auto& warning : kernels_->warnings) builder_.warn(warning);
  for (const auto& [name, count] : kernels_->left_out) {
    builder_.warn(
        fmt::format("{} of '{}' left out: no work of the GPU's", counted(count, "record"), name));
  }
  kernels_->trace.devices.push_back({0, "", sources_.device_name});
  builder_.recording().traces.push_back(std::move(kernels_->trace));
  return {};
}

Result<HostTime> Builder::parse_edge(std::string_view text) const {
  if (const auto unix_time = parse_seconds(text)) return host(RealTime{*unix_time});
  const auto since_start = parse_duration(text);
  if (!since_start) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("'{}' is no edge of an idle interval: give Unix seconds, or a time since "
                    "the first reading with its unit, such as 5s",
                    text));
  }
  return host(first_reading() + *since_start);
}

Result<void> Builder::add_idle() {
  for (const std::string& text : sources_.idle) {
    const auto colon = text.find(':');
    if (colon == std::string::npos) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("an idle interval is BEGIN:END, not '{}'", text));
    }
    auto begin = parse_edge(std::string_view(text).substr(0, colon));
    if (!begin) return forward_error(begin);
    auto end = parse_edge(std::string_view(text).substr(colon + 1));
    if (!end) return forward_error(end);
    if (*end <= *begin || *begin >= host(last_reading()) || *end <= host(first_reading())) {
      return fail(
          Errc::kInvalidArgument,
          fmt::format("the idle interval '{}' is empty or holds no reading: they span {:.3f} "
                      "to {:.3f} Unix seconds",
                      text, seconds(first_reading().time_since_epoch()),
                      seconds(last_reading().time_since_epoch())));
    }
    builder_.recording().idle_spans.push_back({*begin, *end});
  }
  return {};
}

Result<model::Recording> Builder::build() {
  const auto kind = kind_of_samples(sources_.sampled);
  if (!kind) {
    return fail(Errc::kInvalidArgument,
                fmt::format("'{}' is no kind of sample; there are ring, instant and average",
                            sources_.sampled));
  }
  sampled_ = *kind;
  if (auto ok = read(); !ok) return forward_error(ok);
  add_readings();
  if (kernels_) {
    if (auto ok = add_kernels(); !ok) return forward_error(ok);
  }
  if (auto ok = add_idle(); !ok) return forward_error(ok);
  model::Recording& recording = builder_.recording();
  recording.clock_points = {{HostTime{}, origin_, {}}, {host(last_reading()), last_reading(), {}}};
  recording.run.work_begin = host(kernels_ ? kernels_->begin : first_reading());
  recording.run.work_end = host(kernels_ ? kernels_->end : last_reading());
  return std::move(builder_).finish(
      (sources_.samples.empty() ? sources_.counter : sources_.samples).string(), HostTime{},
      host(last_reading()));
}

}  // namespace

Result<model::Recording> import_csv(const CsvSources& sources) {
  if (sources.samples.empty() && sources.counter.empty()) {
    return fail(Errc::kInvalidArgument,
                "nothing to import: give power samples (--samples) or an energy counter "
                "(--counter)");
  }
  if (sources.kernels.empty() && !sources.names.empty()) {
    return fail(Errc::kInvalidArgument, "--names needs --kernels");
  }
  return Builder(sources).build();
}

}  // namespace jouleprof::importers
