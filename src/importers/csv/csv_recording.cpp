#include "importers/csv/csv_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/csv/csv_file.h"
#include "importers/one_value.h"
#include "importers/source_text.h"
#include "jouleprof/units.h"
#include "model/device/sensor_table.h"

namespace jouleprof::importers {

namespace {

// --- Power samples and reads of an energy counter ---

struct CsvSample {
  RealTime at{};
  double watts = 0;
};

struct CsvCounterRead {
  RealTime before{};
  RealTime after{};
  Energy total;
};

struct CsvSamples {
  std::vector<CsvSample> rows;  // at least one, strictly in order of time
  std::uint64_t repeated = 0;   // left out: at the time of the one before
  std::optional<std::string> cut_off;
  std::vector<std::string> warnings;
};

struct CsvCounter {
  std::vector<CsvCounterRead> rows;  // at least one, in order of time
  Energy quantum;                    // the smallest step of the file's numbers
  std::optional<std::string> cut_off;
  std::vector<std::string> warnings;
};

RealTime instant(CsvFile& file, const CsvColumn& column) {
  const std::int64_t t = file.integer(column);
  if (t < 0 || t > csv::kLastUnixNanosecond) file.fail_at(column, "no time since 1970");
  return RealTime{Duration{t}};
}

tl::unexpected<Error> no_row(const CsvFile& file) {
  return fail(Errc::kUnavailable, fmt::format("{}: a header, and no row under it", file.path()));
}

// Calls `take` for each row.
Result<void> each_row(CsvFile& file, std::vector<std::string>& warnings,
                      const std::function<void()>& take) {
  for (;;) {
    const auto more = file.next(take);
    if (!more) return forward_error(more);
    if (!*more) return file.check_left_out(warnings);
  }
}

// As one GPU's, samples of two give the energy of one.
Result<void> check_one_gpu(const CsvFile& file, const DeviceRows& rows) {
  constexpr std::size_t kMostRows = 500'000;
  if (rows.lines.size() > kMostRows) return {};
  const auto found = find_contradiction(rows);
  if (!found || !found->is_certain) return {};
  return fail(Errc::kCorrupt, fmt::format("{}: {}", file.path(), found->text));
}

// Errors: as GzipReader; corrupt, with line and column; unavailable when there is no row. Of
// read_csv_counter(), too.
Result<CsvSamples> read_csv_samples(const std::filesystem::path& path) {
  auto file = CsvFile::open(path);
  if (!file) return forward_error(file);
  const CsvColumn time = file->column(csv::kTime);
  const CsvColumn power = file->column(csv::kPower);
  if (auto ok = file->check_header(); !ok) return forward_error(ok);
  CsvSamples out;
  DeviceRows all;
  all.device = "gpu0";
  all.columns.push_back({"the power", false, false, {}});
  auto read = each_row(*file, out.warnings, [&] {
    const RealTime at = instant(*file, time);
    const double watts = static_cast<double>(file->integer(power)) * 1e-6;
    if (file->failed()) return;
    if (!out.rows.empty() && at < out.rows.back().at) {
      return file->fail_all_at(time, "the time goes back: sort the rows by time");
    }
    all.stamps.push_back(at.time_since_epoch());
    all.lines.push_back(file->line());
    all.begins.push_back(false);
    all.columns.front().values.push_back(watts);
    if (!out.rows.empty() && at == out.rows.back().at) {
      ++out.repeated;
    } else {
      out.rows.push_back({at, watts});
    }
  });
  if (!read) return forward_error(read);
  if (out.rows.empty()) return no_row(*file);
  if (auto one = check_one_gpu(*file, all); !one) return forward_error(one);
  out.cut_off = file->cut_off();
  return out;
}

Result<CsvCounter> read_csv_counter(const std::filesystem::path& path) {
  auto file = CsvFile::open(path);
  if (!file) return forward_error(file);
  const CsvColumn time = file->optional_column(csv::kTime);
  const CsvColumn before = time ? time : file->column(csv::kBefore);
  const CsvColumn after = time ? time : file->column(csv::kAfter);
  const CsvColumn energy = file->column(csv::kEnergy);
  if (auto ok = file->check_header(); !ok) return forward_error(ok);
  CsvCounter out;
  out.quantum = Energy::microjoules(1);
  for (int i = 0; i < energy.decimals; ++i) {
    out.quantum = Energy::microjoules(out.quantum.microjoules() * 10);
  }
  DeviceRows all;
  all.device = "gpu0";
  all.columns.push_back({"the counter", false, true, {}});
  auto read = each_row(*file, out.warnings, [&] {
    const RealTime begin = instant(*file, before), end = instant(*file, after);
    const std::int64_t total = file->integer(energy);
    if (end < begin) file->fail_at(after, "the read ends before it begins");
    if (total < 0) file->fail_at(energy, "an energy counter is never negative");
    if (file->failed()) return;
    if (!out.rows.empty() && begin < out.rows.back().before) {
      return file->fail_all_at(before, "the time goes back: sort the rows by time");
    }
    all.lines.push_back(file->line());
    all.columns.front().values.push_back(static_cast<double>(total));
    if (file->field(energy).find('.') != std::string_view::npos) {
      out.quantum = Energy::microjoules(1);
    }
    out.rows.push_back({begin, end, Energy::microjoules(total)});
  });
  if (!read) return forward_error(read);
  if (out.rows.empty()) return no_row(*file);
  if (auto one = check_one_gpu(*file, all); !one) return forward_error(one);
  out.cut_off = file->cut_off();
  return out;
}

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
  Result<void> add_kernels();
  void add_readings();
  Result<void> add_idle();
  Result<HostTime> parse_edge(std::string_view text) const;

  HostTime host(RealTime t) const { return HostTime{t - origin_}; }
  RealTime first_reading() const {
    return std::min(samples_ ? samples_->rows.front().at : RealTime::max(),
                    counter_ ? counter_->rows.front().before : RealTime::max());
  }
  RealTime last_reading() const {
    return std::max(samples_ ? samples_->rows.back().at : RealTime::min(),
                    counter_ ? counter_->rows.back().after : RealTime::min());
  }

  const CsvSources& sources_;
  RecordingBuilder builder_;
  std::optional<CsvSamples> samples_;
  std::optional<CsvCounter> counter_;
  std::optional<CsvKernels> kernels_;
  model::SensorKind sampled_{};
  RealTime origin_{};
};

Result<void> Builder::read() {
  if (!sources_.samples.empty()) {
    auto samples = read_csv_samples(sources_.samples);
    if (!samples) return forward_error(samples);
    samples_ = std::move(*samples);
    if (samples_->cut_off) builder_.warn(*samples_->cut_off);
    for (const std::string& text : samples_->warnings) builder_.warn(text);
    if (samples_->repeated > 0) {
      builder_.warn(fmt::format("{} with the time of the one before {} left out",
                                counted(samples_->repeated, "sample"),
                                samples_->repeated == 1 ? "was" : "were"));
    }
  }
  if (!sources_.counter.empty()) {
    auto counter = read_csv_counter(sources_.counter);
    if (!counter) return forward_error(counter);
    counter_ = std::move(*counter);
    if (counter_->cut_off) builder_.warn(*counter_->cut_off);
    for (const std::string& text : counter_->warnings) builder_.warn(text);
  }
  if (!sources_.kernels.empty()) {
    CsvKernelNames names;
    if (!sources_.names.empty()) {
      auto read = read_kernel_names(sources_.names);
      if (!read) return forward_error(read);
      names = std::move(*read);
    }
    auto kernels = CsvKernels::open(sources_.kernels, std::move(names));
    if (!kernels) return forward_error(kernels);
    kernels_.emplace(std::move(*kernels));
  }
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
    for (const CsvCounterRead& row : counter_->rows) {
      builder_.recording().readings.counters.push_back(
          {sensor, host(row.before), host(row.after), row.total});
    }
  }
  if (samples_) {
    const auto sensor =
        add_sensor(sampled_, sampled_ == model::SensorKind::kPowerRing      ? known.ring
                             : sampled_ == model::SensorKind::kPowerInstant ? known.instant
                                                                            : known.average);
    for (const CsvSample& row : samples_->rows) builder_.add_power(sensor, host(row.at), row.watts);
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
  auto trace = kernels_->read(origin_, sources_.events);
  if (!trace) return forward_error(trace);
  if (kernels_->end() <= first_reading() || kernels_->begin() >= last_reading()) {
    return fail(
        Errc::kUnavailable,
        fmt::format("{}: its kernels ran {:.3f} s {} the readings, so their power is unknown; "
                    "check the unit of their times and 'base_unix_ns'",
                    sources_.kernels.string(),
                    kernels_->end() <= first_reading()
                        ? seconds(first_reading() - kernels_->end())
                        : seconds(kernels_->begin() - last_reading()),
                    kernels_->end() <= first_reading() ? "before" : "after"));
  }
  if (kernels_->begin() < first_reading() || kernels_->end() > last_reading()) {
    builder_.warn("some kernels ran before the first or after the last reading");
  }
  if (kernels_->file().cut_off()) builder_.warn(*kernels_->file().cut_off());
  for (const auto& warning : kernels_->warnings()) builder_.warn(warning);
  for (const auto& [name, count] : kernels_->left_out()) {
    builder_.warn(
        fmt::format("{} of '{}' left out: no work of the GPU's", counted(count, "record"), name));
  }
  trace->devices.push_back({0, "", sources_.device_name});
  builder_.recording().traces.push_back(std::move(*trace));
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
  origin_ = first_reading();
  if (kernels_) origin_ = std::min(origin_, kernels_->first());
  add_readings();
  if (kernels_) {
    if (auto ok = add_kernels(); !ok) return forward_error(ok);
  }
  if (auto ok = add_idle(); !ok) return forward_error(ok);
  model::Recording& recording = builder_.recording();
  recording.clock_points = {{HostTime{}, origin_, {}}, {host(last_reading()), last_reading(), {}}};
  recording.run.work_begin = host(kernels_ ? kernels_->begin() : first_reading());
  recording.run.work_end = host(kernels_ ? kernels_->end() : last_reading());
  if (recording.readings.counters.size() >= 2) return std::move(builder_).take();
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
  auto recording = Builder(sources).build();
  const auto& path = sources.samples.empty() ? sources.counter : sources.samples;
  if (!recording) return recording;
  if (auto right = check_powers(*recording, path.string()); !right) return forward_error(right);
  return recording;
}

}  // namespace jouleprof::importers
