#include "meters/shared/shared_meter.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <numeric>
#include <utility>

#include "base/process/local_socket.h"
#include "base/process/threads.h"

namespace jouleprof::meters {
namespace {

using namespace std::chrono_literals;

constexpr Duration kAnswer = 3s;    // to a request to read now
constexpr Duration kSilence = 15s;  // without a message, the hub is asked whether it is there
constexpr std::size_t kMostUses = 100'000;  // that the session has not asked for

constexpr int kMostInTurn = 10'000;  // messages

enum Probes : std::size_t { kSent, kNow };

HostTime newest(const model::Readings& readings) {
  HostTime t{};
  for (const auto& r : readings.counters) t = std::max(t, r.after);
  for (const auto& r : readings.powers) t = std::max(t, r.at);
  return t;
}

constexpr Duration kGreeting = 3s;
constexpr Duration kClockOffset = 5s;        // by which the clocks may differ, for a slow machine
constexpr std::size_t kMostItems = 100'000;  // domains and sensors

tl::unexpected<Error> gone() { return fail(Errc::kUnavailable, "it has stopped"); }

tl::unexpected<Error> closed_here() {
  return fail(Errc::kUnavailable, "it cannot be asked: this program closed the connection");
}

tl::unexpected<Error> other_version(int protocol) {
  return fail(Errc::kUnsupported,
              fmt::format("it speaks version {} of the protocol, not {}: it is another version of "
                          "jouleprof",
                          protocol, kHubProtocol));
}

}  // namespace

Result<HubLink> HubLink::connect(const std::filesystem::path& path, const Hello& hello,
                                 int descriptor) {
  const auto fd =
      connect_locally(path, fmt::format("cannot connect to the service at {}", path.string()));
  if (!fd) return forward_error(fd);
  HubLink link(*fd);
  if (auto greeted = link.greet(hello, descriptor); !greeted) {
    greeted.error().message += fmt::format(" (the service at {})", path.string());
    return forward_error(greeted);
  }
  return link;
}

HubLink::HubLink(HubLink&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      buffer_(std::move(other.buffer_)),
      fastest_(other.fastest_),
      domains_(std::move(other.domains_)),
      sensors_(std::move(other.sensors_)) {}

HubLink::~HubLink() {
  if (fd_ >= 0) disconnect(fd_);
}

int HubLink::release() { return std::exchange(fd_, -1); }

Result<void> HubLink::greet(const Hello& hello, int descriptor) {
  const HostTime deadline = HostClock::now() + kGreeting;
  if (!send_with_descriptor(fd_, encode(ProgramMessage(hello)), descriptor) && errno != EPIPE &&
      errno != ECONNRESET) {
    return gone();
  }
  for (;;) {
    auto message = receive(deadline);
    if (!message) return forward_error(message);
    if (!*message) return fail(Errc::kUnavailable, "it does not answer");
    if (std::holds_alternative<Ready>(**message)) break;
    if (auto taken = take(**message); !taken) return taken;
  }
  for (const auto& [domain, measured] : domains_) {
    if (domain.parent && static_cast<std::size_t>(*domain.parent) >= domains_.size()) {
      return fail(Errc::kCorrupt, "a domain is part of one that does not exist");
    }
  }
  return {};
}

Result<void> HubLink::take(HubMessage& message) {
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    if (welcome->protocol != kHubProtocol) return other_version(welcome->protocol);
    if (std::chrono::abs(HostClock::now() - welcome->now) > kClockOffset) {
      return fail(Errc::kUnavailable, "its clock is not that of this program (a time namespace?)");
    }
    fastest_ = welcome->fastest;
    return {};
  }
  if (auto* offered = std::get_if<OfferedDomain>(&message)) {
    if (static_cast<std::size_t>(offered->domain.id) == domains_.size() &&
        domains_.size() < kMostItems) {
      domains_.push_back(std::move(*offered));
      return {};
    }
  } else if (auto* sensor = std::get_if<model::Sensor>(&message)) {
    if (sensors_.size() < kMostItems &&
        static_cast<std::size_t>(sensor->domain) < domains_.size()) {
      sensors_.push_back(std::move(*sensor));
      return {};
    }
  }
  return fail(Errc::kCorrupt, "its list of sensors cannot be understood");
}

Result<void> HubLink::send(const ProgramMessage& message) {
  if (!is_connected(fd_)) return closed_here();
  const std::string packet = encode(message);
  while (::send(fd_, packet.data(), packet.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    if (errno == EINTR) continue;
    // It has closed the connection; why is in what it sent before, which receive() finds.
    if (errno == EPIPE || errno == ECONNRESET) return {};
    return gone();
  }
  return {};
}

Result<std::optional<HubMessage>> HubLink::receive(HostTime deadline) {
  bool was_reset = false;
  for (;;) {
    if (!is_connected(fd_)) return closed_here();
    const ssize_t n = ::recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT | MSG_TRUNC);
    if (n > 0) {
      const auto size = static_cast<std::size_t>(n);
      if (size > buffer_.size()) return fail(Errc::kCorrupt, "a message is too long");
      auto message = decode_hub_message({buffer_.data(), size});
      if (!message) return forward_error(message);
      if (const auto* refused = std::get_if<Refused>(&*message)) {
        if (refused->protocol != kHubProtocol) return other_version(refused->protocol);
        return fail(Errc::kUnavailable, refused->message);
      }
      return std::optional(std::move(*message));
    }
    if (n < 0 && errno == EINTR) continue;
    // It closed with a message of ours unread: the kernel says so before it gives the last answer.
    if (n < 0 && errno == ECONNRESET && !std::exchange(was_reset, true)) continue;
    if (n == 0 || errno != EAGAIN) return gone();
    if (HostClock::now() >= deadline) return std::optional<HubMessage>{};
    pollfd poll{fd_, POLLIN, 0};
    ::poll(&poll, 1, milliseconds_until(deadline));
  }
}

Result<std::unique_ptr<SharedMeter>> SharedMeter::open(SharedOptions options) {
  auto link = HubLink::connect(
      options.path, Hello{.demand = options.demand, .process_period = options.process_period});
  if (!link) return forward_error(link);
  return std::unique_ptr<SharedMeter>(new SharedMeter(std::move(options), std::move(*link)));
}

SharedMeter::SharedMeter(SharedOptions options, HubLink link)
    : options_(std::move(options)),
      period_(delivery_period(options_.demand)),
      link_(std::move(link)) {
  probes_.push_back({"what the service has sent", period_});
  probes_.push_back({"the service's sensors", std::chrono::hours{1}});
  for (const auto& offered : link_->domains()) {
    auto& domain = domains_.emplace_back(offered.domain);
    if (options_.can_use) domain.visible = options_.can_use(domain);
    if (!offered.measured) not_measured_.push_back(domain.id);
  }
  for (model::Sensor sensor : link_->sensors()) {
    const model::SensorId own{static_cast<std::uint32_t>(sensors_.size())};
    ids_[sensor.id] = own;
    sensor.id = own;
    sensors_.push_back(std::move(sensor));
  }
  const Demand allowed = bounded_demand(options_.demand, link_->fastest());
  if (allowed.shortest_window > options_.demand.shortest_window) {
    notices_.push_back(fmt::format(
        "sensors are read at most every {:g} ms by the service at {}: shorter windows have wider "
        "intervals",
        seconds(link_->fastest()) * 1e3, options_.path.string()));
  }
  heard_ = newest_ = HostClock::now();
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
      return fail(Errc::kTimeout, fmt::format("it has not answered for {:g} s", seconds(kAnswer)));
    }
    if (const auto* done = std::get_if<ReadDone>(&**message); done && done->id == id) return {};
    if (auto added = add(**message, out); !added) return added;
  }
}

Result<void> SharedMeter::add(HubMessage& message, model::Readings& out) {
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
  return fail(Errc::kCorrupt, "it sent what its protocol does not have");
}

void SharedMeter::fall_back(const Error& error, model::Readings& out) {
  const bool is_of_hub = error.message.starts_with("it ");
  const std::string why =
      fmt::format("{}{}", options_.hub, is_of_hub ? error.message.substr(2) : ": " + error.message);
  link_.reset();
  own_.emplace(options_.open_own ? options_.open_own() : std::vector<std::unique_ptr<Meter>>{},
               domains_, sensors_);
  own_->read(true, out);
  const HostTime now = HostClock::now();
  notices_.push_back(fmt::format(
      "{}; jouleprof reads the sensors itself from now on, after {:.3f} s without readings", why,
      seconds(now - newest_)));
  for (const auto& sensor : own_->absent()) {
    out.failures.push_back(
        {sensor.id,
         now,
         {Errc::kUnavailable, why + ", and jouleprof cannot read this sensor itself"}});
  }
}

std::vector<std::string> SharedMeter::take_notices() { return std::exchange(notices_, {}); }

std::optional<Result<std::vector<model::GpuProcessUse>>> SharedMeter::read_processes(
    model::Readings& out) {
  if (own_) return own_->read_processes(out);
  return std::exchange(uses_, {});
}

}  // namespace jouleprof::meters

namespace jouleprof::meters::shared {
namespace {

bool is_same(const model::Domain& a, const model::Domain& b) {
  if (a.kind != b.kind) return false;
  return a.uuid.empty() ? a.device == b.device && b.uuid.empty() : a.uuid == b.uuid;
}

// The powers of a model are means over its own period.
bool is_same(const model::Sensor& a, const model::Sensor& b) {
  return a.kind == b.kind && a.name == b.name && a.provenance == b.provenance &&
         (a.provenance != model::Provenance::kEstimated || a.traits.window == b.traits.window);
}

}  // namespace

OwnMeters::OwnMeters(std::vector<std::unique_ptr<Meter>> meters,
                     const std::vector<model::Domain>& domains,
                     const std::vector<model::Sensor>& sensors)
    : absent_(sensors) {
  for (auto& meter : meters) {
    Source source;
    for (const auto& own : meter->domains()) {
      const auto found =
          std::ranges::find_if(domains, [&own](const auto& d) { return is_same(d, own); });
      source.domains.push_back(found != domains.end() ? std::optional(found->id) : std::nullopt);
    }
    for (const auto& own : meter->sensors()) {
      const auto domain = source.domains.at(static_cast<std::size_t>(own.domain));
      const auto found = std::ranges::find_if(
          absent_, [&](const auto& s) { return domain && s.domain == *domain && is_same(s, own); });
      source.sensors.emplace_back();
      if (found == absent_.end()) continue;
      source.sensors.back() = found->id;
      absent_.erase(found);
    }
    source.due.resize(meter->probes().size());
    source.probes.resize(source.due.size());
    std::iota(source.probes.begin(), source.probes.end(), std::size_t{0});
    source.meter = std::move(meter);
    sources_.push_back(std::move(source));
  }
}

HostTime OwnMeters::read(bool all, model::Readings& out) {
  HostTime next = HostTime::max();
  for (auto& source : sources_) {
    for (std::size_t probe = 0; probe < source.due.size(); ++probe) {
      if (all || source.due[probe] <= HostClock::now() + std::chrono::milliseconds{1}) {
        source.due[probe] = read(source, probe, out);
      }
    }
    end_waits(*source.meter, source.probes, source.due,
              [&](std::size_t probe) { return read(source, probe, out); });
    for (const HostTime due : source.due) next = std::min(next, due);
  }
  return next;
}

HostTime OwnMeters::read(Source& source, std::size_t probe, model::Readings& out) {
  scratch_.clear();
  const HostTime due = source.meter->read(probe, scratch_);
  model::move_renumbered(scratch_, out, source.sensors);
  return due;
}

std::optional<Result<std::vector<model::GpuProcessUse>>> OwnMeters::read_processes(
    model::Readings& out) {
  std::optional<Result<std::vector<model::GpuProcessUse>>> all;
  for (auto& source : sources_) {
    scratch_.clear();
    auto uses = source.meter->read_processes(scratch_);
    model::move_renumbered(scratch_, out, source.sensors);
    if (!uses) continue;
    if (!*uses) return uses;
    if (!all) all.emplace();
    model::move_renumbered(**uses, **all, &model::GpuProcessUse::domain, source.domains);
  }
  return all;
}

}  // namespace jouleprof::meters::shared
