#include "analysis/repeated/window_states.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <numeric>
#include <unordered_map>

namespace jouleprof::analysis {
namespace {

using namespace std::chrono_literals;

constexpr Duration kShort = 100ms;   // mean length: about four windows of a power sensor
constexpr std::size_t kFewest = 20;  // windows of a name
// Ends of the intervals after a window and before the next one, in seconds: fine next to windows,
// up to the sensors' memory.
constexpr std::array kAround{0.004, 0.010, 0.018, 0.030};
constexpr double kMargin = 1;          // seconds before the first window and after the last
constexpr double kShortest = 1e-7;     // seconds: a shorter stay is not worth a bin
constexpr std::size_t kMostSets = 38;  // of names; others share one more state
constexpr std::uint32_t kOutside = 0;
constexpr std::uint32_t kAfter =
    0;  // variants of it: so many after a window's end, then before a begin
constexpr std::uint32_t kBefore = kAfter + kAround.size();

// A stay: which names were open, as a sorted list of numbers.
struct Stay {
  double begin = 0;
  double end = 0;
  std::uint32_t set = 0;  // index into the sets; 0: none was open
};

class Stays {
 public:
  Stays(std::span<const model::Window> windows, const std::unordered_set<std::string_view>& names,
        const TimeBase& time) {
    struct Edge {
      double at;
      std::uint32_t name;
      int change;
    };
    std::vector<Edge> edges;
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (const auto& w : windows) {
      if (!names.contains(w.name) || w.end <= w.begin) continue;
      const auto number =
          numbers.try_emplace(w.name, static_cast<std::uint32_t>(numbers.size())).first->second;
      edges.push_back({time.seconds_of(w.begin), number, 1});
      edges.push_back({time.seconds_of(w.end), number, -1});
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
    std::map<std::uint32_t, int> open;
    double since = edges.empty() ? 0 : edges.front().at;
    for (const Edge& edge : edges) {
      if (edge.at > since + kShortest) {
        add(since, edge.at, set_of(open));
        since = edge.at;
      }
      int& count = open[edge.name];
      count += edge.change;
      if (count == 0) open.erase(edge.name);
    }
  }

  const std::vector<Stay>& all() const { return stays_; }
  std::size_t sets() const { return sets_.size() + 1; }

 private:
  // By number; 0 is the empty set.
  std::uint32_t set_of(const std::map<std::uint32_t, int>& open) {
    if (open.empty()) return 0;
    std::vector<std::uint32_t> key;
    for (const auto& [name, count] : open) key.push_back(name);
    return sets_.try_emplace(std::move(key), static_cast<std::uint32_t>(sets_.size() + 1))
        .first->second;
  }
  void add(double begin, double end, std::uint32_t set) {
    if (!stays_.empty() && stays_.back().set == set) {
      stays_.back().end = end;
    } else {
      stays_.push_back({begin, end, set});
    }
  }

  std::map<std::vector<std::uint32_t>, std::uint32_t> sets_;
  std::vector<Stay> stays_;
};

class Builder {
 public:
  explicit Builder(TimeBase time) { out_.table.time = time; }

  WindowStates build(const Stays& stays) {
    number_states(stays);
    const double first = out_.first = stays.all().front().begin;
    const double last = out_.last = stays.all().back().end;
    add(first - kMargin, first - kAround.back(), kOutside);
    add_before(first - kAround.back(), first);
    for (const Stay& stay : stays.all()) {
      stay.set == 0 ? add_gap(stay.begin, stay.end) : add(stay.begin, stay.end, state_[stay.set]);
    }
    add_after(last, last + kAround.back());
    add(last + kAround.back(), last + kMargin, kOutside);
    auto& table = out_.table;
    table.begin = table.bins.front().begin;
    table.end = table.bins.back().begin + table.bins.back().width;
    return std::move(out_);
  }

 private:
  // The sets with most time have a state each.
  void number_states(const Stays& stays) {
    std::vector<double> time(stays.sets(), 0.0);
    for (const Stay& stay : stays.all()) time[stay.set] += stay.end - stay.begin;
    std::vector<std::uint32_t> order(stays.sets() - 1);
    std::iota(order.begin(), order.end(), 1U);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return time[a] > time[b]; });
    state_.assign(stays.sets(), 0);
    for (std::size_t i = 0; i < order.size(); ++i) {
      state_[order[i]] = static_cast<std::uint32_t>(1 + std::min(i, kMostSets));
    }
    out_.table.classes.resize(1 + std::min(order.size(), kMostSets + 1));
    out_.table.variants.resize(2 * kAround.size(), {kOutside, 0});
  }

  void add_gap(double begin, double end) {
    const double half = std::min(kAround.back(), (end - begin) / 2);
    add_after(begin, begin + half);
    add(begin + half, end - half, kOutside);
    add_before(end - half, end);
  }
  void add_after(double begin, double end) {
    double from = begin;
    for (std::uint32_t i = 0; i < kAround.size(); ++i) {
      const double to = std::min(begin + kAround[i], end);
      add(from, to, kOutside, kAfter + i);
      from = to;
    }
  }
  void add_before(double begin, double end) {
    double from = begin;
    for (auto i = static_cast<std::uint32_t>(kAround.size()); i-- > 0;) {
      const double to = i > 0 ? std::max(end - kAround[i - 1], begin) : end;
      add(from, to, kOutside, kBefore + i);
      from = to;
    }
  }

  void add(double begin, double end, std::uint32_t state, std::uint32_t variant = model::kNone) {
    if (end - begin <= kShortest) return;
    auto& table = out_.table;
    const double width = end - begin;
    table.bins.push_back({begin, width, table.entries.size()});
    table.entries.push_back({state, static_cast<float>(width)});
    if (variant != model::kNone) {
      const auto number = static_cast<std::uint32_t>(table.classes.size()) + variant;
      table.entries.push_back({number, static_cast<float>(width)});
      table.variants[variant].busy += width;
    }
    table.classes[state].busy += width;
    table.classes[state].whole_busy += width;
    table.busy += width;
    table.whole_busy += width;
  }

  WindowStates out_;
  std::vector<std::uint32_t> state_;  // by set
};

}  // namespace

std::unordered_set<std::string_view> short_window_names(std::span<const model::Window> windows) {
  struct Sum {
    Duration length{};
    std::size_t count = 0;
  };
  std::unordered_map<std::string_view, Sum> sums;
  for (const auto& w : windows) {
    Sum& sum = sums[w.name];
    sum.length += w.end - w.begin;
    ++sum.count;
  }
  std::unordered_set<std::string_view> names;
  for (const auto& [name, sum] : sums) {
    const bool is_short = sum.length < kShort * static_cast<std::int64_t>(sum.count);
    if (is_short && sum.count >= kFewest && sum.length > Duration{}) names.insert(name);
  }
  return names;
}

void WindowStates::add_time(double begin, double end, std::vector<double>& by_entry) const {
  const auto& bins = table.bins;
  auto at = std::upper_bound(bins.begin(), bins.end(), begin,
                             [](double t, const ActivityTable::Bin& bin) { return t < bin.begin; });
  if (at != bins.begin()) --at;
  for (; at != bins.end() && at->begin < end; ++at) {
    const double length = std::min(end, at->begin + at->width) - std::max(begin, at->begin);
    if (length <= 0) continue;
    const auto bin = static_cast<std::size_t>(at - bins.begin());
    for (std::size_t i = at->first; i < table.end_of(bin); ++i) {
      by_entry[table.entries[i].kernel_class] += length;
    }
  }
}

WindowStates window_states(std::span<const model::Window> windows,
                           const std::unordered_set<std::string_view>& names) {
  HostTime first = HostTime::max();
  for (const auto& w : windows) {
    if (names.contains(w.name)) first = std::min(first, w.begin);
  }
  if (first == HostTime::max()) return {};
  const TimeBase time{first};
  const Stays stays(windows, names, time);
  if (stays.all().empty()) return {};
  return Builder(time).build(stays);
}

}  // namespace jouleprof::analysis
