#include "analysis/live/window_totals.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <string_view>

#include "analysis/repeated/repeated_windows.h"

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kQuiet = 10s;  // a chain that nothing has continued for so long is over

using Asked = Result<model::Measurement> (EnergyLedger::*)(HostTime, HostTime);

// What is settled needs no place among the instants that the ledger remembers.
Asked asked(WindowTotals::State state) {
  return state == WindowTotals::State::kSettled ? &EnergyLedger::settled_energy
                                                : &EnergyLedger::energy;
}

constexpr Duration kBlock = 60s;
constexpr Duration kShortestBlock = 10s;  // a shorter one is fitted with the one before
constexpr Duration kLongestBlock = 4min;  // two of them within a ledger's history
constexpr Duration kAround = 1s;          // of a block: its windows act on the sensors there
constexpr std::size_t kMostWindows = 50'000;
// A block with fewer windows of a short name waits for more.
constexpr std::int64_t kFewest = 20;

std::uint32_t name_of(std::string_view text) {
  std::uint32_t name = 0;
  std::from_chars(text.data(), text.data() + text.size(), name);
  return name;
}

}  // namespace

void WindowTotals::add(std::uint32_t id, HostTime begin, HostTime end) {
  Name& name = names_[id];
  if (name.sums.empty()) name.sums.resize(domains_);
  ++name.count;
  name.length += end - begin;
  name.latest_end = std::max(name.latest_end, end);
  name.chains.add(begin, end, [&](const WindowChain& chain) { name.pending.push_back(chain); });
}

void WindowTotals::resolve_chain(Name& name, const WindowChain& chain, State state,
                                 const Ledgers& ledgers) {
  for (std::size_t i = 0; i < ledgers.size(); ++i) {
    if (ledgers[i] == nullptr) continue;
    Sum& sum = name.sums[i];
    const auto whole = (ledgers[i]->*asked(state))(chain.begin, chain.end);
    const auto added = whole ? add_chain(chain, *whole, ledgers[i]->timeline(), sum.windows)
                             : Result<void>(forward_error(whole));
    if (!added) sum.missing = added.error().message;
  }
  name.resolved += chain.count;
}

void WindowTotals::resolve_pending(Name& name, HostTime until, State state,
                                   const Ledgers& ledgers) {
  const auto unresolved =
      std::partition(name.pending.begin(), name.pending.end(),
                     [&](const WindowChain& chain) { return chain.end > until; });
  for (auto chain = unresolved; chain != name.pending.end(); ++chain) {
    resolve_chain(name, *chain, state, ledgers);
  }
  name.pending.erase(unresolved, name.pending.end());
}

void WindowTotals::resolve_pauses(Name& name, WindowChain& chain, HostTime until,
                                  const Ledgers& ledgers) {
  // The last one may still grow.
  const auto is_early = [&](const WindowPause& pause) {
    return pause.last <= until && &pause != &chain.pauses.back();
  };
  const auto unresolved = std::ranges::find_if_not(chain.pauses, is_early);
  for (auto pause = chain.pauses.begin(); pause != unresolved; ++pause) {
    for (std::size_t i = 0; i < ledgers.size(); ++i) {
      if (ledgers[i] == nullptr) continue;
      Sum& sum = name.sums[i];
      const auto done = leave_out(*pause, ledgers[i]->timeline(), sum.windows);
      if (!done) sum.missing = done.error().message;
    }
  }
  chain.pauses.erase(chain.pauses.begin(), unresolved);
}

void WindowTotals::settle(HostTime until, const Ledgers& ledgers) {
  for (auto& [id, name] : names_) {
    name.chains.end_if([until](const WindowChain& chain) { return chain.end <= until - kQuiet; },
                       [&](const WindowChain& chain) { name.pending.push_back(chain); });
    resolve_pending(name, until, State::kSettled, ledgers);
    // A chain may outlive the details of where it began: that energy is fixed while they are there.
    name.chains.for_each_open([&](WindowChain& chain) {
      if (chain.begin > until) return;
      for (EnergyLedger* ledger : ledgers) {
        if (ledger != nullptr) (void)ledger->energy(chain.begin, chain.begin);
      }
      resolve_pauses(name, chain, until, ledgers);
    });
  }
}

std::optional<HostTime> WindowTotals::latest_end(std::uint32_t id) const {
  const auto found = names_.find(id);
  if (found == names_.end()) return std::nullopt;
  return found->second.latest_end;
}

std::optional<WindowTotal> WindowTotals::total(std::uint32_t id, const Ledgers& ledgers) const {
  const auto found = names_.find(id);
  if (found == names_.end()) return std::nullopt;
  Name name = found->second;
  name.chains.end_all([&](const WindowChain& chain) { name.pending.push_back(chain); });
  resolve_pending(name, HostTime::max(), State::kOpen, ledgers);
  WindowTotal total{name.count, name.resolved, name.length, {}};
  for (std::size_t i = 0; i < domains_; ++i) {
    const Sum& sum = name.sums[i];
    const auto energy = sum.windows.sum();
    if (!sum.missing.empty() || !energy) {
      total.energies.push_back(
          fail(Errc::kUnavailable, sum.missing.empty() ? "no readings" : sum.missing));
      continue;
    }
    total.energies.push_back(*energy);
  }
  return total;
}

void RepeatedTotals::give_up() {
  given_up_ = true;
  spans_ = {};
  ended_.clear();
}

// After a pause, no earlier than around its first window.
void RepeatedTotals::begin_block(HostTime first) {
  if (first - begin_ > kLongestBlock) spans_.clear();
  begin_ = std::max(begin_, first - kAround);
  if (spans_.empty()) before_ = begin_;
}

void RepeatedTotals::add(std::uint32_t name, HostTime begin, HostTime end) {
  if (given_up_) return;
  if (in_block_ == 0) begin_block(begin);
  // Windows of several threads come in no order; the first block may still begin earlier.
  const bool is_first = before_ == begin_;
  if (begin < begin_ && is_first) before_ = begin_ = begin;
  if (begin < begin_) late_.insert(name);
  if (++in_block_ > kMostWindows) return give_up();
  spans_.push_back({name, begin, end});
}

std::vector<model::Window> RepeatedTotals::windows_since(HostTime t) const {
  std::vector<model::Window> out;
  for (const Span& s : spans_) {
    if (s.end < t - kAround) continue;
    model::Window& w = out.emplace_back();
    w.name = std::to_string(s.name);
    w.begin = s.begin;
    w.end = s.end;
  }
  return out;
}

Duration RepeatedTotals::open_length() const {
  Duration length{};
  for (const Span& s : spans_) length = std::max(length, s.end - begin_);
  return length;
}

bool RepeatedTotals::is_due(HostTime end) const {
  if (spans_.empty() || end - begin_ < kBlock) return false;
  if (end - begin_ >= kLongestBlock) return true;
  struct Windows {
    std::int64_t count = 0;
    Duration length{};
  };
  std::unordered_map<std::uint32_t, Windows> names;
  for (const Span& s : spans_) {
    if (s.begin < begin_ || s.begin >= end || late_.contains(s.name)) continue;
    Windows& of_name = names[s.name];
    ++of_name.count;
    of_name.length += s.end - s.begin;
  }
  return std::ranges::all_of(names, [](const auto& name) {
    const Windows& w = name.second;
    return w.count >= kFewest || w.length >= w.count * kShortWindow;
  });
}

void RepeatedTotals::settle(HostTime until, const Ledgers& ledgers) {
  const HostTime end = until - kAround;
  if (!given_up_ && is_due(end)) end_block(end, ledgers);
}

void RepeatedTotals::end_block(HostTime end, const Ledgers& ledgers) {
  const auto all = windows_since(begin_);
  std::unordered_map<std::string_view, std::vector<const model::Window*>> by_name;
  for (const auto& w : all) {
    if (w.begin >= begin_ && w.begin < end) by_name[w.name].push_back(&w);
  }
  for (std::size_t domain = 0; domain < ledgers.size(); ++domain) {
    if (ledgers[domain] == nullptr) continue;
    const auto fitted =
        RepeatedWindows::fit(all, ledgers[domain]->timeline(), RecordedSpan{begin_, end});
    for (const auto& [text, of_name] : by_name) {
      const std::uint32_t name = name_of(text);
      const auto sum = fitted ? fitted->sum(of_name) : std::nullopt;
      if (sum) {
        ended_[{name, domain}].add_alike(*sum);
      } else {
        without_.insert({name, domain});
      }
    }
  }
  std::erase_if(spans_, [&](const Span& s) { return s.begin < begin_; });
  in_block_ = static_cast<std::size_t>(
      std::ranges::count_if(spans_, [end](const Span& s) { return s.begin >= end; }));
  before_ = begin_;
  begin_ = end;
}

std::optional<model::Measurement> RepeatedTotals::total(std::uint32_t name, std::size_t domain,
                                                        const Ledgers& ledgers) const {
  if (given_up_ || ledgers[domain] == nullptr) return std::nullopt;
  if (without_.contains({name, domain}) || late_.contains(name)) return std::nullopt;
  model::WindowSum sum;
  if (const auto ended = ended_.find({name, domain}); ended != ended_.end()) sum = ended->second;
  const auto in_block = [&](const Span& s) { return s.name == name && s.begin >= begin_; };
  const auto count = std::ranges::count_if(spans_, in_block);
  if (count > 0) {
    const HostTime from = count < kFewest || open_length() < kShortestBlock ? before_ : begin_;
    const auto all = windows_since(from);
    std::vector<const model::Window*> of_name;
    for (const auto& w : all) {
      if (w.begin >= begin_ && name_of(w.name) == name) of_name.push_back(&w);
    }
    const auto fitted =
        RepeatedWindows::fit(all, ledgers[domain]->timeline(), RecordedSpan{from, HostTime::max()});
    const auto open = fitted ? fitted->sum(of_name) : std::nullopt;
    if (!open) return std::nullopt;
    sum.add_alike(*open);
  }
  return sum.sum();
}

}  // namespace jouleprof::analysis
