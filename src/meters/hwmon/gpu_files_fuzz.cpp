// What drivers of GPUs show: AMD's table, and files in fdinfo. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "meters/hwmon/board.h"
#include "meters/hwmon/hwmon_meter.h"
#include "tests/support/fuzz_files.h"

using namespace jouleprof;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  for (const char* version : {"\x78\x00\x01\x03", "\x42\x01\x01\x06", "\x08\x01\x03\x00"}) {
    write_seed("table_" + std::to_string(version[2]) + "_" + std::to_string(version[3]),
               std::string(1, '\0') + std::string(version, 4) + std::string(360, '\x11'));
  }
  write_seed("fdinfo", std::string(1, '\1') +
                           "drm-driver:\tamdgpu\ndrm-client-id:\t7\ndrm-pdev:\t0000:03:00.0\n"
                           "drm-memory-vram:\t12 KiB\ndrm-engine-gfx:\t5 ns\n"
                           "drm-engine-capacity-gfx:\t2\ndrm-cycles-rcs:\t1\n"
                           "drm-total-cycles-rcs:\t9\n");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) {
    const auto client = meters::hwmon::parse_fdinfo(text);
    if (client && client->bus_address.empty()) std::abort();
    return 0;
  }
  const auto metrics = meters::hwmon::parse_gpu_metrics(text);
  if (!metrics) return 0;
  if (metrics->gfx_utilisation.value_or(0) > 1) std::abort();
  if (metrics->socket_power && *metrics->socket_power < Power{}) std::abort();
  const auto energy = metrics->energy_count ? meters::hwmon::energy_of_counts(
                                                  *metrics->energy_count, metrics->count_unit)
                                            : std::nullopt;
  if (energy && *energy < Energy{}) std::abort();
  return 0;
}
