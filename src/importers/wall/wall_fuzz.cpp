// Logs of meters at the power supply. The first byte chooses whether a column is named; the rest is
// the file.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "importers/import.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const std::string automatic(1, '\0');
  const std::string named(1, '\1');
  write_seed("csv", automatic +
                        "time,power_watts\n2022-12-20T09:06:29Z,100\n1671527190.5,102.5\n"
                        "1671527191500,\n2022-12-20 10:06:32+01:00,101\n");
  write_seed("columns", named + "timestamp,activepow1,activepow2\n1,20,0\n2,21,\"0\"\n");
  write_seed("wattmetre",
             automatic +
                 "tty opened\n#timestamp,#frame_is_ok,#U1,#activepow1,#activepow2\n"
                 "1671527189.294241015,false,,,\n1671527189.314471465,true,232.3,20.9,0.0\n"
                 "1671527189.324185946,true,233.0,21.0,0.0\n1671527189.334,tr");
  const std::string reading =
      "    Instantaneous power reading:                   220 Watts\n"
      "    Average power reading over sample period:      219 Watts\n";
  write_seed("ipmi", automatic + "1671527189.5\n" + reading + "1671527190.5\n" + reading);
  write_seed("ipmi_by_bmc", automatic + reading +
                                "    IPMI timestamp:    Tue Dec 20 09:06:29 2022\n" + reading +
                                "    IPMI timestamp:    Tue Dec 20 09:06:30 2022\n");
  write_seed("redfish",
             automatic + R"({"time": 1671527189, "PowerControl": [{"PowerConsumedWatts": 344}]})"
                         "\n"
                         R"({"Timestamp": "2022-12-20T09:06:30Z", "PowerWatts": {"Reading": 3e2}})"
                         "\n"
                         R"({"time": 1671527191.5, "PowerWatts": 350.5})"
                         "\n");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto log = importers::read_wall_log(text, "log", data[0] & 1 ? "activepow1" : "");
  if (!log) {
    const std::string& message = log.error().message;
    if (message.empty() || message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  // Time goes forward, and every figure is one.
  const auto& readings = log->readings;
  if (readings.size() < 2) std::abort();
  for (std::size_t i = 0; i < readings.size(); ++i) {
    if (!std::isfinite(readings[i].watts) || readings[i].watts < 0) std::abort();
    if (i > 0 && readings[i].at <= readings[i - 1].at) std::abort();
  }
  return 0;
}
