#include "meters/rapl/rapl_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "meters/cpu_model.h"
#include "model/device/sensor_table.h"

namespace jouleprof::meters {

namespace rapl {

std::string describe(const Place& place) {
  switch (place.kind) {
    case model::DomainKind::kCpuCores:
      return "RAPL core of " + place.package;
    case model::DomainKind::kCpuUncore:
      return "RAPL uncore of " + place.package;
    case model::DomainKind::kDram:
      return "RAPL dram of " + place.package;
    case model::DomainKind::kPlatform:
      return "RAPL psys";
    default:
      return "RAPL " + place.package;
  }
}

}  // namespace rapl

namespace {

using rapl::Place;
using rapl::Source;

constexpr std::string_view kFix =
    "Least invasive first: (1) perf events: sudo setcap cap_perfmon=ep on the jouleprof program, "
    "or "
    "sudo sysctl kernel.perf_event_paranoid=0; (2) run jouleprof as root; (3) let one group read "
    "the counters, with a udev rule such as SUBSYSTEM==\"powercap\", ACTION==\"add\", "
    "RUN+=\"/bin/chgrp GROUP /sys%p/energy_uj\", RUN+=\"/bin/chmod 0440 /sys%p/energy_uj\"; its "
    "members can then use the side channel of CVE-2020-8694.";

constexpr Duration kRefresh = std::chrono::milliseconds{1};
constexpr Duration kUsualPeriod = std::chrono::milliseconds{100};
constexpr Duration kShortPeriod = std::chrono::milliseconds{10};
constexpr Power kMaxPower = Power::watts(1000);
constexpr double kWrapMargin = 4;

model::ScaleError scale_error(const Place& place, bool is_amd) {
  if (place.kind == model::DomainKind::kDram) return model::scale_of_rapl_dram();
  return model::scale_of_rapl_package(is_amd);
}

std::string device_of(const Place& place) {
  return place.package.empty() ? "platform" : place.package;
}

bool has_package(const Source& source) {
  return std::ranges::any_of(source.counters,
                             [](const auto& c) { return c.place.kind == model::DomainKind::kCpu; });
}

// Packages in their numerical order, each with its parts; the platform last.
auto sort_key(const Place& place) {
  std::array<std::int64_t, 2> numbers{};
  std::size_t n = 0;
  for (const std::string_view part : split(place.package, '-')) {
    const auto number = parse_integer(part);
    if (number && n < numbers.size()) numbers[n++] = *number;
  }
  return std::tuple(place.package.empty(), numbers, place.kind != model::DomainKind::kCpu,
                    place.kind);
}

Duration poll_period(const Demand& demand, const std::vector<rapl::Counter>& counters) {
  Duration period = demand.shortest_window < std::chrono::seconds{1} ? kShortPeriod : kUsualPeriod;
  if (demand.poll_period > Duration::zero()) period = demand.poll_period;
  for (const auto& counter : counters) {
    if (!counter.traits.wrap) continue;
    const double wrap_seconds = counter.traits.wrap->joules() / kMaxPower.watts();
    period = std::min(period, duration_of(wrap_seconds / kWrapMargin));
  }
  return period;
}

// A counter is there and cannot be read; one that stands still can.
bool is_denied(const Source& source) {
  return std::ranges::any_of(source.unreadable,
                             [](const auto& u) { return u.error.code != Errc::kUnavailable; });
}

// One reason for all: the first, for they rarely differ, and how many there were.
std::string reason_of(const Result<Source>& source) {
  if (!source) return source.error().message;
  if (!source->ignored.empty() && !is_denied(*source)) {
    return source->ignored.front().error.message;
  }
  if (source->unreadable.empty()) return "no package counter";
  const std::size_t n = source->unreadable.size();
  const std::string& first = source->unreadable.front().error.message;
  return n == 1 ? first : fmt::format("{} (and {} more)", first, n - 1);
}

Missing neither(const Result<Source>& powercap, const Result<Source>& perf) {
  Errc code = Errc::kUnavailable;
  for (const auto* source : {&perf, &powercap}) {
    if (!*source) continue;
    if (!(*source)->unreadable.empty()) code = (*source)->unreadable.front().error.code;
  }
  return {"RAPL",
          {code, fmt::format("powercap: {}; perf: {}", reason_of(powercap), reason_of(perf))},
          code == Errc::kPermissionDenied ? std::string(kFix) : ""};
}

}  // namespace

Result<std::unique_ptr<RaplMeter>> RaplMeter::open(const RaplOptions& options) {
  const auto sleep = [](Duration time) { std::this_thread::sleep_for(time); };
  Result<Source> powercap = rapl::open_powercap(options.root);
  if (powercap) rapl::leave_out_misleading(*powercap, options.watch, sleep);
  if (powercap && has_package(*powercap)) {
    rapl::add_core_energies(*powercap, options.root, options.open_event);
    return std::unique_ptr<RaplMeter>(new RaplMeter(std::move(*powercap), options));
  }
  Result<Source> perf = rapl::open_perf(options.root, options.open_event);
  if (perf) rapl::leave_out_misleading(*perf, options.watch, sleep);
  if (perf && has_package(*perf)) {
    rapl::add_core_energies(*perf, options.root, options.open_event);
    return std::unique_ptr<RaplMeter>(new RaplMeter(std::move(*perf), options));
  }
  // DRAM, or the platform, of packages whose own counters stand still.
  for (auto* source : {&powercap, &perf}) {
    if (*source && !(*source)->counters.empty() && !is_denied(**source)) {
      return std::unique_ptr<RaplMeter>(new RaplMeter(std::move(**source), options));
    }
  }
  const auto absent = [](const Result<Source>& s) {
    return !s && s.error().code == Errc::kNotFound;
  };
  if (absent(powercap) && absent(perf)) {
    return fail(Errc::kNotFound,
                fmt::format("no RAPL energy counters: neither {} nor {} has any. The processor or "
                            "the virtual machine does not offer them, or the kernel modules "
                            "intel_rapl_msr and rapl are not loaded",
                            (options.root / "sys/class/powercap").string(),
                            (options.root / "sys/bus/event_source/devices/power").string()));
  }
  Source still;  // DRAM has no estimate: its row says why
  for (auto* source : {&powercap, &perf}) {
    if (!*source || is_denied(**source) || !still.unreadable.empty()) continue;
    std::ranges::copy_if((*source)->unreadable, std::back_inserter(still.unreadable),
                         [](const auto& u) { return u.place.kind == model::DomainKind::kDram; });
  }
  std::unique_ptr<RaplMeter> meter(new RaplMeter(std::move(still), options));
  meter->missing_.insert(meter->missing_.begin(), neither(powercap, perf));
  for (const auto* source : {&powercap, &perf}) {
    if (*source && meter->notices_.empty()) meter->notices_ = (*source)->notices;
  }
  // Without the right to read them, which is the usual case, the estimate alone says enough.
  const Missing& why = meter->missing_.front();
  if (meter->notices_.empty() && why.error.code != Errc::kPermissionDenied) {
    meter->notices_.push_back(fmt::format("{}: {}", why.what, why.error.message));
  }
  return meter;
}

RaplMeter::RaplMeter(Source source, const RaplOptions& options)
    : counters_(std::move(source.counters)) {
  missing_ = std::move(source.ignored);
  notices_ = std::move(source.notices);
  const auto by_place = [](const auto& a, const auto& b) {
    return sort_key(a.place) < sort_key(b.place);
  };
  std::ranges::sort(counters_, by_place);
  std::ranges::sort(source.unreadable, by_place);

  const CpuModel cpu = read_cpu_model(options.root);
  std::vector<Place> places;
  for (const auto& counter : counters_) places.push_back(counter.place);
  for (const auto& unreadable : source.unreadable) places.push_back(unreadable.place);
  add_domains(std::move(places), cpu.name);

  for (const auto& counter : counters_) {
    model::Sensor& sensor =
        add_sensor(find_domain(counter.place)->id, model::SensorKind::kEnergyCounter, counter.name);
    sensor.traits = counter.traits;
    sensor.traits.refresh = kRefresh;
    sensor.traits.scale = scale_error(counter.place, cpu.is_amd());
  }
  for (auto& [place, error] : source.unreadable) {
    find_domain(place)->unavailable_reason = error.message;
    const bool denied = error.code == Errc::kPermissionDenied;
    missing_.push_back({describe(place), std::move(error), denied ? std::string(kFix) : ""});
  }
  if (!counters_.empty()) {
    probes_.push_back({"RAPL counters", poll_period(options.demand, counters_)});
    for (const auto& sensor : sensors_) probes_.back().sensors.push_back(sensor.id);
  }
}

void RaplMeter::add_domains(std::vector<Place> places, const std::string& cpu_name) {
  // A package comes before its parts, which need its id.
  std::ranges::sort(places,
                    [](const Place& a, const Place& b) { return sort_key(a) < sort_key(b); });
  for (const Place& place : places) {
    model::Domain& domain = add_domain(place.kind, device_of(place), cpu_name);
    if (place.kind == model::DomainKind::kDram) domain.name = "DRAM of " + place.package;
    if (place.kind == model::DomainKind::kPlatform) domain.name = "Platform (psys)";
    if (place.kind == model::DomainKind::kCpuCores || place.kind == model::DomainKind::kCpuUncore) {
      const auto package = find_domain({model::DomainKind::kCpu, place.package});
      if (package != domains_.end()) domain.parent = package->id;
    }
  }
}

std::vector<model::Domain>::iterator RaplMeter::find_domain(const Place& place) {
  return std::ranges::find_if(domains_, [&](const model::Domain& d) {
    return d.kind == place.kind && d.device == device_of(place);
  });
}

void RaplMeter::set_demand(const Demand& demand) {
  for (auto& probe : probes_) probe.period = poll_period(demand, counters_);
}

HostTime RaplMeter::read(std::size_t index, model::Readings& out) {
  const HostTime begin = HostClock::now();
  for (std::size_t i = 0; i < counters_.size(); ++i) {
    const HostTime before = HostClock::now();
    auto total = counters_[i].read();
    const HostTime after = HostClock::now();
    if (total) {
      out.counters.push_back({sensors_[i].id, before, after, *total});
    } else {
      out.failures.push_back({sensors_[i].id, after, std::move(total.error())});
    }
  }
  return begin + probes_.at(index).period;
}

}  // namespace jouleprof::meters

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
      : source_(source),
        reads_(source.counters.size()),
        why_(source.counters.size()),
        is_lost_(source.counters.size()),
        is_seen_(source.counters.size()) {
    find_dies();
    if (longest > Duration{}) {
      for (Duration passed{}; passed <= longest && !is_enough(); passed += kStep) {
        if (passed > Duration{}) sleep(kStep);
        read();
      }
      length_ = longest;
      const auto known = why_;
      find_still();
      find_mirrors();
      find_equal();
      for (std::size_t i = 0; i < why_.size(); ++i) {
        is_seen_[i] = why_[i] && !known[i] && !source_.counters[i].is_mirror;
      }
    }
    find_mirrors();
    find_orphans();
  }

  void leave_out() {
    std::vector<Counter> kept;
    for (std::size_t i = 0; i < source_.counters.size(); ++i) {
      auto& counter = source_.counters[i];
      if (!why_[i]) {
        kept.push_back(std::move(counter));
      } else {
        // A package that stands still is estimated; nothing stands for its DRAM.
        if (is_lost_[i] && counter.place.kind == DomainKind::kDram) {
          source_.unreadable.push_back({counter.place, {Errc::kUnavailable, *why_[i]}});
        } else {
          source_.ignored.push_back({describe(counter.place), {Errc::kUnavailable, *why_[i]}, ""});
        }
        if (is_seen_[i]) {
          source_.notices.push_back(fmt::format("{}: {}", describe(counter.place), *why_[i]));
        }
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

  // What no machine does without: of a whole machine, a package or its memory.
  bool always_moves(std::size_t i) const {
    return is_package(i) || place(i).kind == DomainKind::kDram ||
           place(i).kind == DomainKind::kPlatform;
  }

  // Each package needs to move; without one, all others that always do.
  bool is_enough() const {
    const auto is_read = [&](std::size_t i) { return !why_[i] && !reads_[i].failed; };
    bool any_package = false;
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      any_package = any_package || (is_package(i) && is_read(i));
    }
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      if (!is_read(i) || !(any_package ? is_package(i) : always_moves(i))) continue;
      const auto same = std::ranges::count_if(source_.counters, [](auto& c) {
        return c.place.kind == DomainKind::kCpu || c.place.kind == DomainKind::kPlatform ||
               c.place.kind == DomainKind::kDram;
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

  // The MSR of a package, through memory: used where the MSR itself stands still.
  void find_mirrors() {
    for (std::size_t i = 0; i < why_.size(); ++i) {
      if (why_[i] || !source_.counters[i].is_mirror) continue;
      for (std::size_t j = 0; j < i && !why_[i]; ++j) {
        if (why_[j] || !(place(j) == place(i))) continue;
        why_[i] = fmt::format("{} is the register of {} once more; it is counted once",
                              source_.counters[i].name, source_.counters[j].name);
      }
    }
  }

  void find_still() {
    for (std::size_t i = 0; i < why_.size(); ++i) {
      if (!always_moves(i) || why_[i] || reads_[i].failed) continue;
      if (reads_[i].first.empty() || reads_[i].moved()) continue;
      is_lost_[i] = true;
      why_[i] = fmt::format(
          "{} stands still at {:.1f} J (read for {:.0f} ms): the machine is a guest, or the sensor "
          "is stuck",
          source_.counters[i].name, reads_[i].first.front().joules(), seconds(length_) * 1e3);
    }
  }

  void find_equal() {
    for (std::size_t i = 0; i < why_.size(); ++i) {
      for (std::size_t j = i + 1; j < why_.size(); ++j) {
        const std::size_t kept = !is_package(i) && is_package(j) ? j : i;
        const std::size_t other = kept == i ? j : i;
        if (why_[i] || why_[j] || !may_be_equal(i, j) || !are_equal(i, j)) continue;
        const std::string name =
            place(kept) == place(other) ? source_.counters[kept].name : describe(place(kept));
        why_[other] =
            fmt::format("{} moves as {} does: both count the same energy, which is counted once",
                        source_.counters[other].name, name);
        is_lost_[other] = place(kept).kind != place(other).kind;
      }
    }
  }

  bool may_be_equal(std::size_t i, std::size_t j) const {
    if (place(i).kind == place(j).kind) return true;
    const auto is = [&](std::size_t a, std::size_t b) {
      return is_package(a) &&
             (place(b).kind == DomainKind::kPlatform ||
              (place(b).kind == DomainKind::kDram && place(a).package == place(b).package));
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
  std::vector<bool> is_lost_;  // no other counter has this energy as a domain of its own
  std::vector<bool> is_seen_;  // left out for its values, not for its name
  Duration length_{};
};

}  // namespace

void leave_out_misleading(Source& source, Duration longest,
                          const std::function<void(Duration)>& sleep) {
  Watch(source, longest, sleep).leave_out();
}

}  // namespace jouleprof::meters::rapl
