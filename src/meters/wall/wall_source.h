// Meters at a machine's power supply, read while a program runs.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "jouleprof/units.h"

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

// Errors: invalid_argument; not_found without what reads it; as of read(), for a first reading.
Result<std::unique_ptr<WallSource>> open_wall_source(const WallSpec& spec);

}  // namespace jouleprof::meters
