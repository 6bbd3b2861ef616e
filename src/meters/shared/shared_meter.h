// A program's side of a hub: the connection, its sensors as a meter, and the meters that take its
// place.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meters/meter.h"
#include "meters/shared/hub_protocol.h"

namespace jouleprof::meters {

// A program's connection to a hub.
// Thread safety: one thread calls everything.
class HubLink {
 public:
  // Says hello, with a file descriptor if it is not -1, and takes the hub's list of what it
  // measures. Errors: not_found without a hub, permission_denied, unavailable (it refuses, does not
  // answer, or its clock is another one), unsupported (it is another version), corrupt.
  static Result<HubLink> connect(const std::filesystem::path& path, const Hello& hello,
                                 int descriptor = -1);
  HubLink(HubLink&& other) noexcept;
  HubLink& operator=(HubLink&&) = delete;
  HubLink(const HubLink&) = delete;
  ~HubLink();

  Duration fastest() const { return fastest_; }
  // Numbered from zero; each parent is one of them, and so is the domain of each sensor.
  const std::vector<OfferedDomain>& domains() const { return domains_; }
  const std::vector<model::Sensor>& sensors() const { return sensors_; }

  int fd() const { return fd_; }
  int release();  // the connection, which is then the caller's

  // Errors: unavailable when the hub is gone or takes nothing.
  Result<void> send(const ProgramMessage& message);
  // The next message; absent when none has come by `deadline`. Errors: unavailable when the hub
  // is gone or refuses, unsupported, corrupt.
  Result<std::optional<HubMessage>> receive(HostTime deadline);

 private:
  explicit HubLink(int fd) : fd_(fd), buffer_(kLongestPacket, '\0') {}
  Result<void> greet(const Hello& hello, int descriptor);
  Result<void> take(HubMessage& message);

  int fd_;
  std::string buffer_;
  Duration fastest_{};
  std::vector<OfferedDomain> domains_;
  std::vector<model::Sensor> sensors_;
};

}  // namespace jouleprof::meters

namespace jouleprof::meters::shared {

// Meters that take the place of a service in the middle of a measurement.
// Reads those of their sensors that are among the given ones: of the same device, name and kind.
// The readings have the given sensors' ids. Thread safety: one thread calls everything.
class OwnMeters {
 public:
  OwnMeters(std::vector<std::unique_ptr<Meter>> meters, const std::vector<model::Domain>& domains,
            const std::vector<model::Sensor>& sensors);

  // The given sensors that none of the meters has.
  const std::vector<model::Sensor>& absent() const { return absent_; }

  // Reads the probes that are due, or `all`. Returns when to read next.
  HostTime read(bool all, model::Readings& out);
  // Contract: that of Meter.
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(model::Readings& out);

 private:
  struct Source {
    std::unique_ptr<Meter> meter;
    std::vector<std::optional<model::SensorId>> sensors;  // by the meter's own ids
    std::vector<std::optional<model::DomainId>> domains;
    std::vector<std::size_t> probes;
    std::vector<HostTime> due;  // of its probes
  };

  HostTime read(Source& source, std::size_t probe, model::Readings& out);

  std::vector<Source> sources_;
  std::vector<model::Sensor> absent_;
  model::Readings scratch_;
};

}  // namespace jouleprof::meters::shared

namespace jouleprof::meters {

// --- The sensors of a hub that measures this machine, in place of a second sampler ---

struct SharedOptions {
  std::filesystem::path path;                               // of the hub's socket
  std::string hub = "the service that shared its sensors";  // for messages
  Demand demand;
  Duration process_period{};  // how often processes on the devices are wanted; zero: never
  // Whether this program can use a GPU; others are not Domain::visible. nullptr: as the hub says.
  std::function<bool(const model::Domain&)> can_use;
  // The machine's sensors for when the hub stops.
  std::function<std::vector<std::unique_ptr<Meter>>()> open_own;
};

// Its domains and sensors are those of the hub, with their names, provenance and traits, and so are
// its readings. Two probes: what the hub has sent; and all sensors now, which is read only when a
// session asks for all. Uses of GPUs by other users' processes come as one with pid 0.
//
// If the hub stops, stops answering or sends what cannot be understood, the machine's sensors are
// opened and read from then on. A notice names the time without readings; a failure of each sensor
// that cannot be read any more says so.
class SharedMeter final : public Meter {
 public:
  // Errors: as HubLink::connect's.
  static Result<std::unique_ptr<SharedMeter>> open(SharedOptions options);

  // Domains that the hub lists and does not measure.
  const std::vector<model::DomainId>& not_measured() const { return not_measured_; }

  std::string name() const override { return "service"; }
  HostTime read(std::size_t index, model::Readings& out) override;
  std::vector<std::string> take_notices() override;
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override;

 private:
  SharedMeter(SharedOptions options, HubLink link);
  Result<void> receive_sent(model::Readings& out);
  Result<void> read_now(model::Readings& out);
  Result<void> add(HubMessage& message, model::Readings& out);
  void fall_back(const Error& error, model::Readings& out);

  const SharedOptions options_;
  const Duration period_;
  std::optional<HubLink> link_;  // absent once it has stopped
  std::optional<shared::OwnMeters> own_;
  std::vector<model::DomainId> not_measured_;
  std::unordered_map<model::SensorId, model::SensorId> ids_;  // ours, by the hub's
  GpuUses uses_;
  HostTime newest_{};  // of the readings
  HostTime heard_{};   // when the latest message came
  std::uint64_t next_request_ = 1;
  std::vector<std::string> notices_;
};

}  // namespace jouleprof::meters
