#include "meters/vendor/vendor_meter.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "abi/gpu_libraries_abi.h"
#include "base/process/dynlib.h"
#include "model/device/sensor_table.h"

namespace jouleprof::meters {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMostMicrojoules = std::numeric_limits<std::int64_t>::max();

Result<Energy> energy_of(double microjoules) {
  if (!(microjoules >= 0) || microjoules >= static_cast<double>(kMostMicrojoules)) {
    return fail(Errc::kCorrupt, fmt::format("{} uJ are no energy", microjoules));
  }
  return Energy::microjoules(std::llround(microjoules));
}

Error lacks(const std::string& library) {
  return {Errc::kUnsupported, library + " lacks functions that jouleprof calls; update it"};
}

// --- libamd_smi ---

constexpr std::string_view kAmdLibrary = "libamd_smi";

namespace smi = abi::amdsmi;

struct AmdSmi {
  DynLib library;
  smi::Init init = nullptr;
  smi::ShutDown shut_down = nullptr;
  smi::SocketHandles sockets = nullptr;
  smi::ProcessorHandles processors = nullptr;
  smi::GpuId gpu_id = nullptr;
  smi::BdfId bdf = nullptr;
  smi::EnergyCount energy = nullptr;
  bool is_open = false;

  AmdSmi() = default;
  AmdSmi(const AmdSmi&) = delete;
  AmdSmi& operator=(const AmdSmi&) = delete;
  ~AmdSmi() {
    if (is_open) shut_down();
  }
};

// MI200, MI300 and MI350, with their virtual functions.
bool is_instinct(std::uint16_t id) {
  return (id >= 0x7400 && id <= 0x741f) || (id >= 0x74a0 && id <= 0x74bf) ||
         (id >= 0x75a0 && id <= 0x75bf);
}

Result<Energy> read_energy(const AmdSmi& api, smi::Handle processor) {
  std::uint64_t counts = 0;
  std::uint64_t stamp = 0;
  float resolution = 0;
  const int code = api.energy(processor, &counts, &resolution, &stamp);
  if (code != smi::kSuccess) {
    return fail(Errc::kUnavailable, fmt::format("amdsmi_get_energy_count fails with {}", code));
  }
  if (counts == 0 || counts == std::numeric_limits<std::uint64_t>::max()) {
    return fail(Errc::kUnavailable, "amdsmi_get_energy_count has no value of this die");
  }
  // The library rounds 2^-16 J.
  const double exact = 1e6 / 65536;
  const double unit = std::abs(resolution - exact) < 0.1 ? exact : static_cast<double>(resolution);
  return energy_of(static_cast<double>(counts) * unit);
}

// The first processor of a socket that counts stands for it: its partitions repeat the counter.
LibraryGpu socket_gpu(const std::shared_ptr<AmdSmi>& api, smi::Handle socket, std::size_t index) {
  LibraryGpu gpu;
  gpu.device = fmt::format("amdsmi-{}", index);
  gpu.sensor = "amdsmi_get_energy_count";
  std::uint32_t count = 0;
  std::vector<smi::Handle> processors;
  if (api->processors(socket, &count, nullptr) == smi::kSuccess) {
    processors.resize(count);
    if (api->processors(socket, &count, processors.data()) != smi::kSuccess) count = 0;
    processors.resize(count);
  }
  gpu.missing = Error{Errc::kUnavailable, "the library lists no processor of this socket"};
  for (const smi::Handle processor : processors) {
    std::uint64_t bdf = 0;
    std::uint16_t id = 0;
    if (api->bdf != nullptr && api->bdf(processor, &bdf) == smi::kSuccess) {
      gpu.name = fmt::format("AMD GPU at {:04x}:{:02x}:{:02x}", bdf >> 32, bdf >> 8 & 0xff,
                             bdf >> 3 & 0x1f);
    }
    if (api->gpu_id(processor, &id) != smi::kSuccess || !is_instinct(id)) {
      gpu.missing = Error{Errc::kUnsupported,
                          fmt::format("libamd_smi states one unit for the counters of all boards; "
                                      "for this one ({:#06x}) it is not verified",
                                      id)};
      continue;
    }
    constexpr std::uint16_t kMi300A = 0x74a0;
    if (id == kMi300A) gpu.kind = model::DomainKind::kModule;
    auto first = read_energy(*api, processor);
    if (!first) {
      gpu.missing = std::move(first.error());
      continue;
    }
    gpu.missing.reset();
    gpu.counter = [api, processor] { return read_energy(*api, processor); };
    break;
  }
  return gpu;
}

// --- Level Zero ---

namespace zes = abi::zes;

struct LevelZero {
  DynLib library;
  zes::Init init = nullptr;
  zes::DriverGet drivers = nullptr;
  zes::List devices = nullptr;
  zes::List powers = nullptr;
  zes::PciGetProperties pci = nullptr;
  zes::CardPowerDomain card = nullptr;
  zes::PowerGetProperties properties = nullptr;
  zes::PowerGetEnergyCounter energy = nullptr;
};

std::vector<zes::Handle> list(zes::List function, zes::Handle of) {
  std::uint32_t count = 0;
  if (function(of, &count, nullptr) != zes::kSuccess) return {};
  std::vector<zes::Handle> all(count);
  if (function(of, &count, all.data()) != zes::kSuccess) return {};
  all.resize(count);
  return all;
}

Result<Energy> read_energy(const LevelZero& api, zes::Handle power) {
  zes::EnergyCounter counter{};
  const int code = api.energy(power, &counter);
  if (code != zes::kSuccess) {
    return fail(Errc::kUnavailable, fmt::format("zesPowerGetEnergyCounter fails with {:#x}", code));
  }
  if (counter.microjoules == 0 || counter.microjoules > kMostMicrojoules) {
    return fail(Errc::kUnavailable, "zesPowerGetEnergyCounter has no value of this domain");
  }
  return Energy::microjoules(static_cast<std::int64_t>(counter.microjoules));
}

LibraryGpu device_gpu(const std::shared_ptr<LevelZero>& api, zes::Handle device,
                      std::size_t index) {
  LibraryGpu gpu;
  gpu.device = fmt::format("ze-{}", index);
  gpu.sensor = "zesPowerGetEnergyCounter";
  zes::PciProperties pci{};
  pci.type = zes::kTypePci;
  if (api->pci != nullptr && api->pci(device, &pci) == zes::kSuccess) {
    gpu.name = fmt::format("Intel GPU at {:04x}:{:02x}:{:02x}.{}", pci.domain, pci.bus, pci.device,
                           pci.function);
    if (gpu.name.ends_with(":00:02.0")) {
      gpu.in_processor = true;
      gpu.missing = Error{Errc::kUnsupported,
                          "it is part of the processor, whose package contains its energy"};
      return gpu;
    }
  }
  const auto use = [&](zes::Handle power) {
    auto first = read_energy(*api, power);
    if (!first) {
      gpu.missing = std::move(first.error());
      return false;
    }
    gpu.missing.reset();
    gpu.counter = [api, power] { return read_energy(*api, power); };
    return true;
  };
  zes::Handle card = nullptr;
  gpu.missing = Error{Errc::kUnsupported, "the library has no power domain of this board"};
  if (api->card != nullptr && api->card(device, &card) == zes::kSuccess && use(card)) return gpu;
  for (const zes::Handle power : list(api->powers, device)) {
    zes::PowerProperties properties{};
    properties.type = zes::kTypePower;
    if (power == card || api->properties(power, &properties) != zes::kSuccess ||
        properties.on_subdevice != 0 || !use(power)) {
      continue;
    }
    gpu.device += "-package";
    gpu.name += ", package only: a lower bound of the card";
    break;
  }
  return gpu;
}

}  // namespace

Result<std::unique_ptr<VendorMeter>> VendorMeter::open_amd(const VendorOptions& options) {
  auto library = DynLib::open(options.library.empty() ? "libamd_smi.so" : options.library);
  if (!library) return forward_error(library);
  const auto api = std::make_shared<AmdSmi>();
  api->library = std::move(*library);
  const DynLib& from = api->library;
  if (!from.bind(api->bdf, "amdsmi_get_gpu_bdf_id")) from.bind(api->bdf, "amdsmi_get_gpu_pci_id");
  const bool complete = from.bind(api->init, "amdsmi_init") &&
                        from.bind(api->shut_down, "amdsmi_shut_down") &&
                        from.bind(api->sockets, "amdsmi_get_socket_handles") &&
                        from.bind(api->processors, "amdsmi_get_processor_handles") &&
                        from.bind(api->gpu_id, "amdsmi_get_gpu_id") &&
                        from.bind(api->energy, "amdsmi_get_energy_count");
  if (!complete) return tl::unexpected(lacks("libamd_smi"));
  if (const int code = api->init(smi::kInitGpus); code != smi::kSuccess) {
    return fail(Errc::kNotFound, fmt::format("amdsmi_init fails with {}", code));
  }
  api->is_open = true;
  std::uint32_t count = 0;
  std::vector<smi::Handle> sockets;
  if (api->sockets(&count, nullptr) == smi::kSuccess) sockets.resize(count);
  if (sockets.empty() || api->sockets(&count, sockets.data()) != smi::kSuccess) {
    return fail(Errc::kNotFound, "libamd_smi lists no GPU");
  }
  sockets.resize(count);
  std::vector<LibraryGpu> gpus;
  for (std::size_t i = 0; i < sockets.size(); ++i) gpus.push_back(socket_gpu(api, sockets[i], i));
  const bool simulated = from.symbol("jouleprof_simulated_library") != nullptr;
  return std::unique_ptr<VendorMeter>(
      new VendorMeter(std::string(kAmdLibrary), std::move(gpus), simulated, options.demand));
}

Result<std::unique_ptr<VendorMeter>> VendorMeter::open_intel(const VendorOptions& options) {
  auto library = DynLib::open(options.library.empty() ? "libze_loader.so.1" : options.library);
  if (!library) return forward_error(library);
  const auto api = std::make_shared<LevelZero>();
  api->library = std::move(*library);
  const DynLib& from = api->library;
  from.bind(api->pci, "zesDevicePciGetProperties");
  from.bind(api->card, "zesDeviceGetCardPowerDomain");
  const bool complete = from.bind(api->init, "zesInit") &&
                        from.bind(api->drivers, "zesDriverGet") &&
                        from.bind(api->devices, "zesDeviceGet") &&
                        from.bind(api->powers, "zesDeviceEnumPowerDomains") &&
                        from.bind(api->properties, "zesPowerGetProperties") &&
                        from.bind(api->energy, "zesPowerGetEnergyCounter");
  if (!complete) return tl::unexpected(lacks("libze_loader"));
  if (const int code = api->init(0); code != zes::kSuccess) {
    return fail(Errc::kNotFound, fmt::format("zesInit fails with {:#x}", code));
  }
  std::vector<LibraryGpu> gpus;
  std::uint32_t count = 0;
  std::vector<zes::Handle> drivers;
  if (api->drivers(&count, nullptr) == zes::kSuccess) drivers.resize(count);
  if (!drivers.empty() && api->drivers(&count, drivers.data()) != zes::kSuccess) drivers.clear();
  for (const zes::Handle driver : drivers) {
    for (const zes::Handle device : list(api->devices, driver)) {
      gpus.push_back(device_gpu(api, device, gpus.size()));
    }
  }
  if (gpus.empty()) return fail(Errc::kNotFound, "Level Zero lists no GPU");
  const bool simulated = from.symbol("jouleprof_simulated_library") != nullptr;
  return std::unique_ptr<VendorMeter>(
      new VendorMeter("Level Zero", std::move(gpus), simulated, options.demand));
}

VendorMeter::VendorMeter(std::string name, std::vector<LibraryGpu> gpus, bool simulated,
                         const Demand& demand)
    : name_(std::move(name)) {
  for (auto& gpu : gpus) {
    if (gpu.in_processor) {
      missing_.push_back({gpu.name, std::move(*gpu.missing), ""});
      continue;
    }
    model::Domain& domain = add_domain(gpu.kind, gpu.device, gpu.name);
    if (gpu.missing) {
      domain.unavailable_reason = gpu.missing->message;
      missing_.push_back({name_ + " of " + gpu.device, std::move(*gpu.missing), ""});
    } else {
      model::Sensor& sensor = add_sensor(domain.id, model::SensorKind::kEnergyCounter, gpu.sensor);
      if (gpu.kind == model::DomainKind::kGpu) {
        sensor.traits.scale = model::scale_of_gpu(name_ == kAmdLibrary ? "Instinct" : gpu.name);
      }
      if (simulated) sensor.provenance = model::Provenance::kSimulated;
      probes_.push_back({"energy of " + gpu.device, {}, {sensor.id}});
      counters_.push_back(std::move(gpu.counter));
    }
  }
  set_demand(demand);
}

void VendorMeter::set_demand(const Demand& demand) {
  Duration period =
      demand.shortest_window < std::chrono::seconds{1} ? milliseconds{10} : milliseconds{100};
  if (demand.poll_period > Duration{}) period = demand.poll_period;
  for (Probe& probe : probes_) probe.period = period;
}

HostTime VendorMeter::read(std::size_t index, model::Readings& out) {
  const HostTime before = HostClock::now();
  auto energy = counters_.at(index)();
  const HostTime after = HostClock::now();
  if (energy) {
    out.counters.push_back({sensors_[index].id, before, after, *energy});
  } else {
    out.failures.push_back({sensors_[index].id, after, std::move(energy.error())});
  }
  return before + probes_[index].period;
}

}  // namespace jouleprof::meters
