#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "analysis/timeline/recording_timelines.h"
#include "apps/cli/doctor/doctor.h"
#include "base/file.h"
#include "base/process/threads.h"
#include "base/say.h"
#include "base/text.h"
#include "importers/import.h"
#include "meters/all/open_meters.h"
#include "meters/nvml/calibration/calibration_file.h"
#include "meters/nvml/calibration/calibrator.h"
#include "meters/wall/wall_source.h"
#include "model/device/sensor_table.h"
#include "report/costs/wall.h"
#include "session/sampling/sampler.h"

namespace jouleprof::cli {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStepTime = 6s;  // of load, and of rest
constexpr int kSteps = 6;           // of load
constexpr Duration kTake = 500ms;
// A block is steady where the board's power in it and around it differs by no more, in parts of all
// that it varied.
constexpr double kSteady = 0.05;
constexpr std::size_t kFewest = 10;  // steady blocks
constexpr double kWorst = 0.1;       // of the slope: an error above it calibrates nothing. Chosen
// The offset is not seen by a meter whose machine draws an unknown power besides: it is what the
// board's family allows at the lowest power, and this more. Chosen.
constexpr double kMoreOffset = 4.5;  // watts

void note(const std::string& text) { say("jouleprof: {}\n", text); }

struct Series {
  model::Recording recording;
  std::optional<model::WallLog> log;
};

// Runs `--load`, or the own load, while the sensors are read.
class Load {
 public:
  Load(const WallCalibration& options, const std::string& uuid) {
    if (options.load.empty()) {
      auto load = meters::nvml::CudaLoad::open(uuid);
      if (!load) {
        error_ = load.error();
        return;
      }
      own_ = std::make_unique<meters::nvml::CudaLoad>(std::move(*load));
      begin([this] {
        if (auto started = own_->start(); !started) error_ = started.error(), stop_ = true;
        for (int i = 0; i < kSteps && !stop_; ++i) {
          std::this_thread::sleep_for(kStepTime);
          if (auto span = own_->burst(kStepTime); !span) break;
        }
        if (!stop_) std::this_thread::sleep_for(kStepTime);
        own_.reset();  // its context is this thread's
        done_ = true;
      });
      return;
    }
    begin([this, command = options.load] {
      (void)!std::system(command.c_str());
      done_ = true;
    });
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  bool is_done() const { return done_; }
  // Of the begin; once it is done, also of the load.
  const std::optional<Error>& error() const { return error_; }

 private:
  void begin(std::function<void()> work) {
    auto thread = start_thread(std::move(work), [this](const char*) { done_ = true; });
    if (thread) {
      thread_ = std::move(*thread);
    } else {
      error_ = thread.error();
      done_ = true;
    }
  }

  std::atomic<bool> done_ = false;
  std::atomic<bool> stop_ = false;
  std::unique_ptr<meters::nvml::CudaLoad> own_;
  std::optional<Error> error_;
  std::thread thread_;
};

bool is_file(const std::string& wall) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(wall, ignored);
}

Result<Series> record(const WallCalibration& options) {
  meters::MeterOptions opened;
  opened.devices = options.devices;
  if (!is_file(options.wall)) opened.wall_meters = {options.wall};
  auto found = meters::open_meters(opened);
  if (!found) return forward_error(found);
  session::Sampler sampler(std::move(found->meters), Duration{});
  Series out;
  out.recording.domains = sampler.domains();
  out.recording.sensors = sampler.sensors();
  std::size_t gpus = 0;
  std::string uuid;
  for (const auto& d : out.recording.domains) {
    if (d.kind != model::DomainKind::kGpu || d.uuid.empty()) continue;
    ++gpus;
    uuid = d.uuid;
  }
  if (gpus != 1) {
    return fail(gpus == 0 ? Errc::kNotFound : Errc::kInvalidArgument,
                gpus == 0 ? "there is no GPU with a sensor to calibrate"
                          : "one GPU at a time: name it with --devices");
  }
  Load load(options, uuid);
  if (load.error()) return tl::unexpected(*load.error());
  note(fmt::format("calibrating {} against {}: load in steps, {}", uuid, options.wall,
                   options.load.empty()
                       ? fmt::format("about {:.0f} s", seconds(kStepTime) * (2 * kSteps + 1))
                       : "while --load runs"));
  out.recording.clock_points.push_back({HostClock::now(), RealClock::now(), {}});
  sampler.start();
  session::Sampled sampled;
  while (!load.is_done()) {
    std::this_thread::sleep_for(kTake);
    sampler.take(sampled);
  }
  sampler.stop(10s, sampled);
  if (load.error()) return tl::unexpected(*load.error());
  out.recording.readings = std::move(sampled.readings);
  // The scale of now is to be found, not what was found before.
  for (auto& s : out.recording.sensors) s.traits.correction = 1;
  if (!is_file(options.wall)) return out;
  const auto text = read_file(options.wall);
  if (!text) return forward_error(text);
  auto log = importers::read_wall_log(*text, options.wall);
  if (!log) return forward_error(log);
  out.log = std::move(*log);
  return out;
}

struct Block {
  double gpu = 0;
  double cpu = 0;
  double wall = 0;
};

class Blocks {
 public:
  explicit Blocks(const Series& series)
      : series_(series), timelines_(analysis::timelines_of(series.recording)) {}

  Result<std::vector<Block>> all() {
    const auto& domains = series_.recording.domains;
    std::optional<HostTime> begin;
    std::optional<HostTime> end;
    for (std::size_t i = 0; i < domains.size(); ++i) {
      if (domains[i].kind != model::DomainKind::kGpu || !timelines_[i]) continue;
      if (const auto extent = timelines_[i]->extent()) begin = extent->begin, end = extent->end;
    }
    if (!begin) return fail(Errc::kUnavailable, "the GPU's sensors had no readings");
    std::vector<Block> out;
    for (HostTime t = *begin; t + kBlock <= *end; t += kBlock) {
      const auto wall = wall_between(t, t + kBlock);
      if (!wall) continue;
      Block block;
      block.wall = *wall;
      bool whole = true;
      for (std::size_t i = 0; i < domains.size(); ++i) {
        const bool is_cpu = domains[i].kind == model::DomainKind::kCpu && timelines_[i] &&
                            timelines_[i]->provenance() == model::Provenance::kMeasured;
        if (domains[i].kind != model::DomainKind::kGpu && !is_cpu) continue;
        if (!timelines_[i]) continue;
        const auto m = timelines_[i]->energy(t, t + kBlock);
        whole = whole && m.has_value();
        if (m) (is_cpu ? block.cpu : block.gpu) += (m->energy / kBlock).watts();
      }
      if (whole) out.push_back(block);
    }
    return out;
  }

 private:
  static constexpr Duration kBlock = 1s;

  std::optional<double> wall_between(HostTime from, HostTime to) {
    if (series_.log) {
      const auto& start = series_.recording.clock_points.front();
      double sum = 0;
      int count = 0;
      for (const auto& r : series_.log->readings) {
        const HostTime at = start.host + (r.at - start.real);
        if (at >= from && at < to) sum += r.watts, ++count;
      }
      return count > 0 ? std::optional(sum / count) : std::nullopt;
    }
    for (const auto& d : series_.recording.domains) {
      if (d.device != "wall") continue;
      double sum = 0;
      int count = 0;
      for (const auto& r : series_.recording.readings.powers) {
        const auto& sensor = series_.recording.sensors[static_cast<std::size_t>(r.sensor)];
        if (sensor.domain != d.id || r.at < from || r.at >= to) continue;
        sum += r.power.watts();
        ++count;
      }
      return count > 0 ? std::optional(sum / count) : std::nullopt;
    }
    return std::nullopt;
  }

  const Series& series_;
  analysis::Timelines timelines_;
};

// Those in which, and in the two before and the one after which, the board's power was steady: the
// meter may be late.
std::vector<Block> steady_of(const std::vector<Block>& all) {
  double low = 1e300;
  double high = 0;
  for (const Block& b : all) low = std::min(low, b.gpu), high = std::max(high, b.gpu);
  std::vector<Block> out;
  for (std::size_t i = 2; i + 1 < all.size(); ++i) {
    bool steady = true;
    for (std::size_t k = i - 2; k <= i + 1; ++k) {
      steady = steady && std::abs(all[k].gpu - all[i].gpu) <= kSteady * (high - low);
    }
    if (steady) out.push_back(all[i]);
  }
  return out;
}

double meter_error(const WallCalibration& options) {
  if (is_file(options.wall)) return options.file_error;
  const auto spec = meters::parse_wall_spec(options.wall);
  return spec ? spec->gain_error : 0.05;
}

}  // namespace

Result<void> parse_efficiency(const std::string& text, WallCalibration& out) {
  if (text.empty()) return {};
  const auto colon = text.find(':');
  const auto low = parse_number(trim(std::string_view(text).substr(0, colon)));
  const auto high = colon == std::string::npos
                        ? low
                        : parse_number(trim(std::string_view(text).substr(colon + 1)));
  if (!low || !high || *low < 0.5 || *high > 1 || *low > *high) {
    return fail(Errc::kInvalidArgument,
                fmt::format("--supply-efficiency {}: give watts out for each watt in, such as "
                            "0.94 or 0.92:0.95; 1 for a meter behind the supply",
                            text));
  }
  constexpr double kKnown = 0.01;
  const bool is_one = colon == std::string::npos && *low < 1;
  out.efficiency_low = is_one ? *low - kKnown : *low;
  out.efficiency_high = is_one ? std::min(*high + kKnown, 1.0) : *high;
  return {};
}

Result<void> calibrate_by_wall(const WallCalibration& options) {
  const auto series = record(options);
  if (!series) return forward_error(series);
  const auto all = Blocks(*series).all();
  if (!all) return forward_error(all);
  const auto steady = steady_of(*all);
  if (steady.size() < kFewest) {
    return fail(Errc::kUnavailable,
                fmt::format("only {} seconds of steady power with a reading of the meter; at least "
                            "{} are needed, at several powers",
                            steady.size(), kFewest));
  }
  const double efficiency = (options.efficiency_low + options.efficiency_high) / 2;
  const double supply = (options.efficiency_high - options.efficiency_low) / 2 / efficiency;
  std::vector<report::WallPiece> pieces;
  double lowest = 1e300;
  for (const Block& b : steady) {
    pieces.push_back({b.gpu, b.wall - b.cpu / efficiency});
    lowest = std::min(lowest, b.gpu);
  }
  const auto slope = report::wall_slope(pieces);
  if (!slope) {
    return fail(Errc::kUnavailable,
                "not calibrated: the board's power hardly changed under the load");
  }
  const auto found = fmt::format("{:.3f} ± {:.3f} W at the meter for each watt of the sensors",
                                 slope->ratio, slope->error);
  note(found);
  if (!slope->follows() || slope->error > kWorst * slope->ratio) {
    return fail(Errc::kUnavailable,
                fmt::format("not calibrated: the meter does not follow the board, {}; it is of "
                            "another machine, stands still, or others' power changed meanwhile",
                            found));
  }
  const auto gpu = std::ranges::find_if(series->recording.domains, [](const auto& d) {
    return d.kind == model::DomainKind::kGpu && !d.uuid.empty();
  });
  meters::nvml::BoardGain gain;
  gain.gain = slope->ratio * efficiency;
  const double meter = meter_error(options);
  gain.error = std::hypot(std::hypot(slope->error / slope->ratio, meter), supply);
  const auto row = model::scale_of_gpu(gpu->name);
  const auto offset = [&](double bound, Power own) {
    return (1 + bound - gain.gain) * lowest + own.watts();
  };
  gain.offset_low = Power::watts(offset(row.gain_low, row.offset_low) - kMoreOffset);
  gain.offset_high = Power::watts(offset(row.gain_high, row.offset_high) + kMoreOffset);
  gain.meter = options.wall;
  gain.observed = RealClock::now();
  if (auto kept = meters::nvml::keep_gains({{gpu->uuid, gain}}); !kept) return kept;
  note(fmt::format("{}: gain {:.4f} ± {:.1f} % (meter ± {:.1f} %, supply ± {:.1f} %), stored in {}",
                   gpu->device, gain.gain, 100 * gain.error, 100 * meter, 100 * supply,
                   meters::nvml::calibration_path().string()));
  return {};
}

}  // namespace jouleprof::cli
