#include "spans/cupti/cupti_api.h"

#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "abi/cuda_abi.h"
#include "base/process/dynlib.h"

namespace jouleprof::cupti {
namespace {

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};
constexpr std::uint32_t kCuda12 = 19;  // cuptiGetVersion's of CUDA 12.0

bool bind_all(const DynLib& lib, CuptiApi& api) {
  return lib.bind(api.get_version, "cuptiGetVersion") &&
         lib.bind(api.result_string, "cuptiGetResultString") &&
         lib.bind(api.enable, "cuptiActivityEnable") &&
         lib.bind(api.disable, "cuptiActivityDisable") &&
         lib.bind(api.register_callbacks, "cuptiActivityRegisterCallbacks") &&
         lib.bind(api.next_record, "cuptiActivityGetNextRecord") &&
         lib.bind(api.dropped_records, "cuptiActivityGetNumDroppedRecords") &&
         lib.bind(api.flush_all, "cuptiActivityFlushAll") &&
         lib.bind(api.subscribe, "cuptiSubscribe") &&
         lib.bind(api.unsubscribe, "cuptiUnsubscribe") &&
         lib.bind(api.enable_callback, "cuptiEnableCallback") &&
         lib.bind(api.graph_node_id, "cuptiGetGraphNodeId");
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Folders that hold CUPTI where a library of CUDA's is at `path`.
void add_places_near(const std::string& path, std::vector<std::string>& places) {
  const std::string folder = path.substr(0, path.rfind('/'));
  places.push_back(folder);
  places.push_back(folder + "/../extras/CUPTI/lib64");
  for (const char* packages : {"/site-packages/", "/dist-packages/"}) {
    const auto at = path.rfind(packages);
    if (at == std::string::npos) continue;
    const std::string nvidia = path.substr(0, at + 15) + "nvidia/";
    places.push_back(nvidia + "cu13/lib");
    places.push_back(nvidia + "cuda_cupti/lib");
  }
}

bool of_cuda(const std::string& name) {
  for (const char* start : {"libcudart.so", "libcublas.so", "libcublasLt.so", "libcudnn.so",
                            "libnvrtc.so", "libtorch_cuda.so", "libtorch.so", "libjax", "libtf"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> cupti_candidates(const std::vector<std::string>& loaded) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& path) {
    if (std::ranges::find(found, path) == found.end()) found.push_back(path);
  };
  bool cuda_12 = false;
  std::vector<std::string> places;
  for (const std::string& path : loaded) {
    const std::string name = file_name(path);
    if (name.starts_with("libcupti.so")) add(path);
    if (name.starts_with("libcudart.so.12")) cuda_12 = true;
    if (of_cuda(name) && path.find('/') != std::string::npos) add_places_near(path, places);
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable); home != nullptr && *home != '\0') {
      places.push_back(std::string(home) + "/extras/CUPTI/lib64");
      places.push_back(std::string(home) + "/lib64");
    }
  }
  places.insert(places.end(), {"/usr/local/cuda/extras/CUPTI/lib64", "/usr/local/cuda/lib64",
                               "/usr/local/cuda/lib"});
  std::vector<std::string> names(std::begin(kNames), std::end(kNames));
  if (cuda_12) std::swap(names[0], names[1]);
  for (const std::string& name : names) add(name);
  for (const std::string& place : places) {
    for (const std::string& name : names) {
      std::error_code ignored;
      const std::string path = place + "/" + name;
      if (std::filesystem::exists(path, ignored)) add(path);
    }
  }
  return found;
}

Result<CuptiApi> load_cupti(const std::vector<std::string>& candidates) {
  std::string older;
  for (const std::string& path : candidates) {
    auto library = DynLib::open(path);
    if (!library) continue;
    CuptiApi api;
    if (!bind_all(*library, api)) continue;
    if (!library->bind(api.graph_exec_id, "cuptiGetGraphExecId")) api.graph_exec_id = nullptr;
    std::uint32_t version = 0;
    if (api.get_version(&version) != abi::cupti::Result::kSuccess || version < kCuda12) {
      older = path;
      continue;
    }
    api.library = std::make_shared<DynLib>(std::move(*library));
    api.path = path;
    return api;
  }
  if (!older.empty()) {
    return fail(
        Errc::kUnsupported,
        fmt::format("{} is of CUDA 11 or older; kernels are traced from CUDA 12 on", older));
  }
  return fail(Errc::kNotFound,
              "CUPTI (libcupti.so.13 or .12) was not found, so no kernels are traced. Install it "
              "(pip install nvidia-cuda-cupti, or the CUDA toolkit) and add its folder to "
              "LD_LIBRARY_PATH");
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        if (info->dlpi_name != nullptr && *info->dlpi_name != '\0') {
          static_cast<std::vector<std::string>*>(into)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

bool is_loaded(const std::vector<std::string>& loaded, const char* name_start) {
  for (const std::string& path : loaded) {
    if (std::string_view(path).substr(path.rfind('/') + 1).starts_with(name_start)) return true;
  }
  return false;
}

std::string likely_profiler(const std::vector<std::string>& loaded) {
  constexpr std::pair<const char*, const char*> kWho[] = {
      {"libToolsInjection", "Nsight Systems (libToolsInjection is loaded)"},
      {"libnsys", "Nsight Systems (libnsys is loaded)"},
      {"libcuda-injection", "Nsight Compute (libcuda-injection is loaded)"},
      {"libproton", "Triton's Proton profiler (libproton is loaded)"},
      {"libkineto", "torch.profiler (libkineto is loaded)"},
      {"libtorch_c", "torch.profiler (PyTorch is loaded)"},
      {"libtensorflow", "TensorFlow's profiler (TensorFlow is loaded)"},
      {"xla_", "JAX's profiler (XLA is loaded)"},
  };
  for (const auto& [start, who] : kWho) {
    if (is_loaded(loaded, start)) return who;
  }
  return "another profiler";
}

bool has_command_buffers(const std::vector<std::string>& loaded, std::string_view flags) {
  constexpr const char* kXla[] = {"xla_", "libjax", "libtensorflow", "_XLAC"};
  if (std::ranges::none_of(kXla, [&](auto* start) { return is_loaded(loaded, start); }))
    return false;
  constexpr std::string_view kOption = "--xla_gpu_enable_command_buffer=";
  const auto option = flags.rfind(kOption);  // the last one counts
  if (option == flags.npos) return true;
  const auto kinds = flags.substr(option + kOption.size());
  return !kinds.empty() && kinds[0] != ' ';
}

DriverState driver_state() {
  namespace cuda = abi::cuda;
  const DynLib driver = DynLib::loaded(cuda::kLibrary);
  if (!driver) return DriverState::kAbsent;
  cuda::fn::CtxGetCurrent* current = nullptr;
  cuda::Context context = nullptr;
  const bool started =
      driver.bind(current, "cuCtxGetCurrent") && current(&context) != cuda::kNotInitialized;
  return started ? DriverState::kInitialised : DriverState::kLoaded;
}

}  // namespace jouleprof::cupti
