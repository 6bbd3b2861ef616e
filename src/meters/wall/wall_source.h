// Meters at a machine's power supply, read while a program runs.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/process/descriptor.h"
#include "base/result.h"
#include "jouleprof/units.h"
#include "meters/meter.h"

namespace jouleprof::meters {

struct WallReading {
  Power power;                        // that the machine takes in
  std::optional<Duration> mean_over;  // where the meter says so
};

// No read takes longer.
inline constexpr Duration kWallPatience = std::chrono::seconds{5};

// Thread safety: one thread calls everything.
class WallSource {
 public:
  virtual ~WallSource() = default;
  WallSource(const WallSource&) = delete;
  WallSource& operator=(const WallSource&) = delete;

  // Blocks until the meter answers. Errors: timeout, unavailable, permission_denied; corrupt for an
  // answer without a power between 0 and 1 MW.
  virtual Result<WallReading> read() = 0;

 protected:
  WallSource() = default;
};

// "KIND[,KEY=VALUE...][:ADDRESS]", as a user gives it:
// - "ipmi": the BMC by /dev/ipmi0, else by freeipmi's ipmi-dcmi;
// - "redfish:https://BMC": the first chassis that reports its power; with a path, that resource:
//   EnvironmentMetrics, Power, or the metrics of a power supply;
// - "snmp,oid=OID[,unit=WATTS]:HOST" by snmpget, with the version and community of its snmp.conf;
// - "shelly:HOST", "tasmota:HOST": plugs, with their own web server;
// - "command:COMMAND": the first number that a shell's command prints, in watts.
// Keys of all: error=PERCENT (the meter's, at 95 %), every=TIME, mean=TIME (each value is the mean
// of the time before), credentials=FILE ("user:password"; else JOULEPROF_WALL_CREDENTIALS has it),
// ca=FILE (whose certificates are trusted), check=no (no certificate is needed).
struct WallSpec {
  std::string kind;
  std::string address;
  std::map<std::string, std::string> keys;

  double gain_error = 0.05;
  Duration every = std::chrono::seconds{1};
  std::optional<Duration> mean_over;

  // Without what may be secret: "redfish:https://bmc", "command".
  std::string name() const {
    return address.empty() || kind == "command" ? kind : kind + ":" + address;
  }
};

// Errors: invalid_argument, also for credentials in the text.
Result<WallSpec> parse_wall_spec(std::string_view text);

// --- A meter at the wall as a domain of its own ---

struct WallOptions {
  std::string spec;  // of parse_wall_spec
  std::string device = "wall";
  Demand demand = {};
};

// A domain of kind kPlatform: it contains all others, and no total has it. A reading is
// taken as often as the specification says, or at Demand::poll_period where that is longer.
class WallMeter : public Meter {
 public:
  // One that does not answer now is asked again with each read(). Errors: as of parse_wall_spec;
  // not_found without what reads it; as of WallSource::read(), for a first reading, other than
  // timeout and unavailable.
  static Result<std::unique_ptr<WallMeter>> open(const WallOptions& options);

  std::string name() const override { return "wall meter"; }
  HostTime read(std::size_t index, model::Readings& out) override;  // blocks up to kWallPatience
  void set_demand(const Demand& demand) override;
  const std::optional<Error>& absent() const { return absent_; }  // why there was no first reading

 private:
  Result<WallReading> read_source();
  WallMeter(WallSpec spec, std::unique_ptr<WallSource> source);

  WallSpec spec_;
  std::unique_ptr<WallSource> source_;  // null: not found yet
  std::optional<Error> absent_;
  bool has_stated_ = false;
};

// Other programs that are asked again and again for a line.
// A shell that runs one command at each request. It is started once, and adopts what the command
// leaves, so that none of them is taken for an orphan of the measured command. Thread safety: none.
class ShellTool {
 public:
  // Errors: unavailable where no process can be started.
  static Result<std::unique_ptr<ShellTool>> start(const std::string& command, Duration patience);
  ShellTool(const ShellTool&) = delete;
  ShellTool& operator=(const ShellTool&) = delete;
  ~ShellTool();

  // What the command prints. Errors: unavailable with its words on stderr where its exit status is
  // not 0; timeout after the patience, when the command is killed.
  Result<std::string> run();

 private:
  ShellTool(std::string command, Duration patience)
      : command_(std::move(command)), patience_(patience) {}

  std::string command_;
  Duration patience_;
  pid_t shell_ = 0;
  Descriptor requests_;
  Descriptor answers_;
  int last_ = 0;
  std::string pending_;  // of an answer that is not complete
};

// --- The power that a machine's BMC reports ---

// The answer's bytes, the completion code first. Errors: as the code says, unsupported for most;
// unavailable where the BMC says that it does not measure; corrupt.
Result<WallReading> parse_dcmi_answer(std::string_view bytes);

// What freeipmi's `ipmi-dcmi --get-system-power-statistics` prints. Errors: the same.
Result<WallReading> parse_dcmi_text(std::string_view text);

// Meters with a web server: Redfish BMCs, Shelly and Tasmota plugs.
// For kinds "redfish", "shelly" and "tasmota". Errors: as of WallMeter::open; not_found without
// libcurl, which is loaded at run time.
Result<std::unique_ptr<WallSource>> open_web_meter(const WallSpec& spec);

// The watts of an answer; `channel`: of a plug with several sockets. Errors: corrupt without any.
// EnvironmentMetrics, Power, or the metrics of power supplies, whose inputs are summed.
Result<double> redfish_watts(std::string_view json);
// Reads the answer to Shelly.GetStatus (second generation and later) or /status (first).
Result<double> shelly_watts(std::string_view json, int channel);
Result<double> tasmota_watts(std::string_view json, int channel);

}  // namespace jouleprof::meters
