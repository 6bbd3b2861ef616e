// A driver for tests: NVML's functions on the test's own devices and clock.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "meters/nvml/api/nvml_api.h"

namespace jouleprof::meters::nvml {

struct FakeField {
  abi::Return code = abi::Return::kSuccess;
  abi::ValueType type = abi::ValueType::kUnsignedInt;
  abi::Value value{};
};

struct FakeGpu {
  std::string name = "Fake H100";
  std::string uuid = "GPU-00000000-aaaa";
  abi::Architecture architecture = abi::Architecture::kHopper;
  int major = 9;
  int minor = 0;
  bool mig = false;
  std::deque<FakeGpu> mig_devices;

  abi::Return all = abi::Return::kSuccess;     // what every call answers (lost, ...)
  abi::Return handle = abi::Return::kSuccess;  // what asking for the handle answers
  abi::Return energy_code = abi::Return::kSuccess;
  std::function<unsigned long long(HostTime)> energy_mj = [](HostTime) { return 1000ULL; };
  int energy_reads = 0;
  std::map<abi::SamplingType, std::deque<abi::Sample>> rings;  // absent: not supported
  unsigned ring_capacity = 120;
  std::map<std::pair<unsigned, unsigned>, FakeField> fields;  // by id and scope
  abi::Return power_usage_code = abi::Return::kSuccess;
  unsigned power_usage_mw = 250'000;
  abi::Return temperature_code = abi::Return::kSuccess;
  unsigned temperature = 41;
  std::optional<unsigned> fan_percent;  // absent: no fan of its own
  abi::Return processes_code = abi::Return::kSuccess;
  std::vector<abi::ProcessInfo> compute;
  std::vector<abi::ProcessInfo> graphics;
  abi::Return utilisation_code = abi::Return::kSuccess;
  std::vector<abi::ProcessUtilizationSample> utilisation;
  int utilisation_reads = 0;

  abi::Device device() { return reinterpret_cast<abi::Device>(this); }
  void set_power(unsigned field, unsigned scope, unsigned mw) {
    fields[{field, scope}] = {abi::Return::kSuccess, abi::ValueType::kUnsignedInt, {.ui = mw}};
  }
  void push_sample(RealTime at, unsigned mw,
                   abi::SamplingType type = abi::SamplingType::kTotalPower) {
    auto& ring = rings[type];
    ring.push_back(
        {static_cast<unsigned long long>(at.time_since_epoch().count() / 1000), {.ui = mw}});
    if (ring.size() > ring_capacity) ring.pop_front();
  }
};

// One at a time: NVML's functions have no user data, so they find it through `current`.
struct FakeNvml {
  FakeNvml() { current = this; }
  ~FakeNvml() { current = nullptr; }
  FakeNvml(const FakeNvml&) = delete;
  FakeNvml& operator=(const FakeNvml&) = delete;

  inline static FakeNvml* current = nullptr;

  std::deque<FakeGpu> gpus;
  abi::Return init_code = abi::Return::kSuccess;
  int shutdowns = 0;
  Duration energy_read_time = std::chrono::microseconds(2600);
  ClockPoint clock{HostTime{std::chrono::hours(1)}, RealTime{std::chrono::hours(400'000)}, {}};
  Duration cpu{};

  void pass(Duration d) {
    clock.host += d;
    clock.real += d;
  }
  void set_wall_clock(Duration by) { clock.real += by; }

  NvmlClock seam() {
    return {[this] { return clock; }, [this] { return cpu += std::chrono::microseconds(5); },
            [this](Duration d) { pass(d); }};
  }
  NvmlApi api();
};

namespace fake {

inline FakeGpu& of(abi::Device d) { return *reinterpret_cast<FakeGpu*>(d); }
inline FakeNvml& nvml() { return *FakeNvml::current; }

inline abi::Return text(const std::string& from, char* to, unsigned length) {
  if (from.size() >= length) return abi::Return::kInsufficientSize;
  std::memcpy(to, from.c_str(), from.size() + 1);
  return abi::Return::kSuccess;
}

template <typename T>
abi::Return list(const std::vector<T>& from, unsigned* count, T* to) {
  const unsigned room = std::exchange(*count, static_cast<unsigned>(from.size()));
  if (from.size() > room) return abi::Return::kInsufficientSize;
  std::copy(from.begin(), from.end(), to);
  return abi::Return::kSuccess;
}

inline abi::Return samples(abi::Device d, abi::SamplingType type, unsigned long long last_seen,
                           abi::ValueType* value_type, unsigned* count, abi::Sample* to) {
  FakeGpu& gpu = of(d);
  if (gpu.all != abi::Return::kSuccess) return gpu.all;
  if (!gpu.rings.contains(type)) return abi::Return::kNotSupported;
  *value_type = abi::ValueType::kUnsignedInt;
  if (to == nullptr) return *count = gpu.ring_capacity, abi::Return::kSuccess;
  std::vector<abi::Sample> later;
  for (const auto& s : gpu.rings[type]) {
    if (s.timestamp > last_seen) later.push_back(s);
  }
  if (later.empty()) return abi::Return::kNotFound;
  return list(later, count, to);
}

inline abi::Return field_values(abi::Device d, int count, abi::FieldValue* values) {
  FakeGpu& gpu = of(d);
  if (gpu.all != abi::Return::kSuccess) return gpu.all;
  for (int i = 0; i < count; ++i) {
    const auto field = gpu.fields.find({values[i].field_id, values[i].scope_id});
    values[i].nvml_return =
        field == gpu.fields.end() ? abi::Return::kNotSupported : field->second.code;
    if (values[i].nvml_return != abi::Return::kSuccess) continue;
    values[i].value_type = field->second.type;
    values[i].value = field->second.value;
  }
  return abi::Return::kSuccess;
}

inline abi::Return total_energy(abi::Device d, unsigned long long* mj) {
  FakeGpu& gpu = of(d);
  ++gpu.energy_reads;
  nvml().pass(nvml().energy_read_time / 2);
  *mj = gpu.energy_mj(nvml().clock.host);
  nvml().pass(nvml().energy_read_time / 2);
  return gpu.all != abi::Return::kSuccess ? gpu.all : gpu.energy_code;
}

}  // namespace fake

inline NvmlApi FakeNvml::api() {
  using abi::Device;
  using abi::Return;
  using fake::nvml;
  using fake::of;
  NvmlApi a;
  a.init = [] { return nvml().init_code; };
  a.shutdown = [] { return ++nvml().shutdowns, Return::kSuccess; };
  a.device_count = [](unsigned* n) {
    return *n = static_cast<unsigned>(nvml().gpus.size()), Return::kSuccess;
  };
  a.device_by_index = [](unsigned i, Device* d) {
    *d = nvml().gpus[i].device();
    return nvml().gpus[i].handle;
  };
  a.error_string = [](Return r) { return r == Return::kGpuIsLost ? "GPU is lost" : "words"; };
  a.name = [](Device d, char* t, unsigned n) { return fake::text(of(d).name, t, n); };
  a.uuid = [](Device d, char* t, unsigned n) { return fake::text(of(d).uuid, t, n); };
  a.architecture = [](Device d, abi::Architecture* v) {
    return *v = of(d).architecture, Return::kSuccess;
  };
  a.compute_capability = [](Device d, int* major, int* minor) {
    return *major = of(d).major, *minor = of(d).minor, Return::kSuccess;
  };
  a.mig_mode = [](Device d, unsigned* now, unsigned* next) {
    return *now = *next = of(d).mig ? 1 : 0, Return::kSuccess;
  };
  a.max_mig_devices = [](Device, unsigned* n) { return *n = 7, Return::kSuccess; };
  a.mig_device_by_index = [](Device d, unsigned i, Device* m) {
    if (i >= of(d).mig_devices.size()) return Return::kNotFound;
    return *m = of(d).mig_devices[i].device(), Return::kSuccess;
  };
  a.total_energy = fake::total_energy;
  a.samples = fake::samples;
  a.field_values = fake::field_values;
  a.power_usage = [](Device d, unsigned* mw) {
    *mw = of(d).power_usage_mw;
    return of(d).all != Return::kSuccess ? of(d).all : of(d).power_usage_code;
  };
  a.clock_info = [](Device d, abi::ClockType type, unsigned* mhz) {
    return *mhz = type == abi::ClockType::kSm ? 1980 : 2619, of(d).all;
  };
  a.temperature = [](Device d, abi::TemperatureSensor, unsigned* c) {
    *c = of(d).temperature;
    return of(d).all != Return::kSuccess ? of(d).all : of(d).temperature_code;
  };
  a.fan_speed = [](Device d, unsigned* percent) {
    *percent = of(d).fan_percent.value_or(0);
    if (of(d).all != Return::kSuccess) return of(d).all;
    return of(d).fan_percent ? Return::kSuccess : Return::kNotSupported;
  };
  a.utilisation = [](Device d, abi::Utilization* u) { return *u = {87, 35}, of(d).all; };
  a.power_limit = [](Device d, unsigned* mw) { return *mw = 700'000, of(d).all; };
  a.clock_event_reasons = [](Device d, unsigned long long* r) {
    return *r = abi::kReasonSwPowerCap, of(d).all;
  };
  a.compute_processes = [](Device d, unsigned* n, abi::ProcessInfo* to) {
    if (of(d).processes_code != Return::kSuccess) return of(d).processes_code;
    return fake::list(of(d).compute, n, to);
  };
  a.graphics_processes = [](Device d, unsigned* n, abi::ProcessInfo* to) {
    if (of(d).processes_code != Return::kSuccess) return of(d).processes_code;
    return fake::list(of(d).graphics, n, to);
  };
  a.process_utilisation = [](Device d, abi::ProcessUtilizationSample* to, unsigned* n,
                             unsigned long long) {
    ++of(d).utilisation_reads;
    if (of(d).utilisation_code != Return::kSuccess) return of(d).utilisation_code;
    return fake::list(of(d).utilisation, n, to);
  };
  return a;
}

}  // namespace jouleprof::meters::nvml
