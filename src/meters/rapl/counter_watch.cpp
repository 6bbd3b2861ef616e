#include "meters/rapl/counter_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace jouleprof::meters::rapl {
namespace {

using model::DomainKind;
using namespace std::chrono_literals;

constexpr Duration kStep = 5ms;
constexpr Duration kReadApart = 2ms;  // two reads of equal counters see them this far apart
constexpr std::size_t kMoves = 4;
constexpr Energy kQuantum = Energy::microjoules(62);  // of Intel's registers, where none is known

// "package-0" of "package-0-die-1".
std::string socket_of(const std::string& package) {
  return package.substr(0, package.find("-die-"));
}

// The reads of one counter: in each step twice, with a read of all others in between.
struct Reads {
  std::vector<Energy> first;
  std::vector<Energy> second;
  bool failed = false;

  std::size_t moves() const {
    std::size_t n = 0;
    for (std::size_t k = 1; k < first.size(); ++k) n += first[k] != first[k - 1];
    return n;
  }
  bool moved() const { return moves() > 0 || (!second.empty() && second.back() != first.front()); }
};

class Watch {
 public:
  Watch(Source& source, Duration longest, const std::function<void(Duration)>& sleep)
      : source_(source), reads_(source.counters.size()), why_(source.counters.size()) {
    find_dies();
    if (longest > Duration{}) {
      for (Duration passed{}; passed <= longest && !is_enough(); passed += kStep) {
        if (passed > Duration{}) sleep(kStep);
        read();
      }
      length_ = longest;
      find_still();
      find_equal();
    }
    find_orphans();
  }

  void leave_out() {
    std::vector<Counter> kept;
    for (std::size_t i = 0; i < source_.counters.size(); ++i) {
      auto& counter = source_.counters[i];
      if (!why_[i]) {
        kept.push_back(std::move(counter));
      } else {
        source_.ignored.push_back({describe(counter.place), {Errc::kUnavailable, *why_[i]}, ""});
      }
    }
    source_.counters = std::move(kept);
  }

 private:
  const Place& place(std::size_t i) const { return source_.counters[i].place; }
  bool is_package(std::size_t i) const { return place(i).kind == DomainKind::kCpu; }

  void read() {
    for (const bool again : {false, true}) {
      for (std::size_t i = 0; i < reads_.size(); ++i) {
        const auto value = source_.counters[i].read();
        reads_[i].failed = reads_[i].failed || !value;
        (again ? reads_[i].second : reads_[i].first).push_back(value.value_or(Energy{}));
      }
    }
  }

  // One counter of its kind needs to move once.
  bool is_enough() const {
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      if (!is_package(i) || why_[i] || reads_[i].failed) continue;
      const auto same =
          std::count_if(source_.counters.begin(), source_.counters.end(), [](auto& c) {
            return c.place.kind == DomainKind::kCpu || c.place.kind == DomainKind::kPlatform;
          });
      if (reads_[i].moves() < (same > 1 ? kMoves : 1)) return false;
    }
    return true;
  }

  void find_dies() {
    for (std::size_t i = 0; i < why_.size(); ++i) {
      const std::string socket = socket_of(place(i).package);
      if (!is_package(i) || socket == place(i).package) continue;
      for (std::size_t j = 0; j < why_.size(); ++j) {
        if (!is_package(j) || place(j).package != socket) continue;
        why_[i] = fmt::format("{} is a die of {}, whose counter contains it; it is counted once",
                              place(i).package, socket);
      }
    }
  }

  void find_still() {
    for (std::size_t i = 0; i < why_.size(); ++i) {
      if (!is_package(i) && place(i).kind != DomainKind::kDram) continue;
      if (why_[i] || reads_[i].failed || reads_[i].moved()) continue;
      why_[i] = fmt::format(
          "{} stands still at {:.1f} J (read for {:.0f} ms): the machine is a guest, or the sensor "
          "is "
          "stuck",
          source_.counters[i].name, reads_[i].first.front().joules(), seconds(length_) * 1e3);
    }
  }

  void find_equal() {
    for (std::size_t i = 0; i < why_.size(); ++i) {
      for (std::size_t j = i + 1; j < why_.size(); ++j) {
        const std::size_t kept = place(i).kind == DomainKind::kPlatform ? j : i;
        const std::size_t other = kept == i ? j : i;
        if (why_[i] || why_[j] || !may_be_equal(i, j) || !are_equal(i, j)) continue;
        const std::string name =
            place(kept) == place(other) ? source_.counters[kept].name : describe(place(kept));
        why_[other] =
            fmt::format("{} moves as {} does: both count the same energy, which is counted once",
                        source_.counters[other].name, name);
      }
    }
  }

  bool may_be_equal(std::size_t i, std::size_t j) const {
    if (place(i).kind == place(j).kind) return true;
    const auto is = [&](std::size_t a, std::size_t b) {
      return is_package(a) && place(b).kind == DomainKind::kPlatform;
    };
    return is(i, j) || is(j, i);
  }

  bool are_equal(std::size_t i, std::size_t j) const {
    const Reads& a = reads_[i];
    const Reads& b = reads_[j];
    if (a.failed || b.failed || a.moves() < kMoves || b.moves() < kMoves) return false;
    const Energy quantum = std::max(
        {source_.counters[i].traits.quantum, source_.counters[j].traits.quantum, kQuantum});
    // `b` was read after a.first and before a.second.
    Energy least = a.first.front() - b.first.front();
    Energy most = a.second.front() - b.first.front();
    for (std::size_t k = 1; k < a.first.size(); ++k) {
      least = std::max(least, a.first[k] - b.first[k]);
      most = std::min(most, a.second[k] - b.first[k]);
    }
    if (least <= most + quantum) return true;
    if (socket_of(place(i).package) != socket_of(place(j).package) &&
        place(i).kind == place(j).kind) {
      return false;
    }
    const double steps = static_cast<double>(a.first.size() - 1);
    const double watts = (a.first.back() - a.first.front()).joules() / (steps * seconds(kStep));
    const double apart = quantum.joules() + watts * seconds(kReadApart);
    for (std::size_t k = 0; k < a.first.size(); ++k) {
      const double off = (a.first[k] - b.first[k]).joules();
      if (off > apart || off < -apart) return false;
    }
    return true;
  }

  // Parts of a package that is left out.
  void find_orphans() {
    for (std::size_t i = 0; i < why_.size(); ++i) {
      const bool is_part =
          place(i).kind == DomainKind::kCpuCores || place(i).kind == DomainKind::kCpuUncore;
      if (!is_part || why_[i]) continue;
      const auto whole = [&](bool left_out) {
        for (std::size_t j = 0; j < why_.size(); ++j) {
          if (is_package(j) && place(j).package == place(i).package &&
              why_[j].has_value() == left_out) {
            return true;
          }
        }
        return false;
      };
      if (whole(true) && !whole(false)) {
        why_[i] = fmt::format("it belongs to {}, which is not used", place(i).package);
      }
    }
  }

  Source& source_;
  std::vector<Reads> reads_;
  std::vector<std::optional<std::string>> why_;
  Duration length_{};
};

}  // namespace

void leave_out_misleading(Source& source, Duration longest,
                          const std::function<void(Duration)>& sleep) {
  Watch(source, longest, sleep).leave_out();
}

}  // namespace jouleprof::meters::rapl
