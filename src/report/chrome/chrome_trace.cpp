#include "report/chrome/chrome_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/format/format.h"

namespace jouleprof::report {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kPowerProcess = 1;
constexpr std::uint32_t kWindowProcess = 2;
constexpr std::uint32_t kReplayProcess = 3;
constexpr std::uint32_t kFirstDevice = 10;

// The first instant of all: viewers want no negative times.
HostTime origin_of(const model::Recording& recording, const ChromeTraceParts& parts) {
  if (parts.begin != HostTime::min()) return parts.begin;
  HostTime first = recording.run.work_begin.value_or(HostTime::max());
  for (const auto& curve : parts.curves) {
    if (!curve.steps.empty()) first = std::min(first, curve.steps.front().begin);
  }
  for (const auto& trace : recording.traces) {
    for (const auto& chunk : trace.chunks) first = std::min(first, chunk.begin);
  }
  for (const auto& window : recording.windows) first = std::min(first, window.begin);
  return first == HostTime::max() ? HostTime{} : first;
}

class Writer {
 public:
  Writer(std::ostream& out, const model::Recording& recording, const ChromeTraceParts& parts)
      : out_(out),
        recording_(recording),
        parts_(parts),
        origin_(origin_of(recording, parts)),
        sink_(out) {}

  Result<void> write() {
    write_head();
    write_power();
    write_windows();
    auto done = write_replays();
    if (done) done = write_devices();
    sink_.flush();
    out_ << "\n]}\n";
    return done;
  }

 private:
  const model::Domain* domain_of(model::DomainId id) const {
    const auto found = std::ranges::find(recording_.domains, id, &model::Domain::id);
    return found == recording_.domains.end() ? nullptr : &*found;
  }

  // As attribution finds a device's domain.
  const model::ActivityProfile* profile_of(const model::TracedDevice& device) const {
    if (!parts_.profiles) return nullptr;
    const model::ActivityProfile* only = nullptr;
    std::size_t gpus = 0;
    for (const auto& domain : recording_.domains) gpus += domain.kind == model::DomainKind::kGpu;
    for (const auto& profile : *parts_.profiles) {
      if (profile.domain.kind != model::DomainKind::kGpu) continue;
      if (!device.uuid.empty() && profile.domain.uuid == device.uuid) return &profile;
      only = &profile;
    }
    return device.uuid.empty() && gpus == 1 ? only : nullptr;
  }

  void write_head() {
    out_ << "{\"displayTimeUnit\": \"ms\",\n";
    if (!recording_.clock_points.empty()) {
      const ClockMap clocks(recording_.clock_points);
      out_ << "\"baseTimeNanoseconds\": " << clocks.to_real(origin_).time_since_epoch().count()
           << ",\n";
    }
    out_
        << R"("otherData": {"tool": "jouleprof", "version": )" << chrome_string(parts_.version)
        << R"(, "energy": "dynamic (idle subtracted); low and high are the ends of the 95 % interval")";
    if (parts_.profiles) {
      for (const auto& p : *parts_.profiles) {
        out_ << ", " << chrome_string(p.domain.device) << ": "
             << chrome_string(fmt::format(
                    "{}: {:.6g} J{} in all = {:.6g} rest and held + {:.6g} kernels + "
                    "{:.6g} idle between launches + {:.6g} other "
                    "processes + {:.6g} unattributed",
                    p.method, p.measured.energy.joules(), provenance_mark(p.measured.provenance),
                    p.idle.joules(), p.kernels.joules(), p.gaps.joules(), p.others.joules(),
                    p.unattributed.joules()));
      }
    }
    out_ << "},\n\"traceEvents\": [";
  }

  void write_power() {
    sink_.name("process", kPowerProcess, 0, "power", 0);
    for (const auto& curve : parts_.curves) {
      const auto* domain = domain_of(curve.domain);
      if (!domain) continue;
      const std::string name = power_track_name(recording_, *domain);
      for (const auto& step : curve.steps) {
        if (!parts_.holds(step.begin)) continue;
        for (const auto& members : chrome_power(name, step)) {
          sink_(R"({{"ph": "C", "pid": {}, "tid": 0, "ts": {}, {}}})", kPowerProcess,
                chrome_time(step.begin - origin_), members);
        }
      }
    }
  }

  // Windows may overlap as they like, which slices of one track may not: they are asynchronous.
  void write_windows() {
    if (recording_.windows.empty()) return;
    sink_.name("process", kWindowProcess, 0, "windows", 1);
    for (std::size_t i = 0; i < recording_.windows.size(); ++i) {
      const model::Window& window = recording_.windows[i];
      if (!parts_.holds(window.begin)) continue;
      std::string args = fmt::format(R"("pid": {}, "thread": {})", window.pid, window.thread);
      for (std::size_t d = 0; parts_.window_energy && d < recording_.domains.size(); ++d) {
        if (!window.devices.contains(recording_.domains[d].id)) continue;
        const auto energy = parts_.window_energy(window, d);
        const auto& domain = recording_.domains[d];
        const std::string text =
            energy ? fmt::format("{:.6g} J{}, 95 %: {:.6g} to {:.6g}", energy->energy.joules(),
                                 provenance_mark(energy->provenance), energy->low().joules(),
                                 energy->high().joules())
                   : "unavailable: " + energy.error().message;
        args += fmt::format(
            ", {}: {}", chrome_string(fmt::format("{} {}", domain.device, to_string(domain.kind))),
            chrome_string(text));
      }
      const auto edge = [&](char phase, HostTime t, const std::string& more) {
        sink_(R"({{"ph": "{}", "cat": "window", "id": {}, "name": {}, "pid": {}, )"
              R"("tid": 0, "ts": {}, "args": {{{}}}}})",
              phase, i, chrome_string(window.name), kWindowProcess, chrome_time(t - origin_), more);
      };
      edge('b', window.begin, args);
      edge('e', window.end, "");
    }
  }

  // Isolated re-runs on a track of their own, so that they are not taken for the program's
  // launches.
  Result<void> write_replays() {
    for (std::uint32_t t = 0; t < recording_.traces.size(); ++t) {
      const model::Trace& trace = recording_.traces[t];
      bool named = false;
      for (const auto& chunk : trace.chunks) {
        if (chunk.kind != model::ChunkKind::kReplay || !parts_.holds(chunk.begin)) continue;
        model::ActivityDecoder decoder(chunk.bytes);
        model::KernelRerun entry;
        const std::string name = decoder.next(entry) ? "a kernel" : "in between";
        if (!decoder.ok()) {
          return fail(Errc::kCorrupt, "the recording's activity chunks are damaged");
        }
        if (!std::exchange(named, true)) {
          sink_.name("process", kReplayProcess, 0, "isolated re-runs, not in any figure", 2);
          sink_.name("thread", kReplayProcess, t, fmt::format("of {}", trace.program), 0);
        }
        sink_(
            R"({{"ph": "X", "cat": "replay", "name": {}, "pid": {}, "tid": {}, "ts": {}, "dur": {}}})",
            chrome_string(name), kReplayProcess, t, chrome_time(chunk.begin - origin_),
            chrome_time(chunk.end - chunk.begin));
      }
    }
    return {};
  }

  Result<void> write_devices() {
    std::uint32_t pid = kFirstDevice;
    for (const auto& trace : recording_.traces) {
      for (std::uint32_t i = 0; i < trace.devices.size(); ++i, ++pid) {
        const auto& device = trace.devices[i];
        sink_.name("process", pid, 0,
                   fmt::format("GPU {}{}{}{}{}{}", device.ordinal, device.name.empty() ? "" : " ",
                               device.name, trace.program.empty() ? "" : " of ", trace.program,
                               trace.pid > 0 ? fmt::format(" ({})", trace.pid) : std::string{}),
                   static_cast<int>(pid));
        ChromeLaunches launches(trace, i, profile_of(device), parts_, origin_, pid, sink_);
        auto done = launches.any() ? launches.write_launches() : launches.write_busy();
        if (!done) return done;
      }
    }
    return {};
  }

  std::ostream& out_;
  const model::Recording& recording_;
  const ChromeTraceParts& parts_;
  HostTime origin_;
  ChromeSink sink_;
};

// Viewers take minutes for millions of values of a counter. A shorter part shows each.
constexpr int kMostSteps = 200'000;  // an hour, by 18 ms

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const auto span = run.span(part);
  if (!span) return tl::unexpected(span.error());
  const auto& activity = run.activity(part);
  if (!activity) return tl::unexpected(activity.error());
  ChromeTraceParts parts;
  parts.profiles = &*activity;
  parts.version = options.version;
  if (part.from) parts.begin = span->begin;
  if (part.to) parts.end = span->end;
  parts.window_energy = window_energy_of(run);
  parts.busy_step = (span->end - span->begin) / kMostSteps;
  parts.curves = power_curves(run, part, std::max<Duration>(parts.busy_step, 20ms),
                              std::max<Duration>(parts.busy_step, 100ms));
  return write_chrome_trace(out, run.recording(), parts);
}

}  // namespace

Result<void> write_chrome_trace(std::ostream& out, const model::Recording& recording,
                                const ChromeTraceParts& parts) {
  return Writer(out, recording, parts).write();
}

extern constinit const Format chrome_format{
    .name = "chrome",
    .extension = ".trace.json",
    .shows = "power, launches, layers and windows over time, for ui.perfetto.dev",
    .write = write};

}  // namespace jouleprof::report
