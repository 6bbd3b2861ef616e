#include "analysis/processes/board_use.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "analysis/timeline/sensors/error_model.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

// A H100 of driver 580 kept its clocks and the power of a held board for 1 to 2.5 s after its last
// context.
constexpr Duration kAfterglow = 3s;
// The driver needs so long until it reports a new process's use; see GpuProcesses.
constexpr Duration kNew = 5s;
constexpr Duration kLeastReach = 1s;   // of a list, where the next one is missing
constexpr Duration kNoticed = 1200ms;  // after its end, that a process has ended
constexpr double kNoUse = 0.005;       // of a utilisation
// The board's own utilisation is a mean over the second before it is read.
constexpr Duration kGaugeLag = 1200ms;
constexpr Duration kGaugeLead = 300ms;
constexpr double kIdleCpu = 0.005;  // of a core
constexpr double kBusyCpu = 0.05;

// An unbroken series of looks that list one process.
struct Stay {
  std::size_t process = 0;
  HostTime begin{};  // it can have held a context from here on
  HostTime first{};  // first look that lists it
  HostTime last{};   // last look that lists it
  HostTime end{};    // it can have held a context up to here
  struct Report {
    HostTime since{};  // a mean over the time from here
    HostTime at{};
    double utilisation = 0;
  };
  std::vector<Report> reports;  // in order
  // The first look at which the driver gave others' utilisation and not this one's, though it was
  // not new.
  std::optional<HostTime> refused;
  bool known = false;  // a KnownContext
  bool left = false;   // a look no longer lists it
};

class Stays {
 public:
  explicit Stays(const BoardEvidence& evidence) : evidence_(evidence) {
    find_reach();
    const auto& looks = evidence_.looks;
    for (std::size_t k = 0; k < looks.size(); ++k) {
      std::map<std::size_t, Stay> next;
      for (const auto& use : looks[k].uses) add(next, k, use);
      if (looks[k].has_unidentified) add(next, k, {kUnidentified, std::nullopt});
      for (auto& [process, stay] : open_) {
        if (!next.contains(process)) close(stay, k);
      }
      open_ = std::move(next);
      const auto& uses = looks[k].uses;
      if (std::any_of(uses.begin(), uses.end(), [](const auto& u) { return u.utilisation; })) {
        asked_ = looks[k].at;
      }
    }
    for (auto& [process, stay] : open_) close(stay, looks.size());
    for (const auto& k : evidence_.known) {
      if (k.end > k.begin)
        all_.push_back({k.process, k.begin, k.begin, k.end, k.end, {}, {}, true, true});
    }
    std::sort(all_.begin(), all_.end(),
              [](const Stay& a, const Stay& b) { return a.begin < b.begin; });
  }

  const std::vector<Stay>& all() const { return all_; }

 private:
  // Beyond this time a look says nothing.
  void find_reach() {
    const auto& looks = evidence_.looks;
    std::vector<Duration> steps;
    for (std::size_t i = 1; i < looks.size(); ++i) steps.push_back(looks[i].at - looks[i - 1].at);
    if (steps.empty()) return;
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::nth_element(steps.begin(), middle, steps.end());
    reach_ = std::max(kLeastReach, *middle * 3 / 2);
  }

  HostTime start_of(std::size_t process) const {
    return process < evidence_.lives.size() ? evidence_.lives[process].start : HostTime{};
  }
  HostTime end_of(std::size_t process) const {
    if (process >= evidence_.lives.size()) return HostTime::max();
    return evidence_.lives[process].end.value_or(HostTime::max());
  }

  void add(std::map<std::size_t, Stay>& next, std::size_t k, const BoardLook::Use& use) {
    const auto& look = evidence_.looks[k];
    const auto found = open_.find(use.process);
    const bool goes_on = found != open_.end();
    auto [at, is_new] = next.try_emplace(use.process);
    Stay& stay = at->second;
    if (is_new && goes_on) stay = std::move(found->second);
    if (is_new && !goes_on) {
      const HostTime before =
          k > 0 ? std::max(evidence_.looks[k - 1].at, look.at - reach_) : look.at - reach_;
      stay.process = use.process;
      stay.begin = std::min(std::max(start_of(use.process), before), look.at);
      stay.first = look.at;
    }
    stay.last = look.at;
    if (use.utilisation) {
      const HostTime own = stay.reports.empty() ? stay.begin : stay.reports.back().at;
      const HostTime since = look.uses.size() == 1 ? own : std::max(own, std::min(asked_, look.at));
      // A zero of one that just began is no observation.
      const bool began = stay.first == look.at && *use.utilisation <= kNoUse;
      if (!began) stay.reports.push_back({since, look.at, *use.utilisation});
      return;
    }
    const bool of_others = std::any_of(look.uses.begin(), look.uses.end(), [&](const auto& other) {
      return other.process != use.process && other.utilisation;
    });
    if (of_others && look.at - stay.first >= kNew && !stay.refused) stay.refused = look.at;
  }

  void close(Stay& stay, std::size_t k) {
    const auto& looks = evidence_.looks;
    HostTime end = stay.last + reach_;
    if (k < looks.size()) end = std::min(end, looks[k].at);
    stay.left = k < looks.size() && looks[k].at <= stay.last + reach_;
    stay.end = std::max(std::min(end, end_of(stay.process)), stay.last);
    all_.push_back(std::move(stay));
  }

  const BoardEvidence& evidence_;
  HostTime asked_{};  // the last look with a utilisation
  Duration reach_ = kLeastReach;
  std::map<std::size_t, Stay> open_;
  std::vector<Stay> all_;
};

// How much a process worked in an interval, as far as the driver says.
struct Worked {
  enum Kind { kSome, kNone, kUnknown, kRefused } kind = kUnknown;
  double utilisation = 0;
};

Worked worked(const Stay& stay, HostTime begin, HostTime end) {
  if (stay.refused && (stay.reports.empty() || *stay.refused <= end + kNew)) {
    return {Worked::kRefused, 0};
  }
  const auto next = std::lower_bound(stay.reports.begin(), stay.reports.end(), end,
                                     [](const Stay::Report& r, HostTime t) { return r.at < t; });
  const auto of = [](double utilisation) {
    return utilisation > kNoUse ? Worked{Worked::kSome, utilisation} : Worked{Worked::kNone, 0};
  };
  if (next != stay.reports.end()) {
    const bool is_covered = begin >= next->since || next != stay.reports.begin();
    return is_covered ? of(next->utilisation) : Worked{};
  }
  // After its last report: what it did until then goes on, but one at rest may have begun to work.
  if (!stay.reports.empty() && stay.reports.back().utilisation > kNoUse) {
    return of(stay.reports.back().utilisation);
  }
  return {};
}

class Claims {
 public:
  Claims(const BoardEvidence& evidence, HostTime begin, HostTime end)
      : evidence_(evidence), begin_(begin), end_(end) {}

  // `brief`: processes that no look had the time to list. They count where no listed one is known
  // to have worked.
  std::vector<Claim> of(const std::vector<const Stay*>& present,
                        const std::vector<std::size_t>& brief) const {
    if (present.empty() && brief.empty()) return {};
    if (present.size() == 1 && brief.empty()) {
      const bool at_rest = worked(*present.front(), begin_, end_).kind == Worked::kNone;
      return {{{present.front()->process}, 1.0, at_rest}};
    }
    std::vector<Claim> some;
    std::vector<std::size_t> none;
    std::vector<std::size_t> unknown;
    double sum = 0;
    bool refused = false;
    for (const Stay* stay : present) {
      const Worked use = worked(*stay, begin_, end_);
      refused |= use.kind == Worked::kRefused;
      if (use.kind == Worked::kSome) {
        some.push_back({{stay->process}, use.utilisation, false});
        sum += use.utilisation;
      } else if (use.kind == Worked::kNone) {
        none.push_back(stay->process);
      } else {
        unknown.push_back(stay->process);
      }
    }
    if (some.empty()) unknown.insert(unknown.end(), brief.begin(), brief.end());
    if (unknown.empty() && some.empty()) return of_holders(none);
    if (unknown.empty()) return some;
    if (some.empty()) return {{narrowed(unknown), 1.0, false}};
    const auto board = board_utilisation();
    if (board && !refused) {
      const double left = *board - sum;
      if (left >= kErrors.utilisation) some.push_back({narrowed(unknown), left, false});
      return some;
    }
    for (const auto& claim : some) unknown.push_back(claim.candidates.front());
    return {{narrowed(unknown), 1.0, false}};
  }

 private:
  std::vector<Claim> of_holders(const std::vector<std::size_t>& processes) const {
    if (board_utilisation().value_or(0) >= kErrors.utilisation)
      return {{narrowed(processes), 1.0, false}};
    std::vector<Claim> out;
    for (const std::size_t p : processes) out.push_back({{p}, 1.0, true});
    return out;
  }

  std::vector<std::size_t> narrowed(std::vector<std::size_t> processes) const {
    std::sort(processes.begin(), processes.end());
    if (!evidence_.cpu_share || processes.size() < 2) return processes;
    std::vector<std::size_t> busy;
    bool any = false;
    for (const std::size_t p : processes) {
      const auto share = p == kUnidentified ? std::nullopt : evidence_.cpu_share(p, begin_, end_);
      if (share && *share < kIdleCpu) continue;
      any |= share && *share > kBusyCpu;
      busy.push_back(p);
    }
    return any ? busy : processes;
  }

  std::optional<double> board_utilisation() const {
    const auto& readings = evidence_.utilisation;
    auto at = std::lower_bound(readings.begin(), readings.end(), begin_ + kGaugeLead,
                               [](const auto& r, HostTime t) { return r.at < t; });
    double sum = 0;
    int count = 0;
    for (; at != readings.end() && at->at <= end_ + kGaugeLag; ++at, ++count) sum += at->value;
    return count > 0 ? std::optional(sum / count) : std::nullopt;
  }

  const BoardEvidence& evidence_;
  HostTime begin_, end_;
};

// Processes that no look lists, each from the last look that it outlived to its end: what it did on
// the board by then, that look would show.
std::vector<KnownContext> unlisted_spans(const BoardEvidence& evidence) {
  std::vector<bool> is_listed(evidence.lives.size());
  for (const auto& look : evidence.looks) {
    for (const auto& use : look.uses) is_listed[use.process] = true;
  }
  std::vector<KnownContext> out;
  for (std::size_t p = 0; p < evidence.lives.size(); ++p) {
    const auto& life = evidence.lives[p];
    if (!life.may_be_unlisted || !life.end || is_listed[p]) continue;
    const auto next =
        std::lower_bound(evidence.looks.begin(), evidence.looks.end(), *life.end - kNoticed,
                         [](const BoardLook& l, HostTime t) { return l.at < t; });
    const HostTime looked = next == evidence.looks.begin() ? life.start : std::prev(next)->at;
    out.push_back({p, std::max(life.start, looked), *life.end});
  }
  return out;
}

}  // namespace

std::vector<UseSlice> board_use(const BoardEvidence& evidence, HostTime begin, HostTime end) {
  std::vector<UseSlice> out;
  if (end <= begin) return out;
  const Stays stays(evidence);
  const auto unlisted = unlisted_spans(evidence);
  std::vector<HostTime> edges{begin, end};
  const auto edge = [&](HostTime t) {
    if (t > begin && t < end) edges.push_back(t);
  };
  for (const auto& look : evidence.looks) edge(look.at);
  for (const auto& stay : stays.all()) {
    edge(stay.begin);
    edge(stay.end);
    if (stay.left) edge(stay.end + kAfterglow);
  }
  for (const auto& span : unlisted) {
    edge(span.begin);
    edge(span.end);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

  auto coming = stays.all().begin();
  std::vector<const Stay*> open;  // not ended for longer than the afterglow
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    UseSlice& slice = out.emplace_back(UseSlice{edges[i], edges[i + 1], {}, {}});
    for (; coming != stays.all().end() && coming->begin <= slice.begin; ++coming)
      open.push_back(&*coming);
    std::erase_if(open, [&](const Stay* s) {
      return s->end + (s->left ? kAfterglow : Duration{}) <= slice.begin;
    });
    // A process once: a known context says no more of its use than the lists do.
    std::map<std::size_t, const Stay*> present;
    HostTime latest{};
    for (const Stay* s : open) {
      latest = std::max(latest, std::min(s->end, slice.begin));
      if (s->end <= slice.begin) continue;
      const auto [at, is_new] = present.try_emplace(s->process, s);
      if (!is_new && at->second->known) at->second = s;
    }
    if (present.empty()) {
      for (const Stay* s : open) {
        if (s->end == latest) present.try_emplace(s->process, s);
      }
    }
    std::vector<const Stay*> stays_here;
    for (const auto& [process, stay] : present) {
      slice.holders.push_back(process);
      stays_here.push_back(stay);
    }
    const Claims claims(evidence, slice.begin, slice.end);
    std::vector<std::size_t> brief;
    for (const auto& span : unlisted) {
      if (span.begin <= slice.begin && span.end >= slice.end) brief.push_back(span.process);
    }
    slice.claims = claims.of(stays_here, brief);
    const auto before = out.rbegin() + 1;
    if (before != out.rend() && before->claims == slice.claims &&
        before->holders == slice.holders) {
      before->end = slice.end;
      out.pop_back();
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
