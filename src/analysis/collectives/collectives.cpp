#include "analysis/collectives/collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/levels/domains.h"
#include "analysis/processes/apportion.h"
#include "base/median.h"
#include "model/activity/activity_codec.h"
#include "model/activity/collective.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

// Clocks of ranks on one host agree to microseconds.
constexpr Duration kClockError = 100us;
// Data arrive at all ranks at about the same time; calls of different operations end at any time.
constexpr Duration kEndsClose = 1ms;

Error damaged(const model::Trace& trace) {
  return {Errc::kCorrupt, fmt::format("the recorded collectives of process {} ({}) are damaged",
                                      trace.pid, trace.program)};
}

std::string name_of(const model::Trace& trace) {
  return trace.rank.global ? fmt::format("rank {}", *trace.rank.global)
                           : fmt::format("pid {}", trace.pid);
}

// The program's own re-runs of layers are no work of its.
bool is_replayed(const model::Trace& trace, HostTime t) {
  return std::ranges::any_of(trace.chunks, [t](const auto& chunk) {
    return chunk.kind == model::ChunkKind::kReplay && chunk.begin <= t && t < chunk.end;
  });
}

using Sequence = std::vector<CollectiveCall*>;  // of one communicator on one rank

class Matcher {
 public:
  Matcher(const model::Recording& recording, CollectiveCalls& out)
      : recording_(recording), out_(out) {}

  void match() {
    name_missing();
    if (out_.ranks.size() < 2) {
      problem(
          "collectives of only one rank were traced: its waiting for others is in its transfer "
          "time");
      return;
    }
    if (!is_one_world()) return;
    std::vector<std::vector<Sequence>> streams;  // by rank
    for (auto& rank : out_.ranks) {
      streams.push_back(sequences_of(rank, recording_.traces[rank.trace]));
    }
    for (std::size_t r = 1; r < streams.size(); ++r) {
      if (streams[r].size() == streams[0].size()) continue;
      problem(fmt::format("{} ran collectives on {} streams, {} on {}: they are not matched",
                          out_.ranks[0].name, streams[0].size(), out_.ranks[r].name,
                          streams[r].size()));
      return;
    }
    for (std::size_t s = 0; s < streams[0].size(); ++s) {
      std::vector<Sequence> one;
      for (auto& of_rank : streams) one.push_back(std::move(of_rank[s]));
      match_stream(one);
    }
    if (spreads_.empty()) return;
    out_.end_spread = upper_median(std::move(spreads_));
  }

 private:
  void problem(std::string text) { out_.problems.push_back(std::move(text)); }

  const model::Trace& trace_of(std::size_t rank) const {
    return recording_.traces[out_.ranks[rank].trace];
  }
  const std::string& kernel_of(std::size_t rank, const CollectiveCall& call) const {
    return trace_of(rank).classes[call.kernel_class].name;
  }

  // Ranks of the job that this recording has no collectives of.
  void name_missing() {
    std::uint32_t world = 0;
    std::set<std::uint32_t> present;
    for (std::size_t r = 0; r < out_.ranks.size(); ++r) {
      const auto& rank = trace_of(r).rank;
      world = std::max(world, rank.world_size.value_or(0));
      if (rank.global) present.insert(*rank.global);
    }
    if (present.empty()) return;
    std::vector<std::uint32_t> missing;
    for (std::uint32_t r = 0; r < std::min(world, kMostRanks); ++r) {
      if (!present.contains(r)) missing.push_back(r);
    }
    if (missing.empty()) return;
    constexpr std::size_t kNamed = 8;
    const std::size_t named = std::min(missing.size(), kNamed);
    problem(fmt::format(
        "no collectives of rank {}{} of {} were traced here: time in which others waited for {} "
        "counts as transfer",
        fmt::join(missing.begin(), missing.begin() + static_cast<std::ptrdiff_t>(named), ", "),
        missing.size() > named ? fmt::format(" and {} more", missing.size() - named) : "", world,
        missing.size() > 1 ? "them" : "it"));
  }

  bool is_one_world() {
    std::set<std::uint32_t> seen;
    for (std::size_t r = 0; r < out_.ranks.size(); ++r) {
      const auto& rank = trace_of(r).rank;
      const bool again = r > 0 && out_.ranks[r].trace == out_.ranks[r - 1].trace;
      if (!rank.global || again || seen.insert(*rank.global).second) continue;
      problem(
          fmt::format("several traced processes are rank {}, of several jobs or attempts: "
                      "collectives are not matched",
                      *rank.global));
      return false;
    }
    return true;
  }

  // `one`: by rank.
  void match_stream(const std::vector<Sequence>& one) {
    std::size_t common = SIZE_MAX;
    for (const auto& sequence : one) common = std::min(common, sequence.size());
    std::vector<CollectiveCall::Match> matches;
    std::vector<Duration> spreads;
    Duration longest{};
    for (std::size_t n = 0; n < common; ++n) {
      CollectiveCall::Match match{HostTime::min(), 0};
      HostTime first_end = HostTime::max();
      HostTime last_end = HostTime::min();
      for (std::uint32_t r = 0; r < one.size(); ++r) {
        const CollectiveCall& call = *one[r][n];
        if (kernel_of(r, call) != kernel_of(0, *one[0][n])) {
          problem(fmt::format("collective {} is {} on {} and {} on {}: its stream is not matched",
                              n + 1, kind_of(0, *one[0][n]), out_.ranks[0].name, kind_of(r, call),
                              out_.ranks[r].name));
          return;
        }
        if (call.begin > match.latest) match = {call.begin, r};
        first_end = std::min(first_end, call.end);
        last_end = std::max(last_end, call.end);
      }
      if (match.latest > first_end + kClockError) {
        problem(fmt::format(
            "the collectives of a stream are not one operation each: by its order, number {} of {} "
            "began after it had ended on another rank. Groups of ranks, or missing records; they "
            "are not matched",
            n + 1, out_.ranks[match.last].name));
        return;
      }
      matches.push_back(match);
      spreads.push_back(last_end - first_end);
      longest = std::max(longest, first_end - match.latest);
    }
    if (!spreads.empty()) {
      if (upper_median(spreads) > std::max(kEndsClose, longest / 2)) {
        problem(
            "the collectives of a stream end at different times on the ranks, as if they were "
            "of several groups: they are not matched");
        return;
      }
    }
    accept(one, matches);
    spreads_.insert(spreads_.end(), spreads.begin(), spreads.end());
    for (std::size_t r = 0; r < one.size(); ++r) {
      if (one[r].size() == common) continue;
      problem(
          fmt::format("{} ran {} collectives that another rank did not end: they are not "
                      "matched",
                      out_.ranks[r].name, one[r].size() - common));
    }
  }

  std::string kind_of(std::size_t rank, const CollectiveCall& call) const {
    return std::string(model::collective_kind(kernel_of(rank, call)));
  }

  static void accept(const std::vector<Sequence>& one,
                     const std::vector<CollectiveCall::Match>& matches) {
    for (const auto& sequence : one) {
      for (std::size_t n = 0; n < matches.size(); ++n) sequence[n]->match = matches[n];
    }
  }

  static constexpr std::uint32_t kMostRanks = 100'000;

  const model::Recording& recording_;
  CollectiveCalls& out_;
  std::vector<Duration> spreads_;
};

// False: damaged.
bool add_calls(const model::Trace& trace, const model::ActivityChunk& chunk, CallingRank& rank) {
  model::ActivityDecoder decoder(chunk.bytes);
  for (model::EventEntry e; decoder.next(e);) {
    if (e.kernel_class >= trace.classes.size()) return false;
    const HostTime begin = chunk.begin + Duration{e.start_nanoseconds};
    if (is_replayed(trace, begin)) continue;
    const auto length = Duration{static_cast<std::int64_t>(e.duration_nanoseconds)};
    rank.calls.push_back({begin, begin + length, e.kernel_class, e.stream, {}});
  }
  return decoder.ok();
}

}  // namespace

Result<CollectiveCalls> collective_calls(const model::Recording& recording) {
  CollectiveCalls out;
  for (std::uint32_t t = 0; t < recording.traces.size(); ++t) {
    const auto& trace = recording.traces[t];
    std::map<std::uint32_t, CallingRank> devices;
    for (const auto& chunk : trace.chunks) {
      if (chunk.kind != model::ChunkKind::kCollectives) continue;
      const auto domain = std::ranges::find_if(recording.domains, [&](const auto& d) {
        return d.kind == model::DomainKind::kGpu && is_on(recording, trace, chunk, d);
      });
      if (domain == recording.domains.end()) continue;
      const auto [place, is_new] = devices.try_emplace(chunk.device);
      CallingRank& rank = place->second;
      if (is_new) rank = {t, chunk.device, domain->id, name_of(trace), {}};
      if (!add_calls(trace, chunk, rank)) return tl::unexpected(damaged(trace));
    }
    for (auto& [device, rank] : devices) {
      if (rank.calls.empty()) continue;
      if (devices.size() > 1) rank.name += fmt::format(", GPU {}", trace.devices[device].ordinal);
      std::ranges::stable_sort(rank.calls, {}, &CollectiveCall::begin);
      out.ranks.push_back(std::move(rank));
    }
  }
  const auto number = [&](const CallingRank& r) {
    const auto& trace = recording.traces[r.trace];
    return std::pair(trace.rank.global.value_or(UINT32_MAX), trace.pid);
  };
  std::ranges::stable_sort(out.ranks,
                           [&](const auto& a, const auto& b) { return number(a) < number(b); });
  if (!out.ranks.empty()) Matcher(recording, out).match();
  return out;
}

namespace {

using model::CollectiveTimes;
using model::Measurement;

bool is_collective(const model::ActivityRow& row) {
  return row.kernel && row.kernel->kind == model::ActivityKind::kKernel &&
         !model::collective_kind(row.kernel->name).empty();
}

// The calls of one kernel signature on one rank.
struct OfKernel {
  CollectiveTimes times;
  std::map<std::uint32_t, Duration> waited_for;  // by rank
};

class Builder {
 public:
  Builder(const model::Recording& recording, std::span<const model::ActivityProfile> activity,
          CollectiveCalls calls)
      : recording_(recording), activity_(activity), calls_(std::move(calls)) {}

  model::CollectiveProfile build() {
    for (const auto& rank : calls_.ranks) {
      const auto& trace = recording_.traces[rank.trace];
      auto& row = out_.ranks.emplace_back();
      row.trace = rank.trace;
      row.pid = trace.pid;
      row.rank = trace.rank;
      row.domain = rank.domain;
    }
    for (std::size_t r = 0; r < calls_.ranks.size(); ++r) add_rank(r);
    out_.end_spread = calls_.end_spread;
    out_.problems = std::move(calls_.problems);
    std::erase_if(out_.ranks, [](const auto& rank) { return rank.calls == 0 && rank.last == 0; });
    return std::move(out_);
  }

 private:
  // The kernels of a rank on its GPU, as that was attributed.
  struct Attributed {
    const model::ActivityProfile* profile = nullptr;
    const model::ActivityProcess* process = nullptr;
  };

  Attributed attributed(const CallingRank& rank) const {
    Attributed found;
    for (const auto& profile : activity_) {
      if (profile.domain.id != rank.domain) continue;
      for (const auto& process : profile.by_process) {
        if (process.trace == rank.trace) return {&profile, &process};
      }
      if (found.profile == nullptr) found.profile = &profile;
    }
    return found;
  }

  void add_rank(std::size_t r) {
    const CallingRank& rank = calls_.ranks[r];
    const auto& classes = recording_.traces[rank.trace].classes;
    const Attributed found = attributed(rank);
    for (const auto& d : recording_.domains) {
      if (d.id == rank.domain) out_.ranks[r].device = d.device;
    }
    // Several numbers of one trace may be one signature.
    std::map<std::pair<std::string_view, std::string>, OfKernel> kernels;
    for (const auto& call : rank.calls) {
      if (found.profile != nullptr &&
          (call.begin < found.profile->begin || call.begin >= found.profile->end)) {
        continue;
      }
      const auto& key = classes[call.kernel_class];
      OfKernel& sum = kernels[{model::collective_kind(key.name), key_of(key)}];
      add_call(call, static_cast<std::uint32_t>(r), sum);
    }
    for (auto& [key, kernel] : kernels) {
      if (found.process != nullptr) charge(found, key.second, kernel);
      add_kernel(r, std::string(key.first), kernel);
    }
  }

  static std::string key_of(const model::KernelClass& key) {
    std::string text = key.name;
    for (const auto& shape : {key.grid, key.block}) {
      for (const auto n : shape) text += ' ' + std::to_string(n);
    }
    return text;
  }

  void add_call(const CollectiveCall& call, std::uint32_t rank, OfKernel& sum) {
    auto& times = sum.times;
    ++times.calls;
    if (!call.match) {
      times.unsplit += call.end - call.begin;
      return;
    }
    ++times.matched;
    const Duration waited = call.waiting();
    times.waiting += waited;
    times.transfer += call.end - call.begin - waited;
    if (call.match->last == rank) {
      ++out_.ranks[rank].last;
    } else {
      sum.waited_for[call.match->last] += waited;
    }
  }

  // Divides the energy of a signature on a rank by time.
  void charge(const Attributed& found, const std::string& key, OfKernel& kernel) {
    const auto used = std::ranges::find_if(found.process->by_kernel, [&](const auto& use) {
      if (use.kernel >= found.profile->by_kernel.size()) return false;
      const auto& row = found.profile->by_kernel[use.kernel];
      return row.kernel && row.energy && key_of(*row.kernel) == key;
    });
    if (used == found.process->by_kernel.end()) return;
    const auto& row = found.profile->by_kernel[used->kernel];
    auto& times = kernel.times;
    const double timed = seconds(times.waiting + times.transfer + times.unsplit);
    // Launches within CUDA graphs have no times of their own.
    const double untimed = std::max(seconds(used->busy) - timed, 0.0);
    const double waiting = seconds(times.waiting);
    const double transfer = seconds(times.transfer);
    const double unsplit = seconds(times.unsplit) + untimed;
    if (used->launches > times.calls) times.calls = used->launches;
    if (timed == 0) return;
    const std::vector<double> weights{waiting, transfer, unsplit};
    const auto parts = apportion(used->energy, weights);
    if (parts.empty()) return;
    const double joules = row.energy->energy.joules();
    const auto relative = [&](Energy error) { return joules > 0 ? error.joules() / joules : 0.0; };
    const double per_second = used->energy.joules() / (waiting + transfer + unsplit);
    const double shift = per_second * seconds(calls_.end_spread.value_or(Duration{})) *
                         static_cast<double>(times.matched);
    const auto part = [&](Energy energy, double of_clocks) {
      Measurement m = *row.energy;
      m.provenance = model::combine(m.provenance, model::Provenance::kEstimated);
      m.method = "regression, divided by time";
      m.energy = energy;
      const double own = energy.joules();
      m.repeatability = Energy::joules(relative(row.energy->repeatability) * own + of_clocks);
      m.error = Energy::joules(relative(row.energy->error) * own + of_clocks);
      return m;
    };
    times.waiting_energy = part(parts[0], shift);
    times.transfer_energy = part(parts[1], shift);
    times.unsplit_energy = part(parts[2], 0);
  }

  // Errors add linearly: the regression's are common to all kernels.
  static void add(std::optional<Measurement>& sum, const std::optional<Measurement>& more) {
    if (!more) return;
    if (!sum) {
      sum = more;
      return;
    }
    sum->energy += more->energy;
    sum->error += more->error;
    sum->repeatability += more->repeatability;
    sum->provenance = model::combine(sum->provenance, more->provenance);
  }

  static void add(CollectiveTimes& sum, const CollectiveTimes& more) {
    sum.calls += more.calls;
    sum.matched += more.matched;
    sum.transfer += more.transfer;
    sum.waiting += more.waiting;
    sum.unsplit += more.unsplit;
    add(sum.transfer_energy, more.transfer_energy);
    add(sum.waiting_energy, more.waiting_energy);
    add(sum.unsplit_energy, more.unsplit_energy);
  }

  void add_kernel(std::size_t r, std::string kind, const OfKernel& kernel) {
    auto& row = out_.ranks[r];
    add(row, kernel.times);
    if (row.kinds.empty() || row.kinds.back().name != kind) {
      row.kinds.emplace_back().name = std::move(kind);
    }
    add(row.kinds.back(), kernel.times);
    std::vector<double> weights;
    for (const auto& [last, waited] : kernel.waited_for) {
      out_.ranks[last].waited_for += waited;
      weights.push_back(seconds(waited));
    }
    if (!kernel.times.waiting_energy) return;
    const auto parts = apportion(kernel.times.waiting_energy->energy, weights);
    std::size_t i = 0;
    for (const auto& [last, waited] : kernel.waited_for) {
      auto& sum = out_.ranks[last].waited_for_energy;
      if (i < parts.size()) sum = sum.value_or(Energy{}) + parts[i++];
    }
  }

  const model::Recording& recording_;
  std::span<const model::ActivityProfile> activity_;
  CollectiveCalls calls_;
  model::CollectiveProfile out_;
};

}  // namespace

Result<model::CollectiveProfile> collectives_of(const model::Recording& recording,
                                                std::span<const model::ActivityProfile> activity) {
  auto calls = collective_calls(recording);
  if (!calls) return forward_error(calls);
  const bool any_kernel = std::ranges::any_of(activity, [](const auto& profile) {
    return std::ranges::any_of(profile.by_kernel, is_collective);
  });
  if (calls->ranks.empty() && any_kernel) {
    calls->problems.emplace_back(
        "the recording has no times of its collectives: it is older than version 10 of the format, "
        "or they ran within CUDA graphs");
  }
  return Builder(recording, activity, std::move(*calls)).build();
}

}  // namespace jouleprof::analysis
