#include "nvml_sim/core/simulator.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

namespace jouleprof::nvml_sim {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::int64_t real_now_ns() { return RealClock::now().time_since_epoch().count(); }

}  // namespace

Settings Settings::from_environment() {
  return {environment("JOULEPROF_NVML_SCENARIO"), environment("JOULEPROF_NVML_EPOCH"),
          environment("JOULEPROF_NVML_STATE")};
}

Result<std::unique_ptr<Simulator>> Simulator::open(const Settings& settings) {
  auto scenario = settings.scenario.empty() ? Result<Scenario>(default_scenario())
                                            : load_scenario(settings.scenario);
  if (!scenario) return forward_error(scenario);
  std::int64_t epoch_ns = real_now_ns();
  if (!settings.epoch.empty()) {
    const auto seconds = parse_number(settings.epoch);
    if (!seconds || *seconds < 0 || *seconds > 4e9) {
      return fail(Errc::kInvalidArgument,
                  fmt::format("JOULEPROF_NVML_EPOCH is '{}'; it must be seconds since 1970",
                              settings.epoch));
    }
    epoch_ns = std::llround(*seconds * 1e6) * 1000;
  }
  return std::make_unique<Simulator>(std::move(*scenario), epoch_ns, settings.state);
}

Simulator::Simulator(Scenario scenario, std::int64_t epoch_ns, std::filesystem::path state)
    : scenario_(std::move(scenario)),
      epoch_ns_(epoch_ns),
      state_(std::move(state)),
      faults_(scenario_.faults) {
  for (const DeviceSpec& spec : scenario_.devices) {
    devices_.push_back(std::make_unique<SimDevice>(spec, static_cast<unsigned>(devices_.size()),
                                                   faults_, epoch_ns_));
  }
}

double Simulator::to_seconds(std::int64_t real_ns) const {
  return static_cast<double>(real_ns - epoch_ns_) * 1e-9;
}

double Simulator::now() const { return to_seconds(real_now_ns()); }

std::int64_t Simulator::to_real_us(double seconds) const {
  return (epoch_ns_ + std::llround(seconds * 1e9)) / 1000;
}

Result<void> Simulator::set_limit(unsigned device, double watts) {
  if (!state_.empty()) return share(fmt::format("{} {}", device, shortest(watts)));
  devices_[device]->set_limit(now(), watts);
  return {};
}

Result<void> Simulator::lock_clock(unsigned device, std::optional<double> mhz) {
  if (!state_.empty()) {
    return share(fmt::format("{} clock {}", device, mhz ? shortest(*mhz) : "unlocked"));
  }
  devices_[device]->lock_clock(now(), mhz);
  return {};
}

Result<void> Simulator::lock_memory_clock(unsigned device, std::optional<double> mhz) {
  if (!state_.empty()) {
    return share(fmt::format("{} memory-clock {}", device, mhz ? shortest(*mhz) : "unlocked"));
  }
  devices_[device]->lock_memory_clock(now(), mhz);
  return {};
}

Result<void> Simulator::share(const std::string& setting) {
  const std::string line = fmt::format("{} {}\n", real_now_ns(), setting);
  const int fd = ::open(state_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  // One write of a short line to a file opened for appending is atomic between processes.
  const bool written =
      fd >= 0 && ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int err = errno;
  if (fd >= 0) ::close(fd);
  if (!written) {
    return tl::unexpected(
        system_error(fmt::format("cannot write JOULEPROF_NVML_STATE {}", state_.string()), err));
  }
  take_shared_settings();
  return {};
}

void Simulator::take_shared_settings() {
  if (state_.empty()) return;
  const std::lock_guard lock(state_mutex_);
  struct stat info {};
  if (::stat(state_.c_str(), &info) != 0 || static_cast<std::size_t>(info.st_size) <= state_read_) {
    return;
  }
  const auto text = read_file(state_);
  if (!text) return;
  for (std::size_t end; (end = text->find('\n', state_read_)) != std::string::npos;
       state_read_ = end + 1) {
    const auto fields =
        split_blanks(std::string_view(*text).substr(state_read_, end - state_read_));
    if (fields.size() < 3) continue;
    const auto at = parse_integer(fields[0]);
    const auto device = parse_integer(fields[1]);
    const auto value = parse_number(fields.back());
    if (!at || !device || *device < 0 || *device >= static_cast<std::int64_t>(devices_.size())) {
      continue;
    }
    SimDevice& changed = *devices_[static_cast<std::size_t>(*device)];
    if (fields.size() == 4 && fields[2] == "clock") {
      changed.lock_clock(to_seconds(*at), value);
    } else if (fields.size() == 4 && fields[2] == "memory-clock") {
      changed.lock_memory_clock(to_seconds(*at), value);
    } else if (fields[2] == "refused" || fields[2] == "accepted") {
      changed.refuse_settings(fields[2] == "refused");
    } else if (fields.size() == 3 && value) {
      changed.set_limit(to_seconds(*at), *value);
    }
  }
}

}  // namespace jouleprof::nvml_sim
