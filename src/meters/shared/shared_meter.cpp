#include "meters/shared/shared_meter.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;

constexpr Duration kGreeting = 3s;
constexpr Duration kAnswer = 3s;    // to a request to read now
constexpr Duration kSilence = 15s;  // without a message, the service is asked whether it is there
constexpr Duration kClockOffset = 5s;        // by which the clocks may differ, for a slow machine
constexpr std::size_t kMostItems = 100'000;  // domains and sensors
constexpr std::size_t kMostUses = 100'000;   // that the session has not asked for

constexpr int kMostInTurn = 10'000;  // messages

enum Probes : std::size_t { kSent, kNow };

HostTime newest(const model::Readings& readings) {
  HostTime t{};
  for (const auto& r : readings.counters) t = std::max(t, r.after);
  for (const auto& r : readings.powers) t = std::max(t, r.at);
  return t;
}

}  // namespace

Result<std::unique_ptr<SharedMeter>> SharedMeter::open(SharedOptions options) {
  auto link = shared::ServiceLink::connect(options.path);
  if (!link) return forward_error(link);
  std::unique_ptr<SharedMeter> meter(new SharedMeter(std::move(options), std::move(*link)));
  if (const auto greeted = meter->greet(); !greeted) {
    Error error = greeted.error();
    error.message =
        fmt::format("{} (the service at {})", error.message, meter->options_.path.string());
    return tl::unexpected(std::move(error));
  }
  return meter;
}

SharedMeter::SharedMeter(SharedOptions options, shared::ServiceLink link)
    : options_(std::move(options)),
      period_(delivery_period(options_.demand)),
      link_(std::move(link)) {
  probes_.push_back({"what the service has sent", period_});
  probes_.push_back({"the service's sensors", std::chrono::hours{1}});
}

Result<void> SharedMeter::greet() {
  const HostTime deadline = HostClock::now() + kGreeting;
  if (auto sent = link_->send(
          ServiceHello{.demand = options_.demand, .process_period = options_.process_period});
      !sent) {
    return sent;
  }
  for (;;) {
    auto message = link_->receive(deadline);
    if (!message) return forward_error(message);
    if (!*message) return fail(Errc::kUnavailable, "it does not answer");
    if (std::holds_alternative<ServiceReady>(**message)) break;
    if (auto taken = take(**message); !taken) return taken;
  }
  for (auto& domain : domains_) {
    if (domain.parent && static_cast<std::size_t>(*domain.parent) >= domains_.size()) {
      return fail(Errc::kCorrupt, "a domain is part of one that does not exist");
    }
    if (options_.can_use) domain.visible = options_.can_use(domain);
  }
  heard_ = newest_ = HostClock::now();
  return {};
}

Result<void> SharedMeter::take(ServiceMessage& message) {
  if (const auto* refusal = std::get_if<ServiceRefusal>(&message)) {
    return fail(Errc::kUnavailable, refusal->message);
  }
  if (const auto* welcome = std::get_if<ServiceWelcome>(&message)) {
    if (welcome->protocol != kServiceProtocol) {
      return fail(Errc::kUnavailable,
                  fmt::format("it speaks version {} of the protocol, not {}: it is another version "
                              "of jouleprof",
                              welcome->protocol, kServiceProtocol));
    }
    if (std::chrono::abs(HostClock::now() - welcome->now) > kClockOffset) {
      return fail(Errc::kUnavailable, "its clock is not that of this program (a time namespace?)");
    }
    const Demand allowed = bounded_demand(options_.demand, welcome->fastest);
    if (allowed.shortest_window > options_.demand.shortest_window) {
      notices_.push_back(fmt::format(
          "sensors are read at most every {:g} ms by the service at {}: shorter windows have wider "
          "intervals",
          seconds(welcome->fastest) * 1e3, options_.path.string()));
    }
    return {};
  }
  if (auto* domain = std::get_if<model::Domain>(&message)) {
    if (static_cast<std::size_t>(domain->id) == domains_.size() && domains_.size() < kMostItems) {
      domains_.push_back(std::move(*domain));
      return {};
    }
  } else if (auto* sensor = std::get_if<model::Sensor>(&message)) {
    const model::SensorId own{static_cast<std::uint32_t>(sensors_.size())};
    if (sensors_.size() < kMostItems &&
        static_cast<std::size_t>(sensor->domain) < domains_.size() &&
        ids_.emplace(sensor->id, own).second) {
      sensor->id = own;
      sensors_.push_back(std::move(*sensor));
      return {};
    }
  }
  return fail(Errc::kCorrupt, "its list of sensors cannot be understood");
}

HostTime SharedMeter::read(std::size_t index, model::Readings& out) {
  if (own_) {
    const HostTime next = own_->read(index == kNow, out);
    return index == kNow ? HostTime::max() : std::min(next, HostClock::now() + period_);
  }
  const bool is_silent = HostClock::now() - heard_ > kSilence;
  const auto done = index == kNow || is_silent ? read_now(out) : receive_sent(out);
  newest_ = std::max(newest_, newest(out));
  if (!done) fall_back(done.error(), out);
  return index == kNow ? HostTime::max() : HostClock::now() + period_;
}

Result<void> SharedMeter::receive_sent(model::Readings& out) {
  for (int n = 0; n < kMostInTurn; ++n) {
    auto message = link_->receive(HostTime{});
    if (!message) return forward_error(message);
    if (!*message) return {};
    if (auto added = add(**message, out); !added) return added;
  }
  return {};
}

Result<void> SharedMeter::read_now(model::Readings& out) {
  const std::uint64_t id = next_request_++;
  const HostTime deadline = HostClock::now() + kAnswer;
  if (auto sent = link_->send(ReadRequest{id}); !sent) {
    (void)receive_sent(out);  // what it sent before it stopped
    return sent;
  }
  for (;;) {
    auto message = link_->receive(deadline);
    if (!message) return forward_error(message);
    if (!*message) {
      return fail(Errc::kTimeout, fmt::format("the service that shared its sensors has not "
                                              "answered for {:g} s",
                                              seconds(kAnswer)));
    }
    if (const auto* done = std::get_if<ReadDone>(&**message); done && done->id == id) return {};
    if (auto added = add(**message, out); !added) return added;
  }
}

Result<void> SharedMeter::add(ServiceMessage& message, model::Readings& out) {
  heard_ = HostClock::now();
  const auto append = [this](auto& from, auto& to) {
    for (auto& item : from) {
      const auto own = ids_.find(item.sensor);
      if (own == ids_.end()) continue;
      item.sensor = own->second;
      to.push_back(std::move(item));
    }
  };
  if (auto* readings = std::get_if<model::Readings>(&message)) {
    append(readings->counters, out.counters);
    append(readings->powers, out.powers);
    append(readings->gauges, out.gauges);
    append(readings->failures, out.failures);
    return {};
  }
  if (auto* uses = std::get_if<GpuUses>(&message)) {
    if (uses_.size() < kMostUses) uses_.insert(uses_.end(), uses->begin(), uses->end());
    return {};
  }
  if (std::holds_alternative<ReadDone>(message)) return {};  // of a request that waits no more
  return fail(Errc::kCorrupt, "the service sent what its protocol does not have");
}

void SharedMeter::fall_back(const Error& why, model::Readings& out) {
  link_.reset();
  own_.emplace(options_.open_own ? options_.open_own() : std::vector<std::unique_ptr<Meter>>{},
               domains_, sensors_);
  own_->read(true, out);
  const HostTime now = HostClock::now();
  notices_.push_back(fmt::format(
      "{}; jouleprof reads the sensors itself from now on, after {:.3f} s without readings",
      why.message, seconds(now - newest_)));
  for (const auto& sensor : own_->absent()) {
    out.failures.push_back(
        {sensor.id,
         now,
         {Errc::kUnavailable, why.message + ", and jouleprof cannot read this sensor itself"}});
  }
}

std::vector<std::string> SharedMeter::take_notices() { return std::exchange(notices_, {}); }

std::optional<Result<std::vector<model::GpuProcessUse>>> SharedMeter::read_processes(
    model::Readings& out) {
  if (own_) return own_->read_processes(out);
  return std::exchange(uses_, {});
}

}  // namespace jouleprof::meters
