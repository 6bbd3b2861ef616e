#include "meters/nvml/nvml_meter.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "meters/nvml/api/nvml_api.h"

namespace jouleprof::meters {

using abi::Return;

NvmlMeter::NvmlMeter(nvml::NvmlApi api, const NvmlOptions& options)
    : api_(std::move(api)), clock_(nvml::NvmlClock::complete(options.clock)), activity_(api_) {}

NvmlMeter::~NvmlMeter() {
  activity_.clear();
  api_.shutdown();
}

Result<std::unique_ptr<NvmlMeter>> NvmlMeter::open(const NvmlOptions& options) {
  auto api = nvml::load_nvml(options.library);
  if (!api) return forward_error(api);
  return open(std::move(*api), options);
}

Result<std::unique_ptr<NvmlMeter>> NvmlMeter::open(nvml::NvmlApi api, const NvmlOptions& options) {
  const Return code = api.init();
  if (code != Return::kSuccess) {
    Error error = nvml::nvml_error(api, "nvmlInit", code);
    if (const auto fix = nvml::fix_for(code); !fix.empty()) error.message += ". Fix: " + fix;
    return tl::unexpected(std::move(error));
  }
  // From here on the destructor shuts NVML down.
  std::unique_ptr<NvmlMeter> meter(new NvmlMeter(std::move(api), options));
  auto gpus = nvml::list_gpus(meter->api_);
  if (!gpus) return forward_error(gpus);
  auto selected = nvml::select_gpus(std::move(*gpus), options.devices);
  if (!selected) return forward_error(selected);
  meter->gpus_ = std::move(*selected);
  std::array<char, abi::kSystemDriverVersionLength> version{};
  if (meter->api_.driver_version &&
      meter->api_.driver_version(version.data(), version.size() - 1) == Return::kSuccess) {
    meter->driver_version_ = version.data();
  }
  meter->find_sensors(options);
  return meter;
}

HostTime NvmlMeter::read(std::size_t index, model::Readings& out) {
  return readers_[index]->read(out);
}

bool NvmlMeter::is_waiting(std::size_t index) const { return readers_[index]->is_waiting(); }

void NvmlMeter::set_demand(const Demand& demand) {
  for (const auto& set_pace : paces_) set_pace(demand);
}

std::optional<Result<std::vector<model::GpuProcessUse>>> NvmlMeter::read_processes(
    model::Readings& out) {
  const ClockPoint now = clock_.now();
  std::vector<model::GpuProcessUse> uses;
  bool any_answer = false;
  auto failure = Return::kSuccess;
  for (auto& gpu : processes_) {
    const Return code = gpu.of_gpu.read(now, uses);
    if (const auto listed = gpu.of_gpu.listed(); gpu.count && listed) {
      out.gauges.push_back({*gpu.count, now.host, static_cast<double>(*listed)});
    }
    any_answer = any_answer || code == Return::kSuccess;
    if (code != Return::kSuccess && !nvml::is_unsupported(code)) failure = code;
  }
  activity_.read(now.host, out);
  if (any_answer) return uses;
  if (failure == Return::kSuccess) return std::nullopt;
  return tl::unexpected(nvml::nvml_error(api_, "nvmlDeviceGetComputeRunningProcesses", failure));
}

}  // namespace jouleprof::meters

namespace jouleprof::meters::nvml {

namespace {

using Memory = std::optional<std::uint64_t>;

// Of several processes; see GpuProcesses::read.
constexpr Duration kAsk = std::chrono::seconds{3};
// Of a process that is alone on its device: no other process's share depends on it, and the call
// takes 2.8 ms of CPU time.
constexpr Duration kAskAlone = std::chrono::seconds{30};
constexpr unsigned kMostUtilisation = 100;

unsigned long long stamp(RealTime t) {
  return static_cast<unsigned long long>(
      std::chrono::duration_cast<std::chrono::microseconds>(t.time_since_epoch()).count());
}

// A call that fills an array of unknown length, with room to spare for what comes in between.
template <typename T, typename Call>
Return fill(std::vector<T>& array, const Call& call) {
  array.resize(std::max<std::size_t>(array.capacity(), 32));
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto count = static_cast<unsigned>(array.size());
    const Return code = call(&count, array.data());
    if (code == Return::kSuccess) {
      array.resize(std::min<std::size_t>(count, array.size()));
      return code;
    }
    if (code != Return::kInsufficientSize) {
      array.clear();
      return code;
    }
    array.resize(std::max<std::size_t>(count, array.size()) + 32);
  }
  array.clear();
  return Return::kInsufficientSize;
}

using Holder = std::pair<unsigned, model::DomainId>;  // a pid, and where its contexts are

// Memory of each holder.
template <typename DomainOf>
std::map<Holder, Memory> by_holder(const std::vector<abi::ProcessInfo>& infos,
                                   const DomainOf& domain_of) {
  std::map<Holder, Memory> memory;
  for (const auto& info : infos) {
    Memory& sum = memory[{info.pid, domain_of(info.gpu_instance_id)}];
    if (info.used_gpu_memory == abi::kNotAvailable64) continue;
    sum = sum.value_or(0) + info.used_gpu_memory;
  }
  return memory;
}

// A process with both kinds of context is in both lists, with the same memory.
void merge(std::map<Holder, Memory>& into, const std::map<Holder, Memory>& from) {
  for (const auto& [holder, memory] : from) {
    Memory& known = into[holder];
    known = std::max(known, memory);  // an absent value is the least
  }
}

}  // namespace

bool lists_processes(const NvmlApi& api, abi::Device device) {
  if (!api.compute_processes) return false;
  unsigned count = 0;
  const Return code = api.compute_processes(device, &count, nullptr);
  return code == Return::kSuccess || code == Return::kInsufficientSize;
}

GpuProcesses::GpuProcesses(const NvmlApi& api, abi::Device device, model::DomainId domain,
                           RealTime since, std::map<unsigned, model::DomainId> instances)
    : api_(api),
      device_(device),
      domain_(domain),
      instances_(std::move(instances)),
      since_(stamp(since)) {}

// Fills samples_ with those since `since_`; false where there is no utilisation now.
bool GpuProcesses::ask_utilisation(const ClockPoint& now) {
  samples_.clear();
  const auto present = stamp(now.real);
  // After the wall clock was set back, nothing would be newer for a long time.
  if (since_ > present) {
    since_ = present - std::min(present, 1'000'000ULL);
    for (auto& [pid, since] : listed_since_) since = std::min(since, since_);
  }
  const bool is_alone = listed_since_.size() == 1;
  const bool is_new = is_alone && listed_since_.begin()->second > since_;
  if (since_at_ == HostTime{} || listed_since_.empty() || is_new) {
    since_ = present;
    since_at_ = now.host;
    asked_alone_ = false;
    return false;
  }
  const Duration waited = now.host - since_at_;
  if (!api_.process_utilisation || waited < kAsk) return false;
  if (is_alone && asked_alone_ && waited < kAskAlone) return false;
  asked_alone_ = is_alone;
  const Return code = fill(samples_, [&](unsigned* count, abi::ProcessUtilizationSample* samples) {
    return api_.process_utilisation(device_, samples, count, since_);
  });
  // The driver may list old processes with old stamps; stamps in the future are invalid.
  std::erase_if(samples_, [&](const abi::ProcessUtilizationSample& s) {
    return s.timestamp <= since_ || s.timestamp > present + 1'000'000;
  });
  return code == Return::kSuccess || code == Return::kNotFound;
}

std::optional<double> GpuProcesses::utilisation_of(unsigned pid) const {
  const auto listed = listed_since_.find(pid);
  if (listed == listed_since_.end() || listed->second > since_) return std::nullopt;
  double sum = 0;
  int count = 0;
  for (const auto& s : samples_) {
    if (s.pid != pid) continue;
    if (s.sm_util > kMostUtilisation) return std::nullopt;
    sum += s.sm_util / 100.0;
    ++count;
  }
  return count > 0 ? sum / count : 0.0;
}

Return GpuProcesses::read(const ClockPoint& now, std::vector<model::GpuProcessUse>& out) {
  std::map<Holder, Memory> memory;
  auto result = Return::kFunctionNotFound;
  bool complete = api_.compute_processes != nullptr;
  const auto domain_of = [this](unsigned instance) {
    const auto found = instances_.find(instance);
    return found == instances_.end() ? domain_ : found->second;
  };
  listed_.reset();
  for (const auto list : {api_.compute_processes, api_.graphics_processes}) {
    if (!list) continue;
    const Return code = fill(infos_, [&](unsigned* count, abi::ProcessInfo* infos) {
      return list(device_, count, infos);
    });
    if (code == Return::kSuccess) merge(memory, by_holder(infos_, domain_of));
    const bool of_graphics = list == api_.graphics_processes;
    if (code != Return::kSuccess && !(of_graphics && is_unsupported(code))) complete = false;
    if (result != Return::kSuccess) result = code;
  }
  if (result != Return::kSuccess) return result;
  std::map<unsigned, Stamp> listed;
  for (const auto& [holder, bytes] : memory) {
    const auto before = listed_since_.find(holder.first);
    listed[holder.first] = before != listed_since_.end() ? before->second : stamp(now.real);
  }
  if (complete) listed_ = listed.size();
  listed_since_ = std::move(listed);
  const bool is_known = ask_utilisation(now);
  for (const auto& [holder, bytes] : memory) {
    model::GpuProcessUse use;
    use.pid = static_cast<pid_t>(holder.first);
    use.domain = holder.second;
    use.at = now.host;
    use.memory_bytes = bytes;
    if (is_known) use.compute_utilisation = utilisation_of(holder.first);
    out.push_back(use);
  }
  if (is_known) {
    since_ = stamp(now.real);
    since_at_ = now.host;
  }
  return result;
}

}  // namespace jouleprof::meters::nvml
