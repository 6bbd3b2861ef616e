#include "session/windows/run_monitor.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "session/windows/run_link.h"
#include "session/windows/session_socket.h"

namespace jouleprof::session {
namespace {

using namespace std::chrono_literals;

constexpr int kPatienceMilliseconds = 2000;  // until the tool accepts the connection
constexpr Duration kPatience = 5s;           // for a snapshot
constexpr Duration kMostTimeout = 24h;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

// `rings`: a descriptor to hand over; -1: none.
Result<Welcome> greet(int fd, int rings) {
  if (!send_with_descriptor(fd, encode(Hello{}), rings)) {
    return fail(Errc::kUnavailable, "`jouleprof run` does not listen");
  }
  pollfd poll{fd, POLLIN, 0};
  if (::poll(&poll, 1, kPatienceMilliseconds) != 1) {
    return fail(Errc::kTimeout, "`jouleprof run` does not answer: is it stopped?");
  }
  std::string buffer(kLongestPacket, '\0');
  const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (n <= 0) return fail(Errc::kUnavailable, "`jouleprof run` has ended");
  auto message = decode_tool_message({buffer.data(), static_cast<std::size_t>(n)});
  if (!message) return forward_error(message);
  if (auto* welcome = std::get_if<Welcome>(&*message)) {
    if (welcome->protocol == kWindowProtocol) return std::move(*welcome);
  }
  const auto* refused = std::get_if<Refused>(&*message);
  return fail(Errc::kUnsupported, refused ? refused->message
                                          : "`jouleprof run` is of another version than this "
                                            "program's jouleprof");
}

// Those that the program asks for, or can see, of what the machine has.
struct Choice {
  std::vector<model::Domain> domains;
  std::vector<model::DomainId> visible_boards;
};
Result<Choice> choose(const Welcome& welcome, const RunMonitorOptions& options) {
  std::vector<model::Domain> all;
  for (const auto& offered : welcome.domains) {
    all.push_back(offered.domain);
    all.back().visible = true;  // the command's boards, of which this program may see others
  }
  const auto choice = choose_devices(all, options.devices, options.environment);
  if (!choice) return forward_error(choice);
  std::vector<model::Domain> chosen;
  std::unordered_map<model::DomainId, bool> has;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_named = options.devices.is_named();
    if (!choice->chosen[i] || (!is_named && !welcome.domains[i].measured)) continue;
    if (!welcome.domains[i].measured) {
      all[i].unavailable_reason = "the `jouleprof run` around this program does not measure it";
    }
    has[all[i].id] = true;
    chosen.push_back(std::move(all[i]));
  }
  for (auto& domain : chosen) {
    if (domain.parent && !has.contains(*domain.parent)) domain.parent.reset();
  }
  return Choice{std::move(chosen), choice->visibility.order};
}

std::string no_sensor(const model::Domain& domain) {
  return domain.unavailable_reason.empty() ? "no sensor" : domain.unavailable_reason;
}

// In the order of `domains`.
EnergySource::Energies arranged(const std::vector<model::Domain>& domains, FoundEnergies& found) {
  EnergySource::Energies energies;
  for (const auto& domain : domains) {
    const auto known = std::find_if(found.energies.begin(), found.energies.end(),
                                    [&](const auto& e) { return e.domain == domain.id; });
    if (known != found.energies.end()) {
      energies.push_back(std::move(known->energy));
    } else {
      energies.push_back(fail(Errc::kUnavailable, no_sensor(domain)));
    }
  }
  return energies;
}

}  // namespace

Result<std::unique_ptr<RunMonitor>> RunMonitor::connect(const std::filesystem::path& socket,
                                                        RunMonitorOptions options) {
  const auto fd = connect_to_session(socket);
  if (!fd) return tl::unexpected(fd.error());
  Descriptor connection(*fd);
  auto rings = std::make_unique<spans::SharedRings>();
  const auto welcome = greet(connection.get(), rings->fd());
  if (!welcome) return tl::unexpected(welcome.error());
  auto choice = choose(*welcome, options);
  if (!choice) return forward_error(choice);
  Devices devices;
  for (const auto& domain : choice->domains) devices.domains.push_back(domain.id);
  if (!send_with_descriptor(connection.get(), encode(devices), -1)) {
    return fail(Errc::kUnavailable, "`jouleprof run` does not listen");
  }
  auto link = std::make_unique<RunLink>(connection.release(), std::move(rings));
  return std::unique_ptr<RunMonitor>(new RunMonitor(std::move(link), std::move(choice->domains),
                                                    std::move(choice->visible_boards)));
}

RunMonitor::RunMonitor(std::unique_ptr<RunLink> link, std::vector<model::Domain> domains,
                       std::vector<model::DomainId> visible_boards)
    : domains_(std::move(domains)),
      visible_boards_(std::move(visible_boards)),
      link_(std::move(link)) {}

RunMonitor::~RunMonitor() {
  if (!in_forked_child()) return;
  ::close(link_->fd());
  (void)link_.release();
}

std::uint32_t RunMonitor::name(std::string_view text) {
  return check_process() ? link_->name(text) : 0;
}

void RunMonitor::begin(const spans::OpenWindow& window) noexcept { link_->begin(window); }

void RunMonitor::forget(const spans::OpenWindow& window) noexcept { link_->forget(window); }

void RunMonitor::add(const spans::WindowRecord& window) noexcept { link_->add(window); }

Result<EnergySource::Energies> RunMonitor::energy(HostTime begin, HostTime end, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  if (end < begin) return fail(Errc::kInvalidArgument, "the window ends before it begins");
  EnergyQuestion question;
  question.begin = begin;
  question.end = end;
  auto found = link_->ask(question, std::clamp<Duration>(timeout, 0s, kMostTimeout));
  if (!found) return forward_error(found);
  return arranged(domains_, *found);
}

Result<analysis::WindowTotal> RunMonitor::total(std::uint32_t name, Duration timeout) {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  TotalQuestion question;
  question.name = name;
  auto found = link_->ask(question, std::clamp<Duration>(timeout, 0s, kMostTimeout));
  if (!found) return forward_error(found);
  return analysis::WindowTotal{found->count, found->resolved_count, found->length,
                               arranged(domains_, *found)};
}

Result<model::Snapshot> RunMonitor::snapshot() {
  if (auto ok = check_process(); !ok) return forward_error(ok);
  SnapshotQuestion question;
  question.since = begin_;
  auto found = link_->ask(question, kPatience);
  if (!found) return forward_error(found);
  if (!found->snapshot) return fail(Errc::kCorrupt, "`jouleprof run` sent no snapshot");
  model::Snapshot snapshot = std::move(*found->snapshot);
  auto reported = std::exchange(snapshot.domains, {});
  for (const auto& domain : domains_) {
    const auto known = std::find_if(reported.begin(), reported.end(),
                                    [&](const auto& d) { return d.domain.id == domain.id; });
    auto& out = snapshot.domains.emplace_back();
    if (known != reported.end()) out = std::move(*known);
    if (known == reported.end()) out.reason = no_sensor(domain);
    out.domain = domain;
  }
  return snapshot;
}

}  // namespace jouleprof::session
