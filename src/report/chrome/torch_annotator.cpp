#include "report/chrome/torch_annotator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "report/chrome/chrome_trace.h"

namespace jouleprof::report {
namespace {

// The viewer shows it as a separate process: Linux has no process identifier as high.
constexpr int kPid = 2'000'000'000;

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

TorchAnnotator::TorchAnnotator(const model::ProfiledTrace& trace,
                               const std::vector<model::ActivityProfile>& profiles,
                               const std::vector<CounterTrack>& tracks, std::string version)
    : trace_(trace), tracks_(tracks), version_(std::move(version)) {
  std::size_t most = 0;
  for (const auto& launch : trace.launches) most = std::max<std::size_t>(most, launch.device + 1);
  devices_.resize(most);
  for (std::size_t i = 0; i < std::min(most, trace.domains.size()); ++i) {
    const auto profile = std::ranges::find_if(
        profiles, [&](const auto& p) { return p.domain.id == trace.domains[i]; });
    if (profile == profiles.end()) continue;
    Device& device = devices_[i];
    device.profile = &*profile;
    const KernelRows known(*profile);
    for (const auto& kernel : trace.trace.classes) device.rows.push_back(known.row_of(kernel));
    device.totals.resize(profile->by_kernel.size());
  }
  for (const auto& launch : trace.launches) {
    Device& device = devices_[launch.device];
    if (!row_of(launch)) continue;
    device.totals[device.rows[launch.kernel_class]] += launch.duration;
  }
  sum_by_call();
}

const model::ActivityRow* TorchAnnotator::row_of(const Launch& launch) const {
  const Device& device = devices_[launch.device];
  if (!device.profile) return nullptr;
  if (launch.begin < device.profile->begin || launch.begin >= device.profile->end) return nullptr;
  const std::uint32_t row = device.rows[launch.kernel_class];
  return row == model::kNone ? nullptr : &device.profile->by_kernel[row];
}

std::optional<JoulesRange> TorchAnnotator::energy_of(const Launch& launch) const {
  const auto* row = row_of(launch);
  if (!row || !row->energy || launch.duration <= Duration::zero()) return std::nullopt;
  const Device& device = devices_[launch.device];
  return launch_energy(*row, launch.duration, device.totals[device.rows[launch.kernel_class]]);
}

void TorchAnnotator::sum_by_call() {
  const auto& calls = trace_.calls;
  std::vector<Launched> by_call(calls.size());
  for (const auto& launch : trace_.launches) {
    if (launch.launched == model::kNone) continue;
    const auto energy = energy_of(launch);
    if (!energy) continue;
    Launched& sum = by_call[launch.launched];
    sum.sum += *energy;
    ++sum.kernels;
  }
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (by_call[i].kernels == 0) continue;
    by_call[i].ts = calls[i].ts;
    if (calls[i].thread >= threads_.size()) threads_.resize(calls[i].thread + 1);
    threads_[calls[i].thread].push_back(by_call[i]);
  }
  for (auto& thread : threads_) {
    std::ranges::sort(thread, {}, &Launched::ts);
    Launched sum;
    for (Launched& l : thread) {
      l.sum = sum.sum += l.sum;
      l.kernels = sum.kernels += l.kernels;
    }
  }
}

std::string TorchAnnotator::launch_args(const Launch& launch) {
  const auto energy = energy_of(launch);
  if (!energy) {
    ++done_.without_energy;
    return {};
  }
  const auto* row = row_of(launch);
  if (row->resolvable) ++done_.kernels;
  std::string text = chrome_energy(*energy);
  if (row->resolvable && row->busy > Duration::zero()) {
    text += fmt::format(R"--(, "power above idle (W)": {:.6g})--",
                        row->energy->energy.joules() / seconds(row->busy));
  }
  if (!row->resolvable) {
    text += fmt::format(
        R"(, "energy": {})",
        chrome_string(row->reason.empty() ? "not resolvable" : "not resolvable: " + row->reason));
  }
  return text.starts_with(", ") ? text.substr(2) : text;
}

std::string TorchAnnotator::range_args(const model::TracePiece& range) {
  if (!range.thread || *range.thread >= threads_.size()) return {};
  const auto& thread = threads_[*range.thread];
  const auto first =
      std::ranges::partition_point(thread, [&](const Launched& l) { return l.ts < range.ts; });
  const auto last = std::partition_point(
      first, thread.end(), [&](const Launched& l) { return l.ts <= range.ts + range.duration; });
  if (first == last) return {};
  const Launched before = first == thread.begin() ? Launched{} : *std::prev(first);
  const Launched& all = *std::prev(last);
  ++done_.ranges;
  const std::string energy = chrome_energy(all.sum - before.sum);
  return fmt::format(R"({}{}"kernels": {})", energy, energy.empty() ? "" : ", ",
                     all.kernels - before.kernels);
}

void TorchAnnotator::write_tail(std::ostream& out, bool first) const {
  const auto event = [&](const std::string& text) {
    out << (first ? "\n  " : ",\n  ") << text;
    first = false;
  };
  const std::string begin = chrome_time(trace_.begin - trace_.base);
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
        R"--(, {}: {{"method": {}, "provenance": "{}", "total (J)": {:.6g}, "idle (J)": {:.6g}, )--"
        R"--("kernels (J)": {:.6g}, "idle between launches (J)": {:.6g}, "others (J)": {:.6g}, "unattributed (J)": {:.6g}}})--",
        chrome_string(p.domain.device), chrome_string(p.method), to_string(p.measured.provenance),
        p.measured.energy.joules(), p.idle.joules(), p.kernels.joules(), p.gaps.joules(),
        p.others.joules(), p.unattributed.joules());
  }
  metadata("jouleprof",
           fmt::format(R"("version": {}, "energy": "above idle; low and high bound 95 %"{})",
                       chrome_string(version_), methods));
  for (const CounterTrack& track : tracks_) {
    for (const auto& step : track.steps) {
      const RealTime at = trace_.clocks.to_real(step.begin);
      if (at > trace_.end || trace_.clocks.to_real(step.end) < trace_.begin) continue;
      for (const auto& members : chrome_power(track.name, step)) {
        event(fmt::format(R"({{"ph": "C", "cat": "jouleprof", "ts": {}, "pid": {}, "tid": 0, {}}})",
                          chrome_time(at - trace_.base), kPid, members));
      }
    }
  }
}

void TorchAnnotator::write(std::ostream& out, const model::TracePiece& piece) {
  using Kind = model::TracePiece::Kind;
  if (piece.kind == Kind::kLast) return write_tail(out, !piece.any_event);
  std::string added;
  if (piece.kind == Kind::kLaunch) added = launch_args(trace_.launches[piece.launch]);
  if (piece.kind == Kind::kRange) added = range_args(piece);
  if (added.empty()) {
    out << piece.text;
  } else {
    write_with(out, piece.text, piece.args, added);
  }
}

}  // namespace jouleprof::report
