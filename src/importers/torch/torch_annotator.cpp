#include "importers/torch/torch_annotator.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "importers/torch/trace_scanner.h"

namespace jouleprof::importers {
namespace {

// A process of its own in the viewer; no process identifier of Linux is as high.
constexpr int kPid = 2'000'000'000;

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string energy_text(const model::JoulesRange& energy) {
  return fmt::format(
      R"--("energy (J)": {:.6g}, "energy low (J)": {:.6g}, "energy high (J)": {:.6g})--",
      energy.joules, energy.low, energy.high);
}

// Microseconds with the nanoseconds as decimals, as Kineto writes them.
std::string microseconds(Duration t) {
  const std::int64_t n = t.count();
  return fmt::format("{}{}.{:03}", n < 0 ? "-" : "", std::abs(n / 1000), std::abs(n % 1000));
}

// `text` with `members` in its object "args".
void write_with(std::ostream& out, std::string_view text, std::string_view args,
                std::string_view members) {
  std::string_view object = args.empty() ? text : args;
  auto at = static_cast<std::size_t>(object.data() - text.data()) + object.size() - 1;
  while (std::string_view(" \n\r\t").find(text[at - 1]) != std::string_view::npos) --at;
  const bool first = text[at - 1] == '{';
  out << text.substr(0, at) << (first ? "" : ", ");
  if (args.empty()) {
    out << "\"args\": {" << members << '}';
  } else {
    out << members;
  }
  out << text.substr(at);
}

}  // namespace

TorchAnnotator::TorchAnnotator(const TorchTrace& trace,
                               const std::vector<model::ActivityProfile>& profiles)
    : trace_(trace) {
  std::uint32_t most = 0;
  for (const auto& launch : trace.launches()) most = std::max(most, launch.device + 1);
  devices_.resize(most);
  for (std::uint32_t i = 0; i < most; ++i) {
    const auto domain = trace.domain_of(i);
    const auto profile = std::find_if(profiles.begin(), profiles.end(), [&](const auto& p) {
      return domain && p.domain.id == *domain;
    });
    if (profile == profiles.end()) continue;
    Device& device = devices_[i];
    device.profile = &*profile;
    const model::KernelPowers powers(*profile);
    for (const auto& kernel : trace.trace().classes) device.rows.push_back(powers.row_of(kernel));
    device.totals.resize(profile->by_kernel.size());
  }
  for (const auto& launch : trace.launches()) {
    Device& device = devices_[launch.device];
    if (!row_of(launch)) continue;
    device.totals[device.rows[launch.kernel_class]] += launch.duration;
  }
  sum_up();
}

const model::ActivityRow* TorchAnnotator::row_of(const TorchTrace::Launch& launch) const {
  const Device& device = devices_[launch.device];
  if (!device.profile) return nullptr;
  if (launch.begin < device.profile->begin || launch.begin >= device.profile->end) return nullptr;
  const std::uint32_t row = device.rows[launch.kernel_class];
  return row == model::kNone ? nullptr : &device.profile->by_kernel[row];
}

std::optional<model::JoulesRange> TorchAnnotator::energy_of(
    const TorchTrace::Launch& launch) const {
  const auto* row = row_of(launch);
  if (!row || !row->energy) return std::nullopt;
  const Device& device = devices_[launch.device];
  return model::KernelPower{row, 0}.energy(launch.duration,
                                           device.totals[device.rows[launch.kernel_class]]);
}

void TorchAnnotator::sum_up() {
  const auto& calls = trace_.calls();
  std::vector<Launched> by_call(calls.size());
  for (const auto& launch : trace_.launches()) {
    if (launch.launched == model::kNone) continue;
    const auto energy = energy_of(launch);
    if (!energy) continue;
    Launched& sum = by_call[launch.launched];
    sum.sum.joules += energy->joules;
    sum.sum.low += energy->low;
    sum.sum.high += energy->high;
    ++sum.kernels;
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (by_call[i].kernels == 0) continue;
    by_call[i].ts = calls[i].ts;
    if (calls[i].thread >= threads_.size()) threads_.resize(calls[i].thread + 1);
    threads_[calls[i].thread].push_back(by_call[i]);
  }
  for (auto& thread : threads_) {
    std::sort(thread.begin(), thread.end(),
              [](const Launched& a, const Launched& b) { return a.ts < b.ts; });
    Launched sum;
    for (Launched& l : thread) {
      l.sum.joules = sum.sum.joules += l.sum.joules;
      l.sum.low = sum.sum.low += l.sum.low;
      l.sum.high = sum.sum.high += l.sum.high;
      l.kernels = sum.kernels += l.kernels;
    }
  }
}

std::string TorchAnnotator::kernel_args(const TorchTrace::Launch& launch) {
  const auto energy = energy_of(launch);
  if (!energy) {
    ++done_.without_energy;
    return {};
  }
  ++done_.kernels;
  const auto* row = row_of(launch);
  std::string text = energy_text(*energy);
  if (row->busy > Duration::zero()) {
    text += fmt::format(R"--(, "power above idle (W)": {:.6g})--",
                        row->energy->energy.joules() / seconds(row->busy));
  }
  if (!row->resolvable) {
    text += fmt::format(
        R"(, "energy": {})",
        json_text(row->reason.empty() ? "not resolvable" : "not resolvable: " + row->reason));
  }
  return text;
}

std::string TorchAnnotator::range_args(const TorchEvent& event) {
  const auto index = trace_.thread(event.pid, event.tid);
  if (!index || *index >= threads_.size()) return {};
  const auto& thread = threads_[*index];
  const auto first = std::partition_point(thread.begin(), thread.end(),
                                          [&](const Launched& l) { return l.ts < event.ts; });
  const auto last = std::partition_point(
      first, thread.end(), [&](const Launched& l) { return l.ts <= event.ts + event.duration; });
  if (first == last) return {};
  const Launched before = first == thread.begin() ? Launched{} : *std::prev(first);
  const Launched& all = *std::prev(last);
  ++done_.ranges;
  return energy_text({all.sum.joules - before.sum.joules, all.sum.low - before.sum.low,
                      all.sum.high - before.sum.high}) +
         fmt::format(R"(, "kernels": {})", all.kernels - before.kernels);
}

void TorchAnnotator::write_tail(std::ostream& out, const std::vector<PowerTrack>& tracks,
                                const std::string& version, bool first) const {
  const auto event = [&](const std::string& text) {
    out << (first ? "\n  " : ",\n  ") << text;
    first = false;
  };
  TorchClock clock = trace_.clock();
  const ClockMap& clocks = trace_.clocks();
  const std::string begin = microseconds(clock.file_time(trace_.begin()));
  const auto metadata = [&](const char* name, const std::string& args) {
    event(fmt::format(R"({{"ph": "M", "cat": "jouleprof", "name": "{}", "ts": {}, "pid": {}, )"
                      R"("tid": 0, "args": {{{}}}}})",
                      name, begin, kPid, args));
  };
  metadata("process_name", R"("name": "jouleprof")");
  metadata("process_labels", R"("labels": "power")");
  std::string methods;
  for (const Device& device : devices_) {
    if (!device.profile) continue;
    const auto& p = *device.profile;
    methods += fmt::format(
        R"--(, {}: {{"method": {}, "measured (J)": {:.6g}, "idle (J)": {:.6g}, )--"
        R"--("kernels (J)": {:.6g}, "gaps (J)": {:.6g}, "unattributed (J)": {:.6g}}})--",
        json_text(p.domain.device), json_text(p.method), p.measured.energy.joules(),
        p.idle.joules(), p.kernels.joules(), p.gaps.joules(), p.unattributed.joules());
  }
  metadata("jouleprof",
           fmt::format(R"("version": {}, "energy": "above idle; low and high bound 95 %"{})",
                       json_text(version), methods));
  for (const PowerTrack& track : tracks) {
    const std::string name = json_text(track.name);
    for (const auto& step : track.steps) {
      const RealTime at = clocks.to_real(step.begin);
      if (at > trace_.end() || clocks.to_real(step.end) < trace_.begin()) continue;
      event(fmt::format(R"({{"ph": "C", "cat": "jouleprof", "name": {}, "ts": {}, "pid": {}, )"
                        R"("tid": 0, "args": {{{}}}}})",
                        name, microseconds(clock.file_time(at)), kPid,
                        model::counter_members(step)));
    }
  }
}

Result<TorchAnnotation> TorchAnnotator::write(std::ostream& out,
                                              const std::vector<PowerTrack>& tracks,
                                              const std::string& version) {
  done_ = {};
  auto scanner = TraceScanner::open(trace_.path());
  if (!scanner) return forward_error(scanner);
  std::size_t work = 0;
  while (out) {
    auto piece = scanner->next();
    if (!piece) return forward_error(piece);
    const std::string_view text = scanner->text();
    if (*piece == TraceScanner::Piece::kEnd) {
      out << scanner->closing();
      break;
    }
    if (*piece == TraceScanner::Piece::kLast) {
      write_tail(out, tracks, version, !scanner->saw_events());
      continue;
    }
    std::optional<TorchEvent> event;
    std::string added;
    if (*piece == TraceScanner::Piece::kEvent) event = parse_torch_event(text);
    if (event && event->kind == TorchEvent::Kind::kWork) {
      if (work == trace_.launches().size()) {
        return fail(Errc::kCorrupt,
                    fmt::format("{} changed while it was read", trace_.path().string()));
      }
      added = kernel_args(trace_.launches()[work++]);
    } else if (event && event->kind == TorchEvent::Kind::kRange) {
      added = range_args(*event);
    }
    if (added.empty()) {
      out << text;
    } else {
      write_with(out, text, event->args, added);
    }
  }
  return done_;
}

}  // namespace jouleprof::importers
