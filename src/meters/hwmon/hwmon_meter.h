// Power and energy sensors that drivers offer in /sys: AMD and Intel GPUs (hwmon, gpu_metrics),
// Jetson rails, NVIDIA Grace sockets, ACPI power meters; and the processes that use the GPUs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "meters/hwmon/board.h"
#include "meters/meter.h"
#include "model/domain.h"
#include "model/process/process.h"

namespace jouleprof::meters::hwmon {

// --- Which processes use the GPUs of the kernel's drivers: /proc/PID/fdinfo, and AMD's kfd ---
// https://docs.kernel.org/gpu/drm-usage-stats.html

// One open file of a graphics driver, as fdinfo shows it.
struct GpuClient {
  std::string bus_address;
  std::uint64_t id = 0;  // the same for all files that share it, also in other processes
  // Time of the engines that compute (not of copies and video), in ns; of xe cycles, of as many as
  // `total_cycles` in the same time.
  std::optional<std::uint64_t> busy;
  std::optional<std::uint64_t> total_cycles;
  std::optional<std::uint64_t> memory_bytes;  // on the board
};

// Absent for a file that is none, or without its device.
std::optional<GpuClient> parse_fdinfo(std::string_view text);

// Thread safety: none.
class GpuClients {
 public:
  // `domains`: of the boards, by their address on the bus.
  GpuClients(std::filesystem::path root, std::map<std::string, model::DomainId> domains);

  // Whether the machine has a /proc to look at.
  bool is_possible() const;

  // The processes that use the boards now. Utilisation is the mean since the call before; absent at
  // the first, and for those that compute by ROCm, whose queues the kernel does not time. Where
  // other users' files cannot be read, pid 0 stands for all of them, without a utilisation. Takes
  // about 20 us a process of the machine.
  std::vector<model::GpuProcessUse> read(HostTime now);

 private:
  struct Count {
    std::uint64_t busy = 0;
    std::uint64_t total_cycles = 0;
    HostTime at{};
  };
  struct Sum {
    std::optional<double> utilisation;
    std::optional<std::uint64_t> memory_bytes;
  };
  using Uses = std::map<std::pair<pid_t, model::DomainId>, Sum>;
  std::optional<double> share_of(const GpuClient& client, HostTime now);
  void add_kfd(Uses& uses) const;

  std::filesystem::path root_;
  std::map<std::string, model::DomainId> domains_;
  std::map<std::string, model::DomainId> kfd_ids_;  // the kfd's number of a board
  std::optional<HostTime> last_;
  std::map<std::pair<std::string, std::uint64_t>, Count> counts_;  // by address and client
};

// --- The power and energy inputs of the hwmon chips in /sys ---
// https://docs.kernel.org/hwmon/sysfs-interface.html

enum class Form {
  kPowerAverage,    // power<n>_average, uW
  kPowerInput,      // power<n>_input, uW
  kEnergyInput,     // energy<n>_input, uJ since the driver was loaded
  kVoltageCurrent,  // in<n>_input in mV times curr<n>_input in mA
  kZonePower,       // power_uw of a powercap zone: a mean over time_window_us
};

struct Channel {
  std::string driver;            // the chip's `name`: "amdgpu", "ina3221", "power_meter", ...
  std::string chip;              // "hwmon3": not the same after the next boot
  std::string bus_address;       // of the device behind it: "0000:03:00.0"; `chip` where unknown
  std::filesystem::path folder;  // where the inputs are
  std::filesystem::path device;  // the device's own folder
  Form form{};
  int number = 0;
  std::string label;  // as the driver or the firmware gives it; may be empty

  // "power1": what all the channel's files begin with.
  std::string input() const;
  // "power1_average"; for a product of two files, the first.
  std::string attribute() const;
  // "hwmon:amdgpu/power1_average": the same from boot to boot.
  std::string sensor_name() const;
};

// Every such input under <root>/sys/class/hwmon and of the `cards`, and ARM SCMI's powercap zones,
// in the order of drivers, devices and numbers. Of average and input of one power, both are listed;
// of voltage and current, only where the chip has no power of its own.
std::vector<Channel> find_channels(const std::filesystem::path& root,
                                   const std::vector<Board>& cards);

// The GPUs: the cards, and those that only a chip is known of.
std::vector<Board> find_boards(std::vector<Board> cards, const std::vector<Channel>& channels);

// Reads the channel: microwatts, or microjoules for kEnergyInput. Errors: as the kernel gives them;
// corrupt for what cannot be a power or an energy (negative, or above 100 kW: firmware that has
// nothing answers 4294967295 mW); unavailable for 0 W of a GPU, which none in use draws: the
// second die of a package has no sensor of its own.
Result<std::int64_t> read_channel(const Channel& channel);

// True when the driver reports this input as switched off.
bool is_switched_off(const Channel& channel);

// True while the kernel has switched the device off because nothing uses it (runtime power
// management). amdgpu then refuses reads; they succeed once work wakes the board up.
bool is_asleep(const Channel& channel);

// A whole number in another file of the channel, such as power1_average_interval; nothing where
// there is none.
std::optional<long long> read_setting(const Channel& channel, const std::string& attribute);

// --- What a hwmon channel measures, by its driver and its label; never a guess ---

struct Role {
  model::DomainKind kind{};
  std::string device;  // model::Domain::device
  std::string name;
  // The device and kind of the domain that contains this one.
  std::optional<model::DomainKind> parent_kind;
  std::string parent_device;
};

// amdgpu, nouveau, xe, i915: the board. An AMD APU's sensor sees its CPU cores too, so it is
// kModule. An Intel board's package is within its card; where the card has no counter, or one that
// stands at 0, the package is alone, and named as one. ina3221 (Jetson): by the name of the rail.
// power_meter (ACPI): the sockets of an NVIDIA Grace by their labels, else the machine. ina238: as
// ina3221. amd_hsmp_hwmon and amd_energy: the sockets of an EPYC. arm-scmi: what the firmware calls
// it, in no total.
// `all` are the machine's channels. Errors: unsupported when the channel's meaning is unknown.
Result<Role> role_of(const Channel& channel, const std::vector<Channel>& all,
                     const std::vector<Board>& boards);

// What a board whose whole is not measured lacks, in words for its domain.
std::string why_without_sensor(const Board& board, const std::vector<Channel>& all);

// True for what is only a part of another channel (one tile of an Intel GPU), the same power with
// another time constant (an APU's fast limit), or not connected.
bool is_uninteresting(const Channel& channel);

}  // namespace jouleprof::meters::hwmon

namespace jouleprof::meters {

struct HwmonOptions {
  std::filesystem::path root = "/";
  Demand demand = {};
  bool has_cpu = false;  // another meter counts the processors: no second figure for them
};

// One sensor and one probe a channel, each with its own period:
// - energy inputs and powers: every 100 ms; 10 ms (20 ms for powers) for windows below a second;
//   never more often than the driver renews them;
// - averages over more than 200 ms (kPowerAverage): twice per averaging time.
// - AMD's gpu_metrics: as an energy input; a counter whose unit the kernel names, and the socket's
//   power where hwmon has none;
// - the state of a GPU, as gauges: every 0.9 s.
// A demanded poll period replaces all of these but the last. Reads of power vary where it is not
// known how often the driver renews it: they are a period apart on average, and fall into all parts
// of it.
//
// A GPU without any sensor has a domain with the reason; one that is part of an Intel processor is
// in missing() only, because the processor's package contains its energy.
//
// Not thread safe, as every Meter. No privileges needed for the sensors.
class HwmonMeter : public Meter {
 public:
  // A channel that does not answer, is switched off, or whose meaning is unknown, is
  // in missing(). Errors: not_found when there is no power or energy channel and no GPU at all.
  static Result<std::unique_ptr<HwmonMeter>> open(const HwmonOptions& options = {});

  std::string name() const override { return "hwmon"; }
  HostTime read(std::size_t index, model::Readings& out) override;
  void set_demand(const Demand& demand) override;
  // Covers the GPUs that have a sensor.
  std::optional<Result<std::vector<model::GpuProcessUse>>> read_processes(
      model::Readings& out) override;

 private:
  using Read = std::function<void(model::Readings&)>;
  using Pace = std::function<Duration(const Demand&)>;

  HwmonMeter() = default;
  void add_channels(const std::vector<hwmon::Channel>& channels,
                    const std::vector<hwmon::Board>& boards, bool has_cpu);
  void add_channel(const hwmon::Channel& channel, const hwmon::Role& role);
  void add_board(const hwmon::Board& board, const std::vector<hwmon::Channel>& channels);
  void add_metrics(const hwmon::Board& board, model::DomainId domain);
  void add_state(const hwmon::Board& board, model::DomainId domain);
  model::Domain& get_domain(const hwmon::Role& role, const std::string& owner);
  bool has_sensor(model::DomainId domain) const;
  model::SensorId add_sensor(model::DomainId domain, model::SensorKind kind, std::string name,
                             model::SensorTraits traits = {});
  void add_probe(std::string name, std::vector<model::SensorId> sensors, Read read, Pace pace);
  bool is_varied(std::size_t index) const;

  std::vector<std::string> owners_;  // as domains_: the device and input that each stands for
  std::vector<Read> reads_;          // as probes_
  std::vector<Pace> paces_;          // as probes_
  std::vector<double> turns_;        // as probes_: where in its period the next read lies
  std::optional<hwmon::GpuClients> clients_;
};

}  // namespace jouleprof::meters
