// Joules of a kernel loop of a CUDA program, in C++17. See CMakeLists.txt for building it.
#include <cstdio>
#include <jouleprof/jouleprof.hpp>

__global__ void scale(float* values, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * 1.0001f + 1.0f;
}

int main() {
  auto monitor = jouleprof::Monitor::open();
  if (!monitor) {
    std::fprintf(stderr, "%s\n", monitor.error().message.c_str());
    return 1;
  }
  constexpr int kCount = 1 << 24;
  float* values = nullptr;
  if (const cudaError_t status = cudaMalloc(&values, kCount * sizeof(float));
      status != cudaSuccess) {
    std::fprintf(stderr, "no GPU to run on: %s\n", cudaGetErrorString(status));
    return 1;
  }
  jouleprof::Window window = monitor->window("scale");
  for (int i = 0; i < 2000; ++i) scale<<<kCount / 256, 256>>>(values, kCount);
  cudaDeviceSynchronize();  // a launch returns at once: without this the window ends too early
  const auto energies = monitor->energy(window.end());
  cudaFree(values);
  if (!energies) {
    std::fprintf(stderr, "%s\n", energies.error().message.c_str());
    return 1;
  }
  for (const auto& e : *energies) {
    if (e.energy) {
      std::printf("%s: %.3f J, 95 %% interval +-%.3f J, %s\n", e.domain.device.c_str(),
                  e.energy->joules(), e.error.joules(), jouleprof::provenance_word(e.provenance));
    } else {
      std::printf("%s: unavailable: %s\n", e.domain.device.c_str(), e.reason.c_str());
    }
  }
}
