// A driver for tests: it remembers what was launched, and a GPU that takes no time.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "abi/cupti_abi.h"
#include "spans/reruns/launch_recorder.h"

namespace jouleprof::reruns {

// One at a time.
struct FakeDriver {
  static constexpr abi::cuda::Result kInvalid = 1;
  static constexpr abi::cuda::Result kFault = 700;

  struct Ran {
    std::string kernel;
    std::vector<unsigned char> parameters;
  };

  FakeDriver() { only() = this; }
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;
  ~FakeDriver() { only() = nullptr; }

  // The handle of a kernel with two parameters: an address and a number.
  abi::cuda::Function function(const std::string& name) {
    static std::deque<std::string> names;  // handles are addresses, unlike those of other tests
    names.push_back(name);
    return reinterpret_cast<abi::cuda::Function>(&names.back());
  }
  static const std::string& name_of(abi::cuda::Function function) {
    return *reinterpret_cast<std::string*>(function);
  }

  DriverApi api() {
    DriverApi api;
    api.set_context = [](abi::cuda::Context) { return abi::cuda::kSuccess; };
    api.create_stream = [](abi::cuda::Stream* stream, unsigned) {
      *stream = reinterpret_cast<abi::cuda::Stream>(std::uintptr_t{16});
      return abi::cuda::kSuccess;
    };
    api.query_stream = [](abi::cuda::Stream) { return only()->state; };
    api.begin_capture = [](abi::cuda::Stream, int) {
      only()->capturing = true;
      return abi::cuda::kSuccess;
    };
    api.end_capture = [](abi::cuda::Stream, abi::cuda::Graph* graph) {
      only()->capturing = false;
      *graph = nullptr;
      return abi::cuda::kSuccess;
    };
    api.instantiate = [](abi::cuda::GraphExec* made, abi::cuda::Graph, unsigned long long) {
      *made = nullptr;
      return abi::cuda::kSuccess;
    };
    api.launch_graph = [](abi::cuda::GraphExec, abi::cuda::Stream) {
      ++only()->graphs;
      return abi::cuda::kSuccess;
    };
    api.destroy_executable = [](abi::cuda::GraphExec) { return abi::cuda::kSuccess; };
    api.destroy_graph = [](abi::cuda::Graph) { return abi::cuda::kSuccess; };
    api.launch = [](const abi::cuda::LaunchConfig* config, abi::cuda::Function f, void** parameters,
                    void**) {
      FakeDriver& self = *only();
      if (self.refused.contains(name_of(f))) return kInvalid;
      if (static_cast<int>(config->shared_bytes) > self.most_shared[f]) return kInvalid;
      Ran now{name_of(f), std::vector<unsigned char>(12)};
      std::memcpy(now.parameters.data(), parameters[0], 8);
      std::memcpy(now.parameters.data() + 8, parameters[1], 4);
      if (!self.capturing) {
        if (self.faulty.contains(now.kernel)) self.state = kFault;
        if (self.endless.contains(now.kernel)) self.state = abi::cuda::kNotReady;
      }
      self.ran.push_back(std::move(now));
      return abi::cuda::kSuccess;
    };
    api.set_bytes = [](abi::cuda::DevicePtr address, unsigned char, std::size_t,
                       abi::cuda::Stream) {
      only()->ran.push_back({"memset", {}});
      only()->set.insert(address);
      return abi::cuda::kSuccess;
    };
    api.set_shorts = [](abi::cuda::DevicePtr, unsigned short, std::size_t, abi::cuda::Stream) {
      return abi::cuda::kSuccess;
    };
    api.set_words = [](abi::cuda::DevicePtr, unsigned, std::size_t, abi::cuda::Stream) {
      return abi::cuda::kSuccess;
    };
    api.copy = [](abi::cuda::DevicePtr to, abi::cuda::DevicePtr from, std::size_t,
                  abi::cuda::Stream) {
      only()->copies.emplace_back(to, from);
      return abi::cuda::kSuccess;
    };
    api.copy_to_host = [](void* to, abi::cuda::DevicePtr from, std::size_t bytes) {
      std::memset(to, 0, bytes);
      const auto found = only()->lists.find(from);
      if (found != only()->lists.end()) std::memcpy(to, &found->second, sizeof found->second);
      return abi::cuda::kSuccess;
    };
    api.allocate = [](abi::cuda::DevicePtr* made, std::size_t) {
      *made = kCopies;
      return abi::cuda::kSuccess;
    };
    api.free = [](abi::cuda::DevicePtr) { return abi::cuda::kSuccess; };
    api.memory = [](std::size_t* free, std::size_t* all) {
      *free = only()->free_bytes;
      *all = std::size_t{80} << 30;
      return abi::cuda::kSuccess;
    };
    api.range_of = [](abi::cuda::DevicePtr* begin, std::size_t* bytes, abi::cuda::DevicePtr at) {
      for (const auto& [first, size] : only()->allocated) {
        if (at < first || at >= first + size) continue;
        *begin = first;
        *bytes = size;
        return abi::cuda::kSuccess;
      }
      return kInvalid;
    };
    api.pointer_attribute = [](void* value, int, abi::cuda::DevicePtr at) {
      ++only()->asked;
      for (const auto& [first, size] : only()->allocated) {
        if (at < first || at >= first + size) continue;
        std::memcpy(value, &abi::cuda::kMemoryOfDevice, sizeof(unsigned));
        return abi::cuda::kSuccess;
      }
      return kInvalid;
    };
    api.error_name = [](abi::cuda::Result, const char** name) {
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return abi::cuda::kSuccess;
    };
    api.function_name = [](const char** name, abi::cuda::Function f) {
      *name = name_of(f).c_str();
      return abi::cuda::kSuccess;
    };
    api.function_parameter = [](abi::cuda::Function, std::size_t i, std::size_t* offset,
                                std::size_t* bytes) {
      *offset = i == 0 ? 0 : 8;
      *bytes = i == 0 ? 8 : 4;
      return i < 2 ? abi::cuda::kSuccess : kInvalid;
    };
    api.module_of = [](abi::cuda::Module* module, abi::cuda::Function f) {
      *module = reinterpret_cast<abi::cuda::Module>(f);  // each kernel has a module of its own
      return abi::cuda::kSuccess;
    };
    api.attribute = [](int* value, int, abi::cuda::Function f) {
      *value = only()->most_shared[f];
      return abi::cuda::kSuccess;
    };
    api.set_attribute = [](abi::cuda::Function f, int, int value) {
      only()->most_shared[f] = value;
      return abi::cuda::kSuccess;
    };
    api.load_module = [](abi::cuda::Module* module, const void* code) {
      only()->loaded.emplace_back(static_cast<const char*>(code));
      *module = reinterpret_cast<abi::cuda::Module>(&only()->loaded);
      return abi::cuda::kSuccess;
    };
    api.unload_module = [](abi::cuda::Module) {
      ++only()->unloaded;
      return abi::cuda::kSuccess;
    };
    api.function_in = [](abi::cuda::Function* function, abi::cuda::Module, const char* name) {
      *function = only()->function(std::string(name) + " of a new module");
      return abi::cuda::kSuccess;
    };
    return api;
  }

  static FakeDriver*& only() {
    static FakeDriver* now = nullptr;
    return now;
  }

  static constexpr abi::cuda::DevicePtr kCopies = 0x7fff00000000;
  std::vector<Ran> ran;
  std::set<abi::cuda::DevicePtr> set;
  std::vector<std::pair<abi::cuda::DevicePtr, abi::cuda::DevicePtr>> copies;  // to, from
  std::map<abi::cuda::DevicePtr, std::size_t> allocated{{0x7f0000000000, std::size_t{1} << 30}};
  std::map<abi::cuda::DevicePtr, std::uint64_t> lists;  // the first word of what is allocated
  std::size_t free_bytes = std::size_t{40} << 30;
  std::set<std::string> refused, faulty, endless;
  abi::cuda::Result state = abi::cuda::kSuccess;
  std::map<abi::cuda::Function, int> most_shared;  // bytes
  std::vector<std::string> loaded;                 // code
  int unloaded = 0;
  int asked = 0;  // what an address is
  bool capturing = false;
  int graphs = 0;
};

// Calls of the driver as CUPTI reports them.
struct FakeCalls {
  LaunchRecorder& recorder;

  template <class Parameters>
  void call(abi::cupti::DriverCall which, const Parameters& parameters,
            abi::cupti::Site site = abi::cupti::Site::kEnter) {
    abi::cupti::CallbackData data{};
    data.site = site;
    data.function_parameters = &parameters;
    recorder.on_call(which, data);
  }
  void launch(abi::cuda::Function f, std::uint64_t address, unsigned number = 1, unsigned grid = 4,
              unsigned shared = 0) {
    void* parameters[] = {&address, &number};
    call(abi::cupti::DriverCall::kLaunchKernel,
         abi::cupti::LaunchParameters{
             f, {grid, 1, 1}, {128, 1, 1}, shared, nullptr, parameters, nullptr});
  }
  void memset(std::uint64_t address, std::uint64_t bytes) {
    call(abi::cupti::DriverCall::kMemsetD8Async, abi::cupti::MemsetParameters{address, {0}, bytes});
  }
  void free(std::uint64_t address) {
    call(abi::cupti::DriverCall::kMemFree2, abi::cupti::FreeParameters{address});
  }
  // `code`: as CUPTI shows it meanwhile; empty: it does not.
  void unload(abi::cuda::Function f, const std::string& code = {}) {
    const abi::cupti::ModuleUnloadParameters parameters{reinterpret_cast<abi::cuda::Module>(f)};
    call(abi::cupti::DriverCall::kModuleUnload, parameters);
    if (!code.empty()) recorder.on_unload({1, code.size(), code.data()});
    call(abi::cupti::DriverCall::kModuleUnload, parameters, abi::cupti::Site::kExit);
  }
};

}  // namespace jouleprof::reruns
