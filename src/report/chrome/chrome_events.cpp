#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/text.h"
#include "model/record_fields.h"
#include "report/chrome/chrome_trace.h"
#include "report/json/values.h"

namespace jouleprof::report {
namespace {

// How busy a device was, as the counter of its process in a Chrome trace.
class BusyCounter {
 public:
  // Bins that are shorter than `step` are added up to steps, which count from `origin`.
  BusyCounter(ChromeSink& sink, std::uint32_t pid, HostTime origin, Duration step)
      : sink_(sink), pid_(pid), origin_(origin), step_(step) {}

  // A bin and the nanoseconds in it for which the device was busy. In order; what lies in two
  // steps is split by time.
  void add(HostTime begin, Duration length, std::uint64_t busy);
  void finish();

 private:
  void add(HostTime step, double busy);
  void write_step();
  void put(HostTime begin, HostTime end, double busy);
  void write(HostTime t, double share);

  ChromeSink& sink_;
  std::uint32_t pid_;
  HostTime origin_;
  Duration step_;
  std::optional<HostTime> begin_;  // of the step that is not written yet
  double busy_ = 0;                // nanoseconds, in it
  std::optional<HostTime> end_;    // of what is written
};

void BusyCounter::add(HostTime begin, Duration length, std::uint64_t busy) {
  if (length >= step_) {
    write_step();
    return put(begin, begin + length, static_cast<double>(busy));
  }
  const HostTime first = origin_ + (begin - origin_) / step_ * step_;
  const HostTime next = first + step_;
  const double later = std::max(seconds(begin + length - next) / seconds(length), 0.0);
  add(first, static_cast<double>(busy) * (1 - later));
  if (later > 0) add(next, static_cast<double>(busy) * later);
}

void BusyCounter::finish() {
  write_step();
  if (end_) write(*end_, 0);
}

void BusyCounter::add(HostTime step, double busy) {
  if (step != begin_) write_step();
  begin_ = step;
  busy_ += busy;
}

void BusyCounter::write_step() {
  if (begin_) put(*begin_, *begin_ + step_, std::exchange(busy_, 0));
  begin_.reset();
}

void BusyCounter::put(HostTime begin, HostTime end, double busy) {
  if (end_ && begin > *end_) write(*end_, 0);
  write(begin, busy * 1e-9 / seconds(end - begin));
  end_ = end;
}

void BusyCounter::write(HostTime t, double share) {
  sink_(
      R"--({{"ph": "C", "name": "busy (%)", "pid": {}, "tid": 0, "ts": {}, "args": {{"busy": {:.4g}}}}})--",
      pid_, chrome_time(t - origin_), 100 * share);
}

// Tracks of a device's process: layers, ranges and launches of a stream.
std::uint32_t layers_track(std::uint32_t stream) { return 3 * stream + 1; }
std::uint32_t ranges_track(std::uint32_t stream) { return 3 * stream + 2; }
std::uint32_t stream_track(std::uint32_t stream) { return 3 * stream + 3; }

// A longer pause between launches ends the slice of a layer.
constexpr Duration kPause = std::chrono::milliseconds{1};

std::string_view category(model::ActivityKind kind) {
  switch (kind) {
    case model::ActivityKind::kKernel:
      return "kernel";
    case model::ActivityKind::kMemcpy:
      return "gpu_memcpy";
    case model::ActivityKind::kMemset:
      return "gpu_memset";
    case model::ActivityKind::kGraph:
      return "graph";
  }
  return "kernel";
}

std::string triple(const std::array<std::uint32_t, 3>& t) {
  return fmt::format("[{}, {}, {}]", t[0], t[1], t[2]);
}

constexpr std::size_t kBlock = 64 * 1024;

// Members "name" and "args" of counter events: of the mean, and where the interval is known of its
// ends, the low one not below zero. Each is a counter of its own: viewers stack the series of one.
constexpr std::string_view kChromeLow = ", 95 % low";
constexpr std::string_view kChromeHigh = ", 95 % high";

}  // namespace

ChromeLaunches::ChromeLaunches(const model::Trace& trace, std::uint32_t device,
                               const model::ActivityProfile* profile, const ChromeTraceParts& parts,
                               HostTime origin, std::uint32_t pid, ChromeSink& sink)
    : trace_(trace),
      device_(device),
      profile_(profile),
      parts_(parts),
      origin_(origin),
      pid_(pid),
      sink_(sink),
      rows_(trace.classes.size(), model::kNone) {
  any_ = std::ranges::any_of(trace.chunks, [&](const auto& chunk) {
    return chunk.kind == model::ChunkKind::kEvents && chunk.device == device;
  });
  if (profile) {
    const KernelRows known(*profile);
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] = known.row_of(trace.classes[i]);
    totals_.resize(profile->by_kernel.size());
  }
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const model::KernelClass& kernel = trace.classes[i];
    names_.push_back(fmt::format(R"("cat": "{}", "name": {})", category(kernel.kind),
                                 chrome_string(demangle(kernel.name))));
    std::string args;
    if (kernel.grid[0] > 0) {
      args +=
          fmt::format(R"(, "grid": {}, "block": {})", triple(kernel.grid), triple(kernel.block));
    }
    if (kernel.bytes > 0) args += fmt::format(R"(, "bytes at least": {})", kernel.bytes);
    if (rows_[i] != model::kNone) {
      const model::ActivityRow& row = profile->by_kernel[rows_[i]];
      if (row.energy && row.resolvable && row.busy > Duration::zero()) {
        args += fmt::format(R"--(, "power above idle (W)": {:.6g})--",
                            row.energy->energy.joules() / seconds(row.busy));
      }
      if (!row.resolvable || !row.energy) {
        args += fmt::format(
            R"(, "energy": {})",
            chrome_string(row.reason.empty() ? "not resolvable" : "not resolvable: " + row.reason));
      }
    }
    constants_.push_back(std::move(args));
  }
}

template <typename Visit>
Result<void> ChromeLaunches::each(Visit visit) const {
  for (const auto& chunk : trace_.chunks) {
    if (chunk.kind != model::ChunkKind::kEvents || chunk.device != device_) continue;
    model::ActivityDecoder decoder(chunk.bytes);
    for (model::EventEntry e; decoder.next(e);) {
      if (e.kernel_class >= rows_.size()) {
        return fail(Errc::kCorrupt, "the recording names a kernel that it does not know");
      }
      const HostTime begin = chunk.begin + Duration{e.start_nanoseconds};
      if (parts_.holds(begin)) visit(begin, e);
    }
    if (!decoder.ok()) return fail(Errc::kCorrupt, "the recording's launches are damaged");
  }
  return {};
}

Result<void> ChromeLaunches::write_launches() {
  if (profile_) {
    auto summed = each([&](HostTime begin, const model::EventEntry& e) {
      const std::uint32_t row = rows_[e.kernel_class];
      if (row != model::kNone && covers(begin)) totals_[row] += Duration(e.duration_nanoseconds);
    });
    if (!summed) return summed;
  }
  auto written = each([&](HostTime begin, const model::EventEntry& e) { launch(begin, e); });
  for (auto& [stream, open] : layers_) close(open, 0, layers_track(stream));
  for (auto& [stream, open] : ranges_) close(open, 0, ranges_track(stream));
  return written;
}

void ChromeLaunches::launch(HostTime begin, const model::EventEntry& e) {
  const Duration duration(e.duration_nanoseconds);
  const std::uint32_t row = rows_[e.kernel_class];
  std::optional<JoulesRange> energy;
  if (row != model::kNone && covers(begin) && profile_->by_kernel[row].energy) {
    energy = launch_energy(profile_->by_kernel[row], duration, totals_[row]);
  }
  const auto layers = path_of(e.scope, true);
  const auto ranges = path_of(e.scope, false);
  if (!layers_.contains(e.stream)) {
    const std::string name = fmt::format("stream {}", e.stream);
    const auto place = static_cast<int>(std::min<std::uint32_t>(e.stream, 1U << 28)) * 3;
    sink_.name("thread", pid_, layers_track(e.stream), name + " layers", place);
    sink_.name("thread", pid_, ranges_track(e.stream), name + " ranges", place + 1);
    sink_.name("thread", pid_, stream_track(e.stream), name, place + 2);
  }
  follow(layers_[e.stream], layers, layers_track(e.stream), true, begin, begin + duration, energy);
  follow(ranges_[e.stream], ranges, ranges_track(e.stream), false, begin, begin + duration, energy);

  std::string args = energy ? chrome_energy(*energy) : std::string{};
  args += constants_[e.kernel_class];
  if (!layers.empty()) {
    args += fmt::format(R"(, "layer": {})", chrome_string(trace_.layers[layers.back()].name));
  }
  if (!ranges.empty()) {
    args += fmt::format(R"(, "range": {})", chrome_string(trace_.ranges[ranges.back()].name));
  }
  if (e.scope < trace_.scopes.size()) {
    const auto phase = model::phase_name(trace_.scopes[e.scope].phase);
    if (!phase.empty()) args += fmt::format(R"(, "phase": "{}")", phase);
  }
  const std::string_view members = args;
  sink_(R"({{"ph": "X", {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}, "args": {{{}}}}})",
        names_[e.kernel_class], pid_, stream_track(e.stream), chrome_time(begin - origin_),
        chrome_time(duration), members.starts_with(", ") ? members.substr(2) : members);
}

std::vector<std::uint32_t> ChromeLaunches::path_of(std::uint32_t scope, bool layers) const {
  std::vector<std::uint32_t> path;
  if (scope >= trace_.scopes.size()) return path;
  std::uint32_t at = layers ? trace_.scopes[scope].layer : trace_.scopes[scope].range;
  const std::size_t count = layers ? trace_.layers.size() : trace_.ranges.size();
  // A damaged file could have a circle of parents.
  while (at < count && path.size() < 256) {
    path.push_back(at);
    at = layers ? trace_.layers[at].parent : trace_.ranges[at].parent;
  }
  std::ranges::reverse(path);
  return path;
}

void ChromeLaunches::follow(Open& open, std::vector<std::uint32_t> path, std::uint32_t tid,
                            bool layers, HostTime begin, HostTime end,
                            const std::optional<JoulesRange>& energy) {
  std::size_t same = 0;
  if (begin - open.end <= kPause) {
    while (same < path.size() && same < open.path.size() && path[same] == open.path[same]) ++same;
  }
  close(open, same, tid);
  for (std::size_t i = same; i < path.size(); ++i) {
    const std::string& name = layers ? trace_.layers[path[i]].name : trace_.ranges[path[i]].name;
    const std::string type = layers ? fmt::format(R"(, "args": {{"type": {}}})",
                                                  chrome_string(trace_.layers[path[i]].type))
                                    : std::string{};
    sink_(R"({{"ph": "B", "cat": "{}", "name": {}, "pid": {}, "tid": {}, "ts": {}{}}})",
          layers ? "layer" : "range", chrome_string(name), pid_, tid, chrome_time(begin - origin_),
          type);
  }
  open.path = std::move(path);
  open.energy.resize(open.path.size());
  open.launches.resize(open.path.size());
  for (auto& sum : open.energy) sum += energy.value_or(JoulesRange{});
  for (auto& n : open.launches) ++n;
  open.end = std::max(same > 0 ? open.end : end, end);
}

void ChromeLaunches::close(Open& open, std::size_t depth, std::uint32_t tid) {
  while (open.path.size() > depth) {
    const std::string energy = chrome_energy(open.energy.back());
    sink_(R"({{"ph": "E", "pid": {}, "tid": {}, "ts": {}, "args": {{{}{}"launches": {}}}}})", pid_,
          tid, chrome_time(open.end - origin_), energy, energy.empty() ? "" : ", ",
          open.launches.back());
    open.path.pop_back();
    open.energy.pop_back();
    open.launches.pop_back();
  }
}

Result<void> ChromeLaunches::write_busy() {
  BusyCounter counter(sink_, pid_, origin_, parts_.busy_step);
  for (const auto& chunk : trace_.chunks) {
    if (!model::is_bins(chunk.kind) || chunk.device != device_) continue;
    const Duration length = model::bin_of(chunk.kind, trace_.bin);
    model::ActivityDecoder decoder(chunk.bytes);
    std::optional<std::uint32_t> bin;
    std::uint64_t busy = 0;
    const auto put = [&] {
      if (!bin) return;
      const HostTime begin = chunk.begin + *bin * length;
      const std::uint64_t sum = std::exchange(busy, 0);
      if (parts_.holds(begin)) counter.add(begin, length, sum);
    };
    for (model::BinEntry e; decoder.next(e); busy += e.busy_nanoseconds) {
      if (bin != e.bin) put();
      bin = e.bin;
    }
    put();
    if (!decoder.ok()) return fail(Errc::kCorrupt, "the recording's activity chunks are damaged");
  }
  counter.finish();
  return {};
}

std::string chrome_string(std::string_view text) { return write_json(Json(text), 0); }

std::string chrome_time(Duration t) {
  const std::int64_t n = t.count();
  return fmt::format("{}{}.{:03}", n < 0 ? "-" : "", std::abs(n / 1000), std::abs(n % 1000));
}

std::string chrome_energy(const JoulesRange& energy) {
  const auto from = to_string(energy.provenance);
  if (energy.resolved == 0) {
    if (!(energy.high > 0)) return {};
    return fmt::format(R"--("energy high (J)": {:.6g}, "provenance": "{}")--", energy.high, from);
  }
  return fmt::format(
      R"--("energy (J)": {:.6g}, "energy low (J)": {:.6g}, "energy high (J)": {:.6g}, )--"
      R"--("provenance": "{}")--",
      energy.joules, energy.low, energy.high, from);
}

std::vector<std::string> chrome_power(std::string_view name, const model::PowerStep& step) {
  std::vector<std::string> out;
  const auto add = [&](std::string_view which, double watts) {
    out.push_back(fmt::format(R"("name": {}, "args": {{"watts": {:.6g}}})",
                              chrome_string(std::string(name).append(which)), watts));
  };
  add("", step.power.watts());
  if (step.error) {
    add(kChromeLow, std::max((step.power - *step.error).watts(), 0.0));
    add(kChromeHigh, (step.power + *step.error).watts());
  }
  return out;
}

void ChromeSink::name(std::string_view what, std::uint32_t pid, std::uint32_t tid,
                      std::string_view name, int place) {
  (*this)(R"({{"ph": "M", "name": "{}_name", "pid": {}, "tid": {}, "args": {{"name": {}}}}})", what,
          pid, tid, chrome_string(name));
  (*this)(
      R"({{"ph": "M", "name": "{}_sort_index", "pid": {}, "tid": {}, "args": {{"sort_index": {}}}}})",
      what, pid, tid, place);
}

void ChromeSink::next() {
  if (text_.size() >= kBlock) flush();
  text_ += std::exchange(first_, false) ? "\n" : ",\n";
}

void ChromeSink::flush() {
  out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
  text_.clear();
}

JoulesRange& JoulesRange::operator+=(const JoulesRange& other) {
  joules += other.joules;
  low += other.low;
  high += other.high;
  resolved += other.resolved;
  provenance = model::combine(provenance, other.provenance);
  return *this;
}

JoulesRange JoulesRange::operator-(const JoulesRange& other) const {
  return {joules - other.joules, low - other.low, high - other.high, resolved - other.resolved,
          provenance};
}

JoulesRange launch_energy(const model::ActivityRow& row, Duration duration, Duration total) {
  if (total <= Duration::zero()) return {};
  const double part = seconds(duration) / seconds(total);
  return {row.energy->energy.joules() * part, row.energy->low().joules() * part,
          row.energy->high().joules() * part, row.resolvable ? 1 : 0, row.energy->provenance};
}

KernelRows::KernelRows(const model::ActivityProfile& profile) : profile_(profile) {
  for (std::uint32_t i = 0; i < profile.by_kernel.size(); ++i) {
    const auto& kernel = profile.by_kernel[i].kernel;
    if (kernel) by_name_[kernel->name].push_back(i);
  }
}

std::uint32_t KernelRows::row_of(const model::KernelClass& kernel) const {
  const auto found = by_name_.find(kernel.name);
  if (found == by_name_.end()) return model::kNone;
  for (const std::uint32_t i : found->second) {
    if (*profile_.by_kernel[i].kernel == kernel) return i;
  }
  return model::kNone;
}

}  // namespace jouleprof::report
