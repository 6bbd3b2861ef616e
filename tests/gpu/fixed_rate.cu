// Loops at a fixed rate: frames of three kernels, each frame begun at its own time.
//
//   nvcc -O2 -o fixed_rate fixed_rate.cu -ldl && ./fixed_rate PLAN OUT.json
//
// Each line of PLAN is a segment: period in ns, phase in ns, frames, launches in a frame of
// `multiply` (all multiprocessors), `copy` and `spin` (one multiprocessor). A segment begins at a
// multiple of 100 ms of CLOCK_MONOTONIC plus its phase, after a pause; without launches it is a
// pause. OUT.json has each segment's times (CLOCK_REALTIME, ns) and every step of the device's
// energy counter.
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Nanoseconds = long long;
constexpr Nanoseconds kGrid = 100'000'000;
constexpr Nanoseconds kPause = 270'000'000;  // two steps of the counter, after its lag
constexpr std::size_t kCopied = std::size_t{128} << 20;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "fixed_rate: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

__global__ void multiply(float* out, int rounds) {
  float a[8];
  for (int k = 0; k < 8; ++k) a[k] = threadIdx.x + 0.25f * k;
  for (int i = 0; i < rounds; ++i) {
    for (int k = 0; k < 8; ++k) a[k] = a[k] * 1.0001f + 0.5f;
  }
  float sum = 0;
  for (int k = 0; k < 8; ++k) sum += a[k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void copy(float4* to, const float4* from, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = from[i];
}

__global__ void spin(float* out, int rounds) {
  float a = threadIdx.x;
  for (int i = 0; i < rounds; ++i) a = a * 1.0001f + 0.5f;
  out[threadIdx.x] = a;
}

Nanoseconds now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

void wait_until(Nanoseconds at) {
  const Nanoseconds left = at - now(CLOCK_MONOTONIC) - 2'000'000;
  if (left > 0) {
    const timespec t{left / 1'000'000'000, left % 1'000'000'000};
    nanosleep(&t, nullptr);
  }
  while (now(CLOCK_MONOTONIC) < at) {
  }
}

// Every step of the energy counter, with the times before and after the read that showed it.
class Counter {
 public:
  Counter() : thread_([this] { watch(); }) {}

  // Once, at the end.
  std::string json() {
    stop_ = true;
    thread_.join();
    return json_;
  }

 private:
  void watch() {
    void* nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    const auto init = nvml ? reinterpret_cast<int (*)()>(dlsym(nvml, "nvmlInit_v2")) : nullptr;
    const auto handle = nvml ? reinterpret_cast<int (*)(unsigned, void**)>(
                                   dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))
                             : nullptr;
    const auto read = nvml ? reinterpret_cast<int (*)(void*, unsigned long long*)>(
                                 dlsym(nvml, "nvmlDeviceGetTotalEnergyConsumption"))
                           : nullptr;
    void* device = nullptr;
    if (init && handle && read && init() == 0 && handle(0, &device) == 0) {
      unsigned long long last = 0;
      while (!stop_) {
        const Nanoseconds before = now(CLOCK_REALTIME);
        unsigned long long millijoules = 0;
        if (read(device, &millijoules) == 0 && millijoules != last) {
          json_ += (json_.empty() ? "[" : ",[") + std::to_string(before) + "," +
                   std::to_string(now(CLOCK_REALTIME)) + "," + std::to_string(millijoules) + "]";
          last = millijoules;
        }
        const timespec t{0, 1'000'000};
        nanosleep(&t, nullptr);
      }
    }
  }

  std::atomic<bool> stop_{false};
  std::string json_;
  std::thread thread_;
};

struct Work {
  float* out = nullptr;
  float4 *from = nullptr, *to = nullptr;
  int blocks = 0;

  Work() {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, 0));
    blocks = properties.multiProcessorCount * 8;
    check(cudaMalloc(&out, sizeof(float) * 256 * blocks));
    check(cudaMalloc(&from, kCopied));
    check(cudaMalloc(&to, kCopied));
    check(cudaMemset(from, 0x3f, kCopied));
    check(cudaDeviceSynchronize());
  }
  void launch(int multiplies, int copies, int spins) const {
    for (int i = 0; i < multiplies; ++i) multiply<<<blocks, 256>>>(out, 1500);
    for (int i = 0; i < copies; ++i) copy<<<blocks, 256>>>(to, from, kCopied / sizeof(float4));
    for (int i = 0; i < spins; ++i) spin<<<1, 32>>>(out, 48000);
  }
  double microseconds(int multiplies, int copies, int spins) const {
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin));
    check(cudaEventCreate(&end));
    launch(multiplies, copies, spins);
    check(cudaEventRecord(begin));
    launch(multiplies, copies, spins);
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end));
    return 1e3 * ms / (multiplies + copies + spins);
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const Work work;
  std::string json;
  char line[400];
  std::snprintf(line, sizeof line, "{\"microseconds\": [%.3f, %.3f, %.3f], \"segments\": [",
                work.microseconds(50, 0, 0), work.microseconds(0, 50, 0),
                work.microseconds(0, 0, 50));
  json += line;
  Counter counter;
  std::ifstream plan(argv[1]);
  Nanoseconds period, phase;
  int frames, multiplies, copies, spins;
  bool first = true;
  while (plan >> period >> phase >> frames >> multiplies >> copies >> spins) {
    const Nanoseconds begin = ((now(CLOCK_MONOTONIC) + kPause) / kGrid + 1) * kGrid + phase;
    wait_until(begin);
    const Nanoseconds real = now(CLOCK_REALTIME);
    Nanoseconds latest = 0;
    for (int i = 0; i < frames; ++i) {
      wait_until(begin + i * period);
      latest = std::max(latest, now(CLOCK_MONOTONIC) - begin - i * period);
      work.launch(multiplies, copies, spins);
    }
    check(cudaDeviceSynchronize());
    const Nanoseconds done = now(CLOCK_REALTIME);
    wait_until(begin + frames * period);
    std::snprintf(line, sizeof line, "%s{\"begin\": %lld, \"end\": %lld, \"latest\": %lld}",
                  first ? "" : ",\n", real, done, latest);
    json += line;
    first = false;
  }
  wait_until(now(CLOCK_MONOTONIC) + kPause);
  json += "], \"counter\": [" + counter.json() + "]}\n";
  std::ofstream(argv[2]) << json;
  return 0;
}
