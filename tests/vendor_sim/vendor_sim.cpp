// A simulated libamd_smi and Level Zero loader in one library. JOULEPROF_VENDOR_SCENARIO has a line
// for each processor: "amd SOCKET DEVICE_ID BDF WATTS COUNTS" (numbers in hex but for the watts;
// WATTS 0: the counter stands) or "intel BDF CARD_WATTS PACKAGE_WATTS" (0: it stands at 0; -1:
// there is no such domain). Counters begin when the library is loaded.
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <sstream>
#include <string>
#include <vector>

#include "abi/gpu_libraries_abi.h"

namespace {

namespace zes = jouleprof::abi::zes;

struct Processor {
  std::uint32_t socket = 0;
  std::uint32_t id = 0;
  std::uint64_t bdf = 0;
  double watts = 0;
  std::uint64_t counts = 0;
};
struct Power {
  double watts = 0;
  bool is_card = false;
  bool is_tile = false;
};
struct Device {
  std::uint64_t bdf = 0;
  std::deque<Power> powers;
};

struct Scenario {
  std::deque<Processor> processors;
  std::vector<std::uint32_t> sockets;
  std::deque<Device> devices;
  std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

  Scenario() {
    const char* text = std::getenv("JOULEPROF_VENDOR_SCENARIO");
    std::istringstream lines(text != nullptr ? text : "");
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream in(line);
      std::string vendor;
      in >> vendor;
      if (vendor == "amd") {
        Processor p;
        in >> std::hex >> p.socket >> p.id >> p.bdf >> std::dec >> p.watts >> std::hex >> p.counts;
        if (sockets.empty() || sockets.back() != p.socket) sockets.push_back(p.socket);
        processors.push_back(p);
      } else if (vendor == "intel") {
        Device d;
        double card = 0;
        double package = 0;
        in >> std::hex >> d.bdf >> std::dec >> card >> package;
        d.powers.push_back({package / 2, false, true});
        if (card >= 0) d.powers.push_back({card, true, false});
        if (package >= 0) d.powers.push_back({package, false, false});
        devices.push_back(d);
      }
    }
  }
  double joules(double watts) const {
    return watts * std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
};

Scenario& scenario() {
  static Scenario only;
  return only;
}

template <typename T>
void* handle(T& of) {
  return &of;
}

template <typename Range>
int list(Range& all, std::uint32_t* count, void** out) {
  if (out == nullptr) {
    *count = static_cast<std::uint32_t>(all.size());
    return 0;
  }
  std::uint32_t n = 0;
  for (auto& one : all) {
    if (n == *count) break;
    out[n++] = handle(one);
  }
  *count = n;
  return 0;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const char jouleprof_simulated_library[] = "1";

EXPORTED int amdsmi_init(std::uint64_t flags) {
  return (flags & jouleprof::abi::amdsmi::kInitGpus) != 0 && !scenario().processors.empty() ? 0 : 2;
}
EXPORTED int amdsmi_shut_down() { return 0; }
EXPORTED int amdsmi_get_socket_handles(std::uint32_t* count, void** out) {
  return list(scenario().sockets, count, out);
}
EXPORTED int amdsmi_get_processor_handles(void* socket, std::uint32_t* count, void** out) {
  std::uint32_t n = 0;
  for (auto& p : scenario().processors) {
    if (p.socket != *static_cast<std::uint32_t*>(socket)) continue;
    if (out != nullptr && n < *count) out[n] = &p;
    ++n;
  }
  *count = n;
  return 0;
}
EXPORTED int amdsmi_get_gpu_id(void* processor, std::uint16_t* id) {
  *id = static_cast<std::uint16_t>(static_cast<Processor*>(processor)->id);
  return 0;
}
EXPORTED int amdsmi_get_gpu_bdf_id(void* processor, std::uint64_t* bdf) {
  *bdf = static_cast<Processor*>(processor)->bdf;
  return 0;
}
EXPORTED int amdsmi_get_energy_count(void* processor, std::uint64_t* counts, float* resolution,
                                     std::uint64_t* stamp) {
  const auto& p = *static_cast<Processor*>(processor);
  *counts = p.counts + static_cast<std::uint64_t>(scenario().joules(p.watts) * 65536);
  *resolution = 15.3F;
  *stamp = 0;
  return 0;
}

EXPORTED int zesInit(std::uint32_t) { return scenario().devices.empty() ? 0x78000001 : 0; }
EXPORTED int zesDriverGet(std::uint32_t* count, void** out) {
  if (out != nullptr && *count > 0) out[0] = &scenario();
  *count = 1;
  return 0;
}
EXPORTED int zesDeviceGet(void*, std::uint32_t* count, void** out) {
  return list(scenario().devices, count, out);
}
EXPORTED int zesDevicePciGetProperties(void* device, zes::PciProperties* out) {
  const auto bdf = static_cast<Device*>(device)->bdf;
  if (out->type != zes::kTypePci) return 0x78000004;
  out->domain = static_cast<std::uint32_t>(bdf >> 32);
  out->bus = bdf >> 8 & 0xff;
  out->device = bdf >> 3 & 0x1f;
  out->function = bdf & 7;
  return 0;
}
EXPORTED int zesDeviceGetCardPowerDomain(void* device, void** out) {
  for (auto& power : static_cast<Device*>(device)->powers) {
    if (!power.is_card) continue;
    *out = &power;
    return 0;
  }
  return 0x78000003;
}
EXPORTED int zesDeviceEnumPowerDomains(void* device, std::uint32_t* count, void** out) {
  return list(static_cast<Device*>(device)->powers, count, out);
}
EXPORTED int zesPowerGetProperties(void* power, zes::PowerProperties* out) {
  if (out->type != zes::kTypePower) return 0x78000004;
  out->on_subdevice = static_cast<Power*>(power)->is_tile ? 1 : 0;
  return 0;
}
EXPORTED int zesPowerGetEnergyCounter(void* power, zes::EnergyCounter* out) {
  const double watts = static_cast<Power*>(power)->watts;
  out->microjoules =
      watts > 0 ? 1'000'000 + static_cast<std::uint64_t>(scenario().joules(watts) * 1e6) : 0;
  out->microseconds = 0;
  return 0;
}
