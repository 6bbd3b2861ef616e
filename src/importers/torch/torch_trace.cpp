#include "importers/torch/torch_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/decimal.h"
#include "base/json/json_view.h"
#include "importers/torch/trace_scanner.h"
#include "model/activity_bins.h"

namespace jouleprof::importers {
namespace {

// Times before this one, without a base, do not count from 1970.
constexpr Duration kFirstWallTime = std::chrono::seconds{1'000'000'000};
constexpr std::uint32_t kMostDevices = 1024;

std::optional<RealTime> base_of(const TraceScanner& scanner) {
  const auto found = scanner.members().find("baseTimeNanoseconds");
  if (found == scanner.members().end()) return std::nullopt;
  const auto nanoseconds = scaled_integer(found->second, 0);
  if (!nanoseconds) return std::nullopt;
  return RealTime{Duration{*nanoseconds}};
}

std::uint32_t narrow(std::optional<std::int64_t> value, std::uint32_t otherwise) {
  if (!value || *value < 0 || *value >= model::kNone) return otherwise;
  return static_cast<std::uint32_t>(*value);
}

std::string when(RealTime t) { return fmt::format("{:.3f}", seconds(t.time_since_epoch())); }

}  // namespace

HostTime TorchClock::host(Duration ts) {
  const RealTime at = real(ts);
  const std::int64_t tenth = at.time_since_epoch() / std::chrono::milliseconds{100};
  if (tenth != tenth_) {
    offset_ = clocks_->to_host(at).time_since_epoch() - at.time_since_epoch();
    tenth_ = tenth;
  }
  return HostTime{at.time_since_epoch() + offset_};
}

Result<TorchTrace> TorchTrace::read(const std::filesystem::path& path,
                                    const model::Recording& power) {
  if (power.clock_points.empty()) {
    return fail(Errc::kUnavailable,
                "the recording does not know the wall time, so no trace can be laid beside it");
  }
  TorchTrace out;
  out.path_ = path;
  out.clocks_ = ClockMap(power.clock_points);
  for (const auto& domain : power.domains) {
    if (domain.kind == model::DomainKind::kGpu && domain.visible) out.gpus_.push_back(domain);
  }
  if (auto ok = out.scan(std::nullopt); !ok) return forward_error(ok);
  if (out.annotated_) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is annotated already; take the trace as torch.profiler wrote it",
                            path.string()));
  }
  if (auto ok = out.check(power); !ok) return forward_error(ok);
  out.join();
  out.bin();
  return out;
}

Result<void> TorchTrace::scan(std::optional<RealTime> base) {
  auto scanner = TraceScanner::open(path_);
  if (!scanner) return forward_error(scanner);
  std::optional<TorchClock> clock;
  for (;;) {
    auto piece = scanner->next();
    if (!piece) return forward_error(piece);
    if (*piece == TraceScanner::Piece::kEnd) break;
    if (*piece != TraceScanner::Piece::kEvent) continue;
    if (!clock) {
      base_ = base ? *base : base_of(*scanner).value_or(RealTime{});
      clock.emplace(base_, clocks_);
    }
    if (const auto event = parse_torch_event(scanner->text())) take(*event, *clock);
  }
  cut_off_ = scanner->cut_off();
  const auto reported = base_of(*scanner);
  if (!base && clock && reported && *reported != base_) {
    // It stands behind the events: all their times have to be read again.
    launches_.clear();
    calls_.clear();
    begin_ = RealTime::max();
    end_ = RealTime::min();
    return scan(reported);
  }
  return {};
}

void TorchTrace::take(const TorchEvent& event, TorchClock& clock) {
  if (event.category == "jouleprof") annotated_ = true;
  if (event.kind == TorchEvent::Kind::kOther) return;
  begin_ = std::min(begin_, clock.real(event.ts));
  end_ = std::max(end_, clock.real(event.ts + event.duration));
  if (event.kind == TorchEvent::Kind::kLaunch && event.correlation) {
    const std::uint32_t correlation = narrow(event.correlation, model::kNone);
    if (correlation != model::kNone) calls_.push_back({event.ts, correlation, thread_of(event)});
  }
  if (event.kind != TorchEvent::Kind::kWork) return;
  Launch launch;
  launch.begin = clock.host(event.ts);
  launch.duration = event.duration;
  launch.kernel_class = class_of_event(event);
  launch.device = narrow(event.device, 0);
  launch.stream = narrow(event.stream, 0);
  launch.launched = narrow(event.correlation, model::kNone);  // join() looks the call up
  launches_.push_back(launch);
}

std::uint32_t TorchTrace::class_of_event(const TorchEvent& event) {
  key_.assign(event.name);
  key_.append(event.category).append(event.grid).append(event.block);
  if (event.bytes > 0) key_ += static_cast<char>('A' + std::bit_width(event.bytes));
  if (const auto found = classes_.find(key_); found != classes_.end()) return found->second;
  // Two ways of writing one kernel are one class.
  model::KernelClass kernel = class_of(event);
  const auto same = std::find(trace_.classes.begin(), trace_.classes.end(), kernel);
  const auto index = static_cast<std::uint32_t>(same - trace_.classes.begin());
  if (same == trace_.classes.end()) trace_.classes.push_back(std::move(kernel));
  classes_.emplace(key_, index);
  return index;
}

std::uint32_t TorchTrace::thread_of(const TorchEvent& event) {
  key_.assign(event.pid).append(1, ' ').append(event.tid);
  const auto found = threads_.find(key_);
  if (found != threads_.end()) return found->second;
  const auto index = static_cast<std::uint32_t>(threads_.size());
  threads_.emplace(key_, index);
  return index;
}

std::optional<std::uint32_t> TorchTrace::thread(std::string_view pid, std::string_view tid) const {
  const auto found = threads_.find(std::string(pid) + ' ' + std::string(tid));
  if (found == threads_.end()) return std::nullopt;
  return found->second;
}

std::optional<model::DomainId> TorchTrace::domain_of(std::uint32_t device) const {
  if (device >= gpus_.size()) return std::nullopt;
  return gpus_[device].id;
}

// From correlation identifiers to calls.
void TorchTrace::join() {
  std::sort(calls_.begin(), calls_.end(),
            [](const Call& a, const Call& b) { return a.correlation < b.correlation; });
  for (Launch& launch : launches_) {
    if (launch.launched == model::kNone) continue;
    const auto call = std::lower_bound(
        calls_.begin(), calls_.end(), launch.launched,
        [](const Call& c, std::uint32_t correlation) { return c.correlation < correlation; });
    const bool found = call != calls_.end() && call->correlation == launch.launched;
    launch.launched = found ? static_cast<std::uint32_t>(call - calls_.begin()) : model::kNone;
  }
}

void TorchTrace::bin() {
  std::vector<std::uint32_t> order(launches_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(launches_[a].device, launches_[a].begin) <
           std::pair(launches_[b].device, launches_[b].begin);
  });
  for (std::size_t i = 0; i < order.size();) {
    const std::uint32_t device = launches_[order[i]].device;
    const bool known = device < gpus_.size();
    model::ActivityBins::Options options;
    options.bin = trace_.bin;
    options.device = static_cast<std::uint32_t>(trace_.devices.size());
    trace_.devices.push_back({device,
                              known ? gpus_[device].uuid : fmt::format("unknown-{}", device),
                              known ? gpus_[device].name : std::string{}});
    model::ActivityBins bins(
        options, [&](model::ActivityChunk chunk) { trace_.chunks.push_back(std::move(chunk)); });
    for (; i < order.size() && launches_[order[i]].device == device; ++i) {
      const Launch& l = launches_[order[i]];
      bins.add({l.begin, l.begin + l.duration, l.kernel_class, model::kNone, l.stream});
    }
    bins.finish();
    trace_.status.late += bins.late();
  }
  trace_.status.activities = launches_.size();
  trace_.status.ended = !cut_off_;
  trace_.program = path_.filename().string();
}

Result<void> TorchTrace::check(const model::Recording& power) const {
  if (begin_ > end_) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: there is no operator and no kernel in it", path_.string()));
  }
  if (begin_.time_since_epoch() < kFirstWallTime) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: its times do not count from 1970 and there is no "
                            "\"baseTimeNanoseconds\", so it is not known when it was made",
                            path_.string()));
  }
  for (const Launch& launch : launches_) {
    if (launch.device >= kMostDevices) {
      return fail(Errc::kCorrupt,
                  fmt::format("{}: there is no GPU {}", path_.string(), launch.device));
    }
  }
  HostTime first = HostTime::max();
  HostTime last = HostTime::min();
  const auto see = [&](HostTime t) {
    first = std::min(first, t);
    last = std::max(last, t);
  };
  for (const auto& r : power.readings.counters) {
    see(r.before);
    see(r.after);
  }
  for (const auto& r : power.readings.powers) see(r.at);
  if (first > last) return fail(Errc::kUnavailable, "the recording holds no reading of power");
  const HostTime begin = clocks_.to_host(begin_);
  const HostTime end = clocks_.to_host(end_);
  if (end > first && begin < last) return {};
  return fail(Errc::kUnavailable,
              fmt::format("{} and the recording have no time in common: the trace is of {} to {}, "
                          "the recording of {} to {} (Unix seconds)",
                          path_.string(), when(begin_), when(end_), when(clocks_.to_real(first)),
                          when(clocks_.to_real(last))));
}

}  // namespace jouleprof::importers
