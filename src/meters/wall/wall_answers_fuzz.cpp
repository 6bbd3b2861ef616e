// Answers of meters at the wall, and what a user gives for one. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "meters/wall/wall_source.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const auto seed = [](const char* name, char kind, const std::string& text) {
    write_seed(name, std::string(1, kind) + text);
  };
  seed("redfish", '\0',
       R"({"PowerControl":[{"PowerConsumedWatts":344}],"PowerWatts":{"Reading":1}})");
  seed("shelly", '\1', R"({"switch:0":{"apower":61.2},"meters":[{"power":1}]})");
  seed("tasmota", '\2', R"({"StatusSNS":{"ENERGY":{"Power":[88,9]}}})");
  seed("dcmi", '\3',
       std::string("\x00\xdc\x54\x01\x20\x00\x90\x02\x30\x01\x11\x22\x33\x44\xe8\x03"
                   "\x00\x00\x40",
                   19));
  seed("text", '\4', "Current Power : 164 Watts\n");
  seed("spec", '\5', "redfish,error=1.5%,every=2s,ca=/etc/bmc.pem:https://10.0.0.9");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto check = [](const Result<double>& watts) {
    if (watts && !(*watts >= 0 && *watts <= 1e6)) std::abort();
  };
  const auto check_reading = [](const Result<meters::WallReading>& reading) {
    if (reading && !(reading->power >= Power{})) std::abort();
  };
  switch (data[0] % 6) {
    case 0:
      check(meters::redfish_watts(text));
      break;
    case 1:
      check(meters::shelly_watts(text, 0));
      break;
    case 2:
      check(meters::tasmota_watts(text, 1));
      break;
    case 3:
      check_reading(meters::parse_dcmi_answer(text));
      break;
    case 4:
      check_reading(meters::parse_dcmi_text(text));
      break;
    default: {
      const auto spec = meters::parse_wall_spec(text);
      // Credentials in an address are refused.
      if (spec && spec->kind != "command" && spec->address.find('@') != std::string::npos) {
        std::abort();
      }
    }
  }
  return 0;
}
