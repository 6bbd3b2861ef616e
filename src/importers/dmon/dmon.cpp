#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "importers/builder.h"
#include "importers/dmon/dmon_activity.h"
#include "importers/dmon/dmon_log.h"
#include "importers/importer.h"
#include "importers/lines.h"
#include "importers/stamps.h"
#include "model/device/gauge_names.h"

namespace jouleprof::importers {
namespace {

constexpr Duration kDefaultInterval = std::chrono::seconds{1};
// pwr follows the driver's average field (Ampere and newer).
constexpr Duration kAveragingWindow = std::chrono::seconds{1};

// What becomes a gauge, with the factor to its SI unit.
struct GaugeField {
  DmonField field;
  std::string_view name;
  double scale;
};

constexpr std::array<GaugeField, 11> kGauges{
    {{DmonField::kTemperature, model::gauge::kTemperature, 1},
     {DmonField::kMemoryTemperature, model::gauge::kMemoryTemperature, 1},
     {DmonField::kSm, model::gauge::kGpuUtilisation, 0.01},
     {DmonField::kMemory, model::gauge::kMemoryUtilisation, 0.01},
     {DmonField::kEncoder, model::gauge::kEncoderUtilisation, 0.01},
     {DmonField::kDecoder, model::gauge::kDecoderUtilisation, 0.01},
     {DmonField::kJpeg, model::gauge::kJpegUtilisation, 0.01},
     {DmonField::kOfa, model::gauge::kOfaUtilisation, 0.01},
     {DmonField::kMemoryClock, model::gauge::kMemoryClock, 1e6},
     {DmonField::kSmClock, model::gauge::kSmClock, 1e6},
     {DmonField::kFrameBuffer, model::gauge::kMemoryUsed, 1024.0 * 1024.0}}};

// The first row of each round over the GPUs: a round ends when a GPU comes again.
std::vector<std::size_t> find_ticks(const std::vector<DmonRow>& rows) {
  std::vector<std::size_t> ticks;
  std::set<std::int64_t> seen;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (ticks.empty() || rows[i].starts_section || seen.contains(rows[i].gpu)) {
      ticks.push_back(i);
      seen.clear();
    }
    seen.insert(rows[i].gpu);
  }
  return ticks;
}

// dmon's stamps are whole seconds: ticks that share one are spread over it.
void spread_equal(std::vector<Stamp>& stamps) {
  constexpr Duration kResolution = std::chrono::seconds{1};
  for (std::size_t begin = 0, end = 0; begin < stamps.size(); begin = end) {
    for (end = begin + 1; end < stamps.size() && stamps[end].at == stamps[begin].at &&
                          !stamps[end].starts_segment;) {
      ++end;
    }
    const auto count = static_cast<std::int64_t>(end - begin);
    for (std::int64_t i = 1; i < count; ++i) {
      stamps[begin + static_cast<std::size_t>(i)].at += kResolution * i / count;
    }
  }
}

Result<std::vector<Stamp>> stamp_ticks(const DmonLog& log, const std::vector<std::size_t>& ticks,
                                       Duration interval) {
  const auto count = static_cast<std::int64_t>(ticks.size());
  if (interval > Duration::max() / count) {
    return fail(
        Errc::kInvalidArgument,
        fmt::format("{} rows at intervals of {:.0f} s are centuries; give the right interval",
                    count, seconds(interval)));
  }
  std::vector<Stamp> stamps;
  stamps.reserve(ticks.size());
  for (const std::size_t first : ticks) {
    const Duration counted = interval * static_cast<std::int64_t>(stamps.size());
    stamps.push_back({log.rows[first].stamp.value_or(counted), log.rows[first].starts_section});
  }
  if (log.stamps != DmonStamps::kNone) spread_equal(stamps);
  return stamps;
}

// The sensors of one GPU, made when they first say something.
struct Gpu {
  model::DomainId domain{};
  std::optional<model::SensorId> power;
  std::array<std::optional<model::SensorId>, kDmonFields> gauges;
};

class Import {
 public:
  Import(const DmonLog& log, const std::string& path) : log_(log), path_(path), builder_("dmon") {}

  Result<model::Recording> run(const ImportOptions& options) {
    ticks_ = find_ticks(log_.rows);
    auto stamps = stamp_ticks(log_, ticks_, options.interval.value_or(kDefaultInterval));
    if (!stamps) return forward_error(stamps);
    layout_ = lay_out(*stamps, kAveragingWindow);
    if (log_.stamps == DmonStamps::kNone) layout_.cut = {};  // pauses of unknown length
    builder_.set_clock(layout_, log_.stamps == DmonStamps::kDateTime ? local_to_real : nullptr);
    warn_of_time(options);
    add_readings();
    add_activity(options.trim);
    if (log_.pmon_rows > 0) {
      builder_.warn(fmt::format("{} row{} of pmon left out: put them into a file of their own",
                                log_.pmon_rows, log_.pmon_rows == 1 ? "" : "s"));
    }
    if (log_.cut_off_line) builder_.recording().run.complete = false;
    return std::move(builder_).finish(path_, layout_.times.front(), layout_.times.back());
  }

 private:
  void warn_of_time(const ImportOptions& options) {
    if (log_.stamps == DmonStamps::kNone) {
      builder_.warn(
          fmt::format("the log has no time stamps: its rows are taken to be {} s apart{}",
                      seconds(options.interval.value_or(kDefaultInterval)),
                      options.interval ? "" : "; give --interval if dmon ran with another -d"));
      return;
    }
    builder_.warn(log_.stamps == DmonStamps::kDateTime
                      ? "the log's time stamps are local time, read in this machine's time zone"
                      : "the log's time stamps have no date: when it was made is unknown");
    if (options.interval) {
      builder_.warn("--interval is not used: the log has its own time stamps");
    }
  }

  void add_readings() {
    bool whole_watts = true;
    for (std::size_t tick = 0; tick < ticks_.size(); ++tick) {
      const std::size_t end = tick + 1 < ticks_.size() ? ticks_[tick + 1] : log_.rows.size();
      for (std::size_t i = ticks_[tick]; i < end; ++i) {
        const DmonRow& row = log_.rows[i];
        add_row(row, layout_.times[tick]);
        const auto watts = row[DmonField::kPower];
        whole_watts =
            whole_watts && (!watts || *watts == static_cast<double>(std::llround(*watts)));
      }
    }
    if (whole_watts) {
      builder_.warn("dmon shows whole watts: each power value is right to +-0.5 W at best");
    }
    for (const auto& [index, gpu] : gpus_) {
      if (!gpu.power) {
        builder_.domain(gpu.domain).unavailable_reason = "the dmon log has no power for this GPU";
      }
    }
  }

  void add_row(const DmonRow& row, HostTime at) {
    const auto [found, is_new] = gpus_.try_emplace(row.gpu);
    Gpu& gpu = found->second;
    if (is_new) {
      gpu.domain = builder_.add_domain(model::DomainKind::kGpu, fmt::format("gpu{}", row.gpu),
                                       fmt::format("GPU {}", row.gpu));
    }
    const auto watts = row[DmonField::kPower];
    if (watts && !gpu.power) {
      gpu.power =
          builder_.add_sensor(gpu.domain, model::SensorKind::kPowerAverage, "nvidia-smi dmon pwr");
      builder_.recording().sensors.back().traits.window = kAveragingWindow;
    }
    if (gpu.power) builder_.add_power(*gpu.power, at, watts);
    for (const GaugeField& gauge : kGauges) {
      const auto value = row[gauge.field];
      if (!value) continue;
      auto& sensor = gpu.gauges[static_cast<std::size_t>(gauge.field)];
      if (!sensor) {
        sensor =
            builder_.add_sensor(gpu.domain, model::SensorKind::kGauge, std::string(gauge.name));
      }
      builder_.add_gauge(*sensor, at, *value * gauge.scale);
    }
  }

  void add_activity(bool trim) {
    const DmonActivity activity = find_activity(log_.rows, ticks_);
    model::Recording& recording = builder_.recording();
    if (activity.idle_ticks >= 2) {
      recording.idle_spans.push_back(
          {layout_.times.front(), layout_.times[activity.idle_ticks - 1]});
    }
    if (!trim) return;
    if (!activity.work) {
      builder_.warn(
          fmt::format("nothing is trimmed: sm reaches {:.0f} % in no row", kActiveSmPercent));
      return;
    }
    // A row covers the interval before it, so n rows of work begin at the row before them.
    const auto [first, last] = *activity.work;
    const HostTime begin = layout_.times[first > 0 ? first - 1 : first];
    const HostTime end = layout_.times[last];
    if (begin == end) return;
    recording.run.work_begin = begin;
    recording.run.work_end = end;
    const std::size_t rows = last - first + 1;
    builder_.warn(fmt::format(
        "trimmed to {} of {} looks, from {:.0f} s to {:.0f} s of the log: those where sm reaches "
        "{:.0f} %, less one at each end; {} look{} left out, with about {:.1f} J",
        rows, ticks_.size(), seconds(begin.time_since_epoch()), seconds(end.time_since_epoch()),
        kActiveSmPercent, ticks_.size() - rows, ticks_.size() - rows == 1 ? "" : "s",
        joules_outside(begin, end)));
  }

  // Each power holds for the interval that ends at its row.
  double joules_outside(HostTime begin, HostTime end) const {
    double joules = 0;
    for (std::size_t tick = 1; tick < ticks_.size(); ++tick) {
      if (layout_.times[tick] > begin && layout_.times[tick] <= end) continue;
      const std::size_t next = tick + 1 < ticks_.size() ? ticks_[tick + 1] : log_.rows.size();
      for (std::size_t i = ticks_[tick]; i < next; ++i) {
        joules += log_.rows[i][DmonField::kPower].value_or(0) *
                  seconds(layout_.times[tick] - layout_.times[tick - 1]);
      }
    }
    return joules;
  }

  const DmonLog& log_;
  const std::string& path_;
  RecordingBuilder builder_;
  std::vector<std::size_t> ticks_;
  Layout layout_;
  std::map<std::int64_t, Gpu> gpus_;
};

Result<model::Recording> read_dmon(std::span<const SourceText> sources,
                                   const ImportOptions& options) {
  const SourceText& source = sources.front();
  const auto log = read_dmon_log(source, options.block);
  if (!log) return tl::unexpected(log.error());
  if (log->rows.empty()) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: no row of 'nvidia-smi dmon' in it, only {}", source.path,
                            log->cut_off_line ? "a piece of one" : "headers"));
  }
  if (!log->has_power_column) {
    return fail(
        Errc::kUnavailable,
        fmt::format("{}: the log has no pwr column; log power with 'nvidia-smi dmon -s puc'",
                    source.path));
  }
  auto recording = Import(*log, source.path).run(options);
  if (recording && log->cut_off_line) {
    recording->warnings.push_back({HostTime{}, cut_off_warning(source.path, *log->cut_off_line)});
  }
  return recording;
}

}  // namespace

const Importer kDmonImporter{{"dmon", "what 'nvidia-smi dmon' prints, with power in it (-s p...)"},
                             false,
                             is_dmon,
                             read_dmon};

}  // namespace jouleprof::importers
