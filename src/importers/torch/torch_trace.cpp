#include "importers/torch/torch_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "base/json/json.h"
#include "base/text.h"
#include "importers/builder.h"
#include "importers/source_text.h"
#include "model/activity/device_timeline.h"

namespace jouleprof::importers {
namespace {

using Kind = TorchEvent::Kind;

Kind kind_of(std::string_view phase, std::string_view category) {
  if (phase != "X") return Kind::kOther;
  for (const auto word : {"kernel", "gpu_memcpy", "gpu_memset"}) {
    if (category == word) return Kind::kWork;
  }
  for (const auto word : {"cuda_runtime", "cuda_driver"}) {
    if (category == word) return Kind::kLaunch;
  }
  for (const auto word : {"cpu_op", "user_annotation", "python_function"}) {
    if (category == word) return Kind::kRange;
  }
  return Kind::kOther;
}

std::optional<std::int64_t> whole(std::string_view value) { return scaled_integer(value, 0); }

std::array<std::uint32_t, 3> triple(std::string_view value) {
  std::array<std::uint32_t, 3> out{};
  if (value.size() < 2 || value.front() != '[') return out;
  value = value.substr(1, value.size() - 2);
  for (std::uint32_t& number : out) {
    value.remove_prefix(json_space(value));
    const auto size = std::min(value.find_first_of(", \n\r\t"), value.size());
    const auto n = whole(value.substr(0, size));
    if (!n || *n < 0 || *n >= model::kNone) return {};
    number = static_cast<std::uint32_t>(*n);
    value.remove_prefix(size);
    value.remove_prefix(json_space(value));
    if (value.starts_with(',')) value.remove_prefix(1);
  }
  return out;
}

// Times before this one, without a base, do not count from 1970.
constexpr Duration kFirstWallTime = std::chrono::seconds{1'000'000'000};
constexpr std::uint32_t kMostDevices = 1024;
constexpr Duration kLongestEvent = std::chrono::hours{24 * 365};

std::optional<RealTime> base_of(const TraceScanner& scanner) {
  const auto found = scanner.members().find("baseTimeNanoseconds");
  if (found == scanner.members().end()) return std::nullopt;
  const auto nanoseconds = scaled_integer(found->second, 0);
  if (!nanoseconds || *nanoseconds < 0 || *nanoseconds > kLastUnixTime.count()) return std::nullopt;
  return RealTime{Duration{*nanoseconds}};
}

std::uint32_t narrow(std::optional<std::int64_t> value, std::uint32_t otherwise) {
  if (!value || *value < 0 || *value >= model::kNone) return otherwise;
  return static_cast<std::uint32_t>(*value);
}

std::string when(RealTime t) { return fmt::format("{:.3f}", seconds(t.time_since_epoch())); }

// `text` is one event. Nothing when it has no time, as metadata may.
std::optional<TorchEvent> parse_torch_event(std::string_view text) {
  TorchEvent event;
  std::string_view phase;
  std::optional<std::int64_t> ts;
  JsonMembers members(text);
  while (members.next()) {
    const std::string_view key = members.key();
    const std::string_view value = members.value();
    if (key == "ph") {
      phase = plain_json_string(value);
    } else if (key == "cat") {
      event.category = plain_json_string(value);
    } else if (key == "name") {
      event.name = value;
    } else if (key == "ts") {
      ts = scaled_integer(value, 3);
    } else if (key == "dur") {
      event.duration = Duration{std::max<std::int64_t>(scaled_integer(value, 3).value_or(0), 0)};
    } else if (key == "pid") {
      event.pid = value;
    } else if (key == "tid") {
      event.tid = value;
    } else if (key == "args" && value.starts_with('{')) {
      event.args = value;
    }
  }
  if (!ts) return std::nullopt;
  event.ts = Duration{*ts};
  event.kind = kind_of(phase, event.category);
  if (event.kind != Kind::kWork && event.kind != Kind::kLaunch) return event;
  JsonMembers args(event.args);
  while (args.next()) {
    if (args.key() == "device") event.device = whole(args.value());
    if (args.key() == "stream") event.stream = whole(args.value());
    if (args.key() == "correlation") event.correlation = whole(args.value());
    if (args.key() == "grid") event.grid = args.value();
    if (args.key() == "block") event.block = args.value();
    if (args.key() == "bytes") {
      event.bytes =
          static_cast<std::uint64_t>(std::max<std::int64_t>(whole(args.value()).value_or(0), 0));
    }
  }
  return event;
}

}  // namespace

model::KernelClass class_of(const TorchEvent& event) {
  model::KernelClass kernel;
  kernel.name = json_string(event.name);
  if (event.category == "gpu_memcpy") kernel.kind = model::ActivityKind::kMemcpy;
  if (event.category == "gpu_memset") kernel.kind = model::ActivityKind::kMemset;
  if (kernel.kind == model::ActivityKind::kKernel) {
    kernel.grid = triple(event.grid);
    kernel.block = triple(event.block);
  } else {
    kernel.bytes = std::bit_floor(event.bytes);
  }
  return kernel;
}

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
                "the recording holds no wall-clock time, so no trace can be aligned with it");
  }
  TorchTrace out;
  out.path_ = path;
  out.profiled_.clocks = ClockMap(power.clock_points);
  for (const auto& domain : power.domains) {
    if (domain.kind != model::DomainKind::kGpu || !domain.visible) continue;
    out.gpus_.push_back(domain);
    out.profiled_.domains.push_back(domain.id);
  }
  if (auto ok = out.scan(std::nullopt); !ok) return forward_error(ok);
  if (out.annotated_) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{} is annotated already; give the trace that torch.profiler wrote",
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
      profiled_.base = base ? *base : base_of(*scanner).value_or(RealTime{});
      clock.emplace(profiled_.base, profiled_.clocks);
    }
    const auto event = parse_torch_event(scanner->text());
    if (!event || event->kind == TorchEvent::Kind::kOther) {
      if (event && event->category == "jouleprof") annotated_ = true;
      continue;
    }
    if (event->ts < -kLongestEvent ||
        event->ts > kLastUnixTime - profiled_.base.time_since_epoch() ||
        event->duration > kLongestEvent) {
      return fail(Errc::kCorrupt,
                  fmt::format("{}: no event can be at {} s and last {} s; check the times of {}",
                              path_.string(), seconds(event->ts), seconds(event->duration),
                              show(json_string(event->name))));
    }
    take(*event, *clock);
  }
  profiled_.cut_off = scanner->cut_off();
  profiled_.broken_text = scanner->mender().broken();
  profiled_.control_characters = scanner->mender().controls();
  const auto reported = base_of(*scanner);
  if (!base && clock && reported && *reported != profiled_.base) {
    // It follows the events: read all their times again.
    profiled_.launches.clear();
    profiled_.calls.clear();
    profiled_.begin = RealTime::max();
    profiled_.end = RealTime::min();
    return scan(reported);
  }
  return {};
}

void TorchTrace::take(const TorchEvent& event, TorchClock& clock) {
  profiled_.begin = std::min(profiled_.begin, clock.real(event.ts));
  profiled_.end = std::max(profiled_.end, clock.real(event.ts + event.duration));
  if (event.kind == TorchEvent::Kind::kLaunch && event.correlation) {
    const std::uint32_t correlation = narrow(event.correlation, model::kNone);
    if (correlation != model::kNone) {
      profiled_.calls.push_back({event.ts, correlation, thread_of(event)});
    }
  }
  if (event.kind != TorchEvent::Kind::kWork) return;
  model::ProfiledTrace::Launch launch;
  launch.begin = clock.host(event.ts);
  launch.duration = event.duration;
  launch.kernel_class = class_of_event(event);
  launch.device = narrow(event.device, 0);
  launch.stream = narrow(event.stream, 0);
  launch.launched = narrow(event.correlation, model::kNone);  // join() looks the call up
  profiled_.launches.push_back(launch);
}

std::uint32_t TorchTrace::class_of_event(const TorchEvent& event) {
  key_.assign(event.name);
  key_.append(event.category).append(event.grid).append(event.block);
  if (event.bytes > 0) key_ += static_cast<char>('A' + std::bit_width(event.bytes));
  if (const auto found = classes_.find(key_); found != classes_.end()) return found->second;
  // One kernel may be written in two ways.
  model::KernelClass kernel = class_of(event);
  auto& known = profiled_.trace.classes;
  const auto same = std::ranges::find(known, kernel);
  const auto index = static_cast<std::uint32_t>(same - known.begin());
  if (same == known.end()) known.push_back(std::move(kernel));
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

// Replaces correlation identifiers by positions of calls.
void TorchTrace::join() {
  auto& calls = profiled_.calls;
  std::ranges::sort(calls,
                    [](const auto& a, const auto& b) { return a.correlation < b.correlation; });
  for (auto& launch : profiled_.launches) {
    if (launch.launched == model::kNone) continue;
    const auto call = std::lower_bound(
        calls.begin(), calls.end(), launch.launched,
        [](const auto& c, std::uint32_t correlation) { return c.correlation < correlation; });
    const bool found = call != calls.end() && call->correlation == launch.launched;
    launch.launched = found ? static_cast<std::uint32_t>(call - calls.begin()) : model::kNone;
  }
}

void TorchTrace::bin() {
  const auto& launches = profiled_.launches;
  model::Trace& trace = profiled_.trace;
  std::vector<std::uint32_t> order(launches.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(launches[a].device, launches[a].begin) <
           std::pair(launches[b].device, launches[b].begin);
  });
  for (std::size_t i = 0; i < order.size();) {
    const std::uint32_t device = launches[order[i]].device;
    const bool known = device < gpus_.size();
    model::ActivityBins::Options options;
    options.bin = trace.bin;
    options.device = static_cast<std::uint32_t>(trace.devices.size());
    trace.devices.push_back({device, known ? gpus_[device].uuid : fmt::format("unknown-{}", device),
                             known ? gpus_[device].name : std::string{}});
    model::ActivityBins bins(
        options, [&](model::ActivityChunk chunk) { trace.chunks.push_back(std::move(chunk)); });
    for (; i < order.size() && launches[order[i]].device == device; ++i) {
      const auto& l = launches[order[i]];
      bins.add({l.begin, l.begin + l.duration, l.kernel_class, model::kNone, l.stream});
    }
    bins.finish();
    trace.status.late += bins.late();
  }
  trace.status.activities = launches.size();
  trace.status.ended = !profiled_.cut_off;
  trace.program = path_.filename().string();
}

Result<void> TorchTrace::for_each_piece(
    const std::function<bool(const model::TracePiece&)>& take) const {
  using Piece = TraceScanner::Piece;
  using Role = model::TracePiece::Kind;
  auto scanner = TraceScanner::open(path_);
  if (!scanner) return forward_error(scanner);
  for (std::size_t launches = 0;;) {
    const auto read = scanner->next();
    if (!read) return forward_error(read);
    model::TracePiece piece;
    piece.text = scanner->text();
    piece.any_event = scanner->saw_events();
    const std::string closing = *read == Piece::kEnd ? scanner->closing() : std::string{};
    std::optional<TorchEvent> event;
    if (*read == Piece::kEvent) event = parse_torch_event(piece.text);
    if (*read == Piece::kLast) piece.kind = Role::kLast;
    if (*read == Piece::kEnd) {
      piece.kind = Role::kEnd;
      piece.text = closing;
    } else if (event && event->kind == TorchEvent::Kind::kWork) {
      if (launches == profiled_.launches.size()) {
        return fail(Errc::kCorrupt, fmt::format("{} changed while it was read", path_.string()));
      }
      piece.kind = Role::kLaunch;
      piece.launch = launches++;
      piece.args = event->args;
    } else if (event && event->kind == TorchEvent::Kind::kRange) {
      piece.kind = Role::kRange;
      piece.ts = event->ts;
      piece.duration = event->duration;
      piece.thread = thread(event->pid, event->tid);
      piece.args = event->args;
    }
    if (!take(piece) || piece.kind == Role::kEnd) return {};
  }
}

Result<void> TorchTrace::check(const model::Recording& power) const {
  if (profiled_.begin > profiled_.end) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: it holds no operator and no kernel", path_.string()));
  }
  if (profiled_.begin.time_since_epoch() < kFirstWallTime) {
    return fail(Errc::kUnavailable,
                fmt::format("{}: its times do not count from 1970 and it has no "
                            "\"baseTimeNanoseconds\", so its time is unknown",
                            path_.string()));
  }
  LaunchLimit limit;
  for (const auto& launch : profiled_.launches) {
    if (!limit.add(launch.duration)) {
      return fail(Errc::kCorrupt, fmt::format("{}: {}", path_.string(), limit.message()));
    }
    if (launch.device >= kMostDevices) {
      return fail(Errc::kCorrupt,
                  fmt::format("{}: GPU {} cannot exist", path_.string(), launch.device));
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
  const HostTime begin = profiled_.clocks.to_host(profiled_.begin);
  const HostTime end = profiled_.clocks.to_host(profiled_.end);
  if (end > first && begin < last) return {};
  return fail(
      Errc::kUnavailable,
      fmt::format("{} and the recording have no time in common: the trace spans {} to {}, "
                  "the recording {} to {} (Unix seconds)",
                  path_.string(), when(profiled_.begin), when(profiled_.end),
                  when(profiled_.clocks.to_real(first)), when(profiled_.clocks.to_real(last))));
}

}  // namespace jouleprof::importers
