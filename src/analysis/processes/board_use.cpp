#include "analysis/processes/board_use.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <set>

#include "analysis/timeline/sensors/error_model.h"
#include "base/median.h"

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
constexpr double kSkipped = 2.5;       // steps between two lists: some are missing
// Of lists: what was listed around it need not have gone on. A driver that makes contexts answers
// nothing for seconds (H200, 23 Nov: 3.2 s).
constexpr Duration kLongGap = 4s;
constexpr double kLeastPart = 0.01;  // of a time: energy in less is within every sensor's error
constexpr int kBusyLooks = 4;        // with empty lists: these hide who works
constexpr double kNoUse = 0.005;     // of a utilisation
// The board's own utilisation is a mean over the second before it is read.
constexpr Duration kGaugeLag = 1200ms;
constexpr Duration kGaugeLead = 300ms;
constexpr double kIdleCpu = 0.005;  // of a core
constexpr double kBusyCpu = 0.02;
// Of the CPU time of one that shows work, what one that only holds a context uses at most: a
// notebook's messages, say.
constexpr double kLittleCpu = 0.125;

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
  bool known = false;                // a KnownContext
  bool left = false;                 // a look no longer lists it
  int looks = 0;                     // that list it
  std::set<std::size_t> parts = {};  // of a divided board; empty: unknown

  // One that could not be identified, because it had ended. One that is hidden is listed again and
  // again, from the first look on.
  bool is_brief(const BoardEvidence& evidence) const {
    return evidence.parts.empty() && looks <= 2 && begin > evidence.looks.front().at;
  }
  bool may_be_in(std::size_t part) const { return parts.empty() || parts.contains(part); }
};

class Stays {
 public:
  // `end`: of the time that is asked for.
  Stays(const BoardEvidence& evidence, HostTime end) : evidence_(evidence), end_(end) {
    find_reach();
    find_hidden();
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
      if (std::ranges::any_of(uses, [](const auto& u) { return u.utilisation.has_value(); })) {
        asked_ = looks[k].at;
      }
    }
    for (auto& [process, stay] : open_) close(stay, looks.size());
    for (const auto& k : evidence_.known) {
      if (k.end > k.begin)
        all_.push_back({k.process, k.begin, k.begin, k.end, k.end, {}, {}, true, true});
    }
    std::ranges::sort(all_, {}, &Stay::begin);
  }

  const std::vector<Stay>& all() const { return all_; }
  // No list names a process, and the board works: this namespace hides them, or the driver does.
  bool hides_all() const { return hides_all_; }
  // The time between the lists around the interval where one or more are missing between them;
  // else 0.
  Duration gap(HostTime begin, HostTime end) const {
    const auto before = last_until(begin);
    const auto after = first_from(end);
    const bool is_between = before != evidence_.looks.end() && after != evidence_.looks.end();
    const Duration length = is_between ? after->at - before->at : Duration{};
    return length > std::max(kNoticed, skipped_) ? length : Duration{};
  }
  // No list was read for so long before or after the interval that a process of any owner can have
  // held the board in it.
  bool is_blind(HostTime begin, HostTime end) const {
    const auto none = evidence_.looks.end();
    const auto before = last_until(begin);
    const auto after = first_from(end);
    if (before == none && after == none) return true;
    return (after != none ? after->at : end_) - (before != none ? before->at : begin) > 2 * reach_;
  }

 private:
  using Look = std::vector<BoardLook>::const_iterator;  // end: there is none
  Look last_until(HostTime t) const {
    const auto& looks = evidence_.looks;
    const auto after = std::ranges::upper_bound(looks, t, {}, &BoardLook::at);
    return after == looks.begin() ? looks.end() : std::prev(after);
  }
  Look first_from(HostTime t) const {
    return std::ranges::lower_bound(evidence_.looks, t, {}, &BoardLook::at);
  }

  // Beyond this time a look says nothing.
  void find_reach() {
    const auto& looks = evidence_.looks;
    std::vector<Duration> steps;
    for (std::size_t i = 1; i < looks.size(); ++i) steps.push_back(looks[i].at - looks[i - 1].at);
    if (steps.empty()) return;
    const Duration middle = upper_median(std::move(steps));
    reach_ = std::max(kLeastReach, middle * 3 / 2);
    skipped_ = std::chrono::duration_cast<Duration>(kSkipped * middle);
  }

  // Processes that begin and end between two lists keep a board busy, too: but not at many.
  void find_hidden() {
    if (!evidence_.known.empty()) return;  // these worked
    int busy = 0;
    for (const auto& look : evidence_.looks) {
      if (!look.uses.empty() || look.has_unidentified) return;
      const auto reading =
          std::lower_bound(evidence_.utilisation.begin(), evidence_.utilisation.end(), look.at,
                           [](const auto& r, HostTime t) { return r.at < t; });
      if (reading != evidence_.utilisation.end() && reading->at <= look.at + kGaugeLag &&
          reading->value >= kErrors.utilisation)
        ++busy;
    }
    hides_all_ = busy >= kBusyLooks;
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
    if (is_new) ++stay.looks;
    stay.parts.insert(use.parts.begin(), use.parts.end());
    if (use.utilisation) {
      const HostTime own = stay.reports.empty() ? stay.begin : stay.reports.back().at;
      const HostTime since = look.uses.size() == 1 ? own : std::max(own, std::min(asked_, look.at));
      // A zero of one that just began is no observation.
      const bool began = stay.first == look.at && *use.utilisation <= kNoUse;
      if (!began) stay.reports.push_back({since, look.at, *use.utilisation});
      return;
    }
    const bool of_others = std::ranges::any_of(look.uses, [&](const auto& other) {
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
  HostTime end_;
  HostTime asked_{};  // the last look with a utilisation
  Duration reach_ = kLeastReach;
  Duration skipped_{};
  bool hides_all_ = false;
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
  const auto next = std::ranges::lower_bound(stay.reports, end, {}, &Stay::Report::at);
  const auto of = [](double utilisation) {
    return utilisation > kNoUse ? Worked{Worked::kSome, utilisation} : Worked{Worked::kNone, 0};
  };
  if (next != stay.reports.end()) {
    const bool is_covered = begin >= next->since || next != stay.reports.begin();
    return is_covered ? of(next->utilisation) : Worked{};
  }
  // After its last report: what it did until then goes on, but one at rest may soon begin to work.
  if (stay.reports.empty()) return {};
  const auto& last = stay.reports.back();
  return last.utilisation > kNoUse || end <= last.at + kNoticed ? of(last.utilisation) : Worked{};
}

// The activity of one part over time.
class PartActivity {
 public:
  PartActivity(const BoardEvidence& evidence, std::size_t number, const std::vector<Stay>& stays) {
    const auto& activity = evidence.parts[number].activity;
    std::vector<const Stay*> open;
    auto coming = stays.begin();
    for (std::size_t i = 0; i < activity.size(); ++i) {
      const auto since =
          i > 0 ? std::optional(activity[i - 1].at) : look_before(evidence.looks, activity[i].at);
      if (!since) continue;
      Span span{*since, activity[i].at, activity[i].value, false};
      if (span.end <= span.begin || span.end - span.begin > kLongestActivity) continue;
      for (; coming != stays.end() && coming->begin < span.end; ++coming) {
        if (coming->may_be_in(number) && coming->process != kUnidentified) open.push_back(&*coming);
      }
      std::erase_if(open, [&](const Stay* s) { return s->end <= span.begin; });
      // The part worked while it had processes, and the mean is over all of the time.
      Duration inhabited{};
      HostTime up_to = span.begin;
      for (const Stay* s : open) {  // in order of their begin
        const HostTime from = std::max(up_to, s->begin), to = std::min(s->end, span.end);
        if (to > from) inhabited += to - from, up_to = to;
      }
      span.is_inhabited = inhabited > Duration{};
      if (span.is_inhabited) {
        span.activity =
            std::min(span.activity * (seconds(span.end - span.begin) / seconds(inhabited)), 1.0);
      }
      spans_.push_back(span);
    }
    if (spans_.empty()) return;
    spans_.front().begin -= kGoesOn;
    spans_.back().end += kGoesOn;
  }

  // The mean over [begin, end], of which all has to be known. `has_processes`: then.
  std::optional<double> mean(HostTime begin, HostTime end, bool has_processes) const {
    auto at = std::ranges::upper_bound(spans_, begin, {}, &Span::end);
    double sum = 0;
    HostTime up_to = begin;
    for (; at != spans_.end() && up_to < end; ++at) {
      // Readings begin with the first look, and a look's own readings come a moment after it.
      if (at->begin > up_to + kGaugeLead) return std::nullopt;
      const HostTime to = std::min(at->end, end);
      if (has_processes || !at->is_inhabited) sum += at->activity * seconds(to - up_to);
      up_to = to;
    }
    if (up_to + kGaugeLead < end || up_to == begin) return std::nullopt;
    return sum / seconds(up_to - begin);
  }

 private:
  // The first mean begins with the look before it.
  static std::optional<HostTime> look_before(const std::vector<BoardLook>& looks, HostTime t) {
    const auto next = std::ranges::lower_bound(looks, t, {}, &BoardLook::at);
    if (next == looks.begin()) return std::nullopt;
    return std::prev(next)->at;
  }

  static constexpr Duration kLongestActivity = 30s;  // of one mean
  static constexpr Duration kGoesOn = 1500ms;        // what the first and the last mean say
  struct Span {
    HostTime begin{};
    HostTime end{};
    double activity = 0;
    bool is_inhabited = false;
  };
  std::vector<Span> spans_;
};

class Claims {
 public:
  // `brief`: processes that no look had the time to list. They count where no listed one is known
  // to have worked.
  Claims(const BoardEvidence& evidence, const std::vector<PartActivity>& parts, HostTime begin,
         HostTime end, const std::vector<const Stay*>& present,
         const std::vector<std::size_t>& brief)
      : evidence_(evidence),
        parts_(parts),
        begin_(begin),
        end_(end),
        present_(present),
        brief_(brief),
        changed_(brief.begin(), brief.end()) {
    for (const Stay* stay : present) {
      if (stay->process == kUnidentified) had_ended_ = stay->is_brief(evidence);
      if (stay->begin + kNew > begin || (stay->left && stay->end <= end + kNoticed))
        changed_.insert(stay->process);
    }
  }

  // Of a divided board.
  std::vector<Claim> of_parts(bool& is_guess, std::optional<Claim>& doubt) const {
    if (present_.empty() && brief_.empty()) return {};
    struct Active {
      std::vector<std::size_t> candidates;
      double size = 0;
      std::optional<double> activity;
    };
    std::vector<Active> active;
    double whole = 0;
    bool is_known = true;  // the activity of all parts with processes
    bool has_sizes = true;
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      Active part{{}, evidence_.parts[p].size, std::nullopt};
      for (const Stay* stay : present_) {
        if (stay->may_be_in(p)) part.candidates.push_back(stay->process);
      }
      whole += part.size;
      part.activity = parts_[p].mean(begin_, end_, !part.candidates.empty());
      if (part.candidates.empty()) {
        if (part.activity.value_or(0) <= kNoUse) continue;
        // It worked, for a process that no list names.
        part.candidates = brief_.empty() ? std::vector{kUnidentified} : brief_;
      } else if (!brief_.empty()) {
        is_guess = true;
        doubt = narrowed({brief_, 1.0});
      }
      is_known &= part.activity.has_value();
      has_sizes &= part.size > 0;
      active.push_back(std::move(part));
    }
    if (active.empty()) return {narrowed({brief_, 1.0})};
    if (active.size() == 1) {
      const bool at_rest = active[0].activity && *active[0].activity <= kNoUse;
      return {narrowed({active[0].candidates, 1.0, at_rest})};
    }
    const bool any_worked = std::ranges::any_of(
        active, [](const auto& part) { return part.activity.value_or(0) > kNoUse; });
    if (is_known && any_worked)
      std::erase_if(active, [](const auto& part) { return *part.activity <= kNoUse; });
    if (!has_sizes && active.size() > 1) {
      std::set<std::size_t> all;
      for (const auto& part : active) all.insert(part.candidates.begin(), part.candidates.end());
      return {narrowed({{all.begin(), all.end()}, 1.0})};
    }
    is_guess |= !is_known;
    std::vector<Claim> out;
    for (const auto& part : active) {
      const double worked = is_known && any_worked ? *part.activity : 1.0;
      out.push_back(narrowed({part.candidates, worked * (has_sizes ? part.size / whole : 1.0),
                              is_known && !any_worked}));
    }
    return out;
  }

  // In a gap of the lists: of those that were listed around it, or of one that lived in it.
  std::vector<Claim> of_gap(Duration gap) const {
    Claim claim;
    for (const Stay* stay : present_) claim.candidates.push_back(stay->process);
    claim.candidates.insert(claim.candidates.end(), brief_.begin(), brief_.end());
    std::ranges::sort(claim.candidates);
    claim.weight = 1;
    claim = narrowed(std::move(claim));
    claim.in_doubt = claim.of_unidentified = true;
    if (gap > kLongGap && claim.candidates.back() != kUnidentified)
      claim.candidates.push_back(kUnidentified);
    return {std::move(claim)};
  }

  std::vector<Claim> of(std::optional<Claim>& doubt) const {
    if (present_.empty() && brief_.empty()) return {};
    if (present_.size() == 1 && brief_.empty()) {
      const bool at_rest = worked(*present_.front(), begin_, end_).kind == Worked::kNone;
      return {{{present_.front()->process}, 1.0, at_rest}};
    }
    std::vector<Claim> some;
    std::vector<std::size_t> none;
    std::vector<std::size_t> may_have;  // of these; the others used neither the board nor CPU time
    std::vector<std::size_t> unknown;
    double sum = 0;
    bool refused = false;
    for (const Stay* stay : present_) {
      const Worked use = worked(*stay, begin_, end_);
      refused |= use.kind == Worked::kRefused;
      if (use.kind == Worked::kSome) {
        some.push_back({{stay->process}, use.utilisation, false});
        sum += use.utilisation;
      } else if (use.kind == Worked::kNone) {
        none.push_back(stay->process);
        if (!is_idle(stay->process)) may_have.push_back(stay->process);
      } else {
        unknown.push_back(stay->process);
      }
    }
    // One without CPU time, where others worked, only held its context.
    const bool others_worked = std::ranges::any_of(
        some, [this](const Claim& claim) { return shows_work(claim.candidates.front()); });
    if (others_worked) {
      const auto idle = std::stable_partition(unknown.begin(), unknown.end(),
                                              [this](std::size_t p) { return !is_idle(p); });
      none.insert(none.end(), idle, unknown.end());
      may_have.insert(may_have.end(), idle, unknown.end());
      unknown.erase(idle, unknown.end());
    }
    if (some.empty()) unknown.insert(unknown.end(), brief_.begin(), brief_.end());
    if (unknown.empty() && some.empty()) return of_holders(none);
    const auto board = board_utilisation();
    if (!some.empty() && !may_have.empty() && board && *board - sum >= kErrors.utilisation)
      doubt = narrowed({may_have, *board - sum});
    if (unknown.empty()) return some;
    // Utilisations are rounded: where the board hardly worked, one that reads 0 may have.
    const bool hardly = board && *board < kErrors.utilisation && !none.empty();
    if (some.empty()) {
      // None of them shows work, and one whose utilisation reads 0 does.
      const bool are_idle =
          std::ranges::all_of(unknown, [this](std::size_t p) { return is_idle(p); });
      std::erase_if(none, [this](std::size_t p) { return cpu_share(p).value_or(0) <= kBusyCpu; });
      if (are_idle && !none.empty()) {
        unknown.insert(unknown.end(), none.begin(), none.end());
        std::ranges::sort(unknown);
        return {{unknown, 1.0}};
      }
      return {narrowed({unknown, 1.0, false, hardly})};
    }
    if (board && !refused) {
      const double left = *board - sum;
      if (left > kNoUse) {
        some.push_back(narrowed({unknown, left, false, true}));
      } else {
        unknown.insert(unknown.end(), may_have.begin(), may_have.end());
        doubt = narrowed({unknown, kErrors.utilisation});
      }
      return some;
    }
    for (const auto& claim : some) unknown.push_back(claim.candidates.front());
    return {narrowed({unknown, 1.0})};
  }

 private:
  std::vector<Claim> of_holders(const std::vector<std::size_t>& processes) const {
    if (board_utilisation().value_or(0) >= kErrors.utilisation) return {narrowed({processes, 1.0})};
    std::vector<Claim> out;
    for (const std::size_t p : processes) out.push_back({{p}, 1.0, true});
    return out;
  }

  bool is_idle(std::size_t p) const {
    const auto share = cpu_share(p);
    return share && *share < kIdleCpu;
  }
  // By its CPU time; where that is unknown, because it began or ended.
  bool shows_work(std::size_t p) const {
    const auto share = cpu_share(p);
    return share ? *share > kBusyCpu : changed_.contains(p);
  }
  std::optional<double> cpu_share(std::size_t p) const {
    if (p == kUnidentified || !evidence_.cpu_share) return std::nullopt;
    return evidence_.cpu_share(p, begin_, end_);
  }

  // Without those that only held a context while others show that they worked. One that could not
  // be identified had ended at once: where others worked, or had children that were never listed,
  // it is taken for one of theirs.
  Claim narrowed(Claim claim) const {
    std::ranges::sort(claim.candidates);
    if (claim.candidates.size() < 2) return claim;
    std::vector<std::size_t> left;
    bool any = false;
    double most = 0;  // CPU time of one that shows work; where it is unknown, more than others'
    for (const std::size_t p : claim.candidates) {
      if (p == kUnidentified || is_idle(p)) continue;
      if (shows_work(p)) {
        any = true;
        most = std::max(most, cpu_share(p).value_or(1));
      }
      left.push_back(p);
    }
    // Processes of a divided board have no utilisation, which soon says more.
    if (any && parts_.empty()) {
      claim.in_doubt |= std::erase_if(left, [&](std::size_t p) {
                          return !shows_work(p) && cpu_share(p).value_or(most) < kLittleCpu * most;
                        }) > 0;
    }
    const bool is_unknown = claim.candidates.back() == kUnidentified;
    if (is_unknown && left.empty()) {
      any = true;
      if (had_ended_ && evidence_.children_cpu_share) {
        for (const std::size_t p : claim.candidates) {
          const bool is_parent =
              p != kUnidentified &&
              evidence_.children_cpu_share(p, begin_, end_).value_or(0) > kBusyCpu;
          if (is_parent) left.push_back(p);
        }
      }
    }
    if (is_unknown && (left.empty() || !had_ended_)) left.push_back(kUnidentified);
    if (!any) return claim;
    claim.of_unidentified |= is_unknown && had_ended_ && left.back() != kUnidentified;
    claim.in_doubt |= claim.of_unidentified;
    claim.candidates = std::move(left);
    return claim;
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
  const std::vector<PartActivity>& parts_;
  HostTime begin_, end_;
  const std::vector<const Stay*>& present_;
  const std::vector<std::size_t>& brief_;
  bool had_ended_ = false;         // the process that could not be identified
  std::set<std::size_t> changed_;  // that began or ended not long before or after
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
        std::ranges::lower_bound(evidence.looks, *life.end - kNoticed, {}, &BoardLook::at);
    const HostTime looked = next == evidence.looks.begin() ? life.start : std::prev(next)->at;
    out.push_back({p, std::max(life.start, looked), *life.end});
  }
  return out;
}

}  // namespace

OtherUsers unlisted_users(const BoardEvidence& evidence, HostTime begin, HostTime end) {
  if (evidence.looks.empty()) return OtherUsers::kNone;
  const Stays stays(evidence, end);
  auto out = stays.hides_all() ? OtherUsers::kMaybe : OtherUsers::kNone;
  HostTime before = begin;
  for (const auto& look : evidence.looks) {
    if (look.at <= begin || before >= end) continue;
    const bool is_long = stays.gap(before, std::min(look.at, end)) > kLongGap;
    // Kernels that were traced say what of the energy is theirs.
    if (is_long && evidence.known.empty()) out = OtherUsers::kMaybe;
    before = look.at;
  }
  for (const Stay& stay : stays.all()) {
    const bool is_here = stay.begin < end && stay.end > begin;
    if (stay.process != kUnidentified || !is_here || stay.is_brief(evidence)) continue;
    // Gone at the first look after the begin: it was there for less than the time up to that look.
    const bool is_gone = stay.last < begin;
    if (is_gone && stay.end - begin <= duration_of(kLeastPart * seconds(end - begin))) continue;
    // One that was there before all others is none of the command's short processes.
    if (!is_gone && stay.first == evidence.looks.front().at && stay.first < begin) {
      return OtherUsers::kSure;
    }
    out = OtherUsers::kMaybe;
  }
  return out;
}

std::vector<UseSlice> board_use(const BoardEvidence& evidence, HostTime begin, HostTime end) {
  std::vector<UseSlice> out;
  if (end <= begin) return out;
  const Stays stays(evidence, end);
  const auto unlisted = unlisted_spans(evidence);
  std::vector<PartActivity> parts;
  for (std::size_t p = 0; p < evidence.parts.size(); ++p)
    parts.emplace_back(evidence, p, stays.all());
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
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());

  auto coming = stays.all().begin();
  std::vector<const Stay*> open;  // not ended for longer than the afterglow
  HostTime latest{};              // up to here a process is listed
  for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
    UseSlice& slice = out.emplace_back(UseSlice{edges[i], edges[i + 1], {}, {}, {}, false, {}});
    for (; coming != stays.all().end() && coming->begin <= slice.begin; ++coming)
      open.push_back(&*coming);
    for (const Stay* s : open) latest = std::max(latest, std::min(s->end, slice.begin));
    std::erase_if(open, [&](const Stay* s) {
      return s->end + (s->left ? kAfterglow : Duration{}) <= slice.begin;
    });
    // A process once: a known context says no more of its use than the lists do.
    std::map<std::size_t, const Stay*> present;
    for (const Stay* s : open) {
      if (s->end <= slice.begin) continue;
      const auto [at, is_new] = present.try_emplace(s->process, s);
      if (!is_new && at->second->known) at->second = s;
    }
    // Of the last that held it, if lists go on after it; never of one that ended before that.
    if (present.empty()) {
      for (const Stay* s : open) {
        if (s->end == latest) present.try_emplace(s->process, s);
      }
    }
    std::vector<const Stay*> stays_here;
    for (const auto& [process, stay] : present) {
      const bool had_ended = process == kUnidentified && stay->is_brief(evidence);
      if (!had_ended || present.size() == 1) slice.holders.push_back(process);
      const bool is_sure = stay->first <= slice.begin && stay->last >= slice.end;
      if (is_sure && !had_ended) slice.sure_holders.push_back(process);
      stays_here.push_back(stay);
    }
    if (slice.holders.size() < 2) slice.sure_holders.clear();
    std::vector<std::size_t> brief;
    for (const auto& span : unlisted) {
      if (span.begin <= slice.begin && span.end >= slice.end) brief.push_back(span.process);
    }
    const Duration gap = stays.gap(slice.begin, slice.end);
    if (!brief.empty() && (stays.hides_all() || stays.is_blind(slice.begin, slice.end))) {
      brief.push_back(kUnidentified);
    } else if (stays_here.empty()) {
      slice.holders = brief;  // a board that is held between two lists is held by one of these
    }
    const Claims claims(evidence, parts, slice.begin, slice.end, stays_here, brief);
    slice.claims = !parts.empty() ? claims.of_parts(slice.is_guess, slice.doubt)
                   : gap > Duration{} && !stays_here.empty() && evidence.known.empty()
                       ? claims.of_gap(gap)
                       : claims.of(slice.doubt);
    const auto before = out.rbegin() + 1;
    if (before != out.rend() && before->claims == slice.claims &&
        before->is_guess == slice.is_guess && before->doubt == slice.doubt &&
        before->holders == slice.holders && before->sure_holders == slice.sure_holders) {
      before->end = slice.end;
      out.pop_back();
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
