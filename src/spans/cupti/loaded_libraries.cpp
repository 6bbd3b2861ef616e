#include "spans/cupti/loaded_libraries.h"

#include <link.h>

#include <string_view>
#include <utility>

namespace jouleprof::cupti {

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

}  // namespace jouleprof::cupti
