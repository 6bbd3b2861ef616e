// duty.cu: keeps a GPU busy for a part of the time, and counts the work.
//   duty SECONDS PERCENT [CONTEXT_SECONDS]: after SECONDS it holds its context for CONTEXT_SECONDS more.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

__global__ void work(float* out, int rounds) {
  float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = blockIdx.x;
  for (int i = 0; i < rounds; ++i) {
    a = a * b + c;
    d = d * b + a;
    c = c * b - d;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + c + d;
}

int main(int argc, char** argv) {
  using clock = std::chrono::steady_clock;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const double share = (argc > 2 ? std::atof(argv[2]) : 100) / 100;
  const double hold = argc > 3 ? std::atof(argv[3]) : 0;
  float* out = nullptr;
  if (cudaMalloc(&out, sizeof(float) * 132 * 8 * 256) != cudaSuccess) return 1;
  long launches = 0;
  const auto begin = clock::now();
  const auto since = [&](clock::time_point t) { return std::chrono::duration<double>(clock::now() - t).count(); };
  while (share > 0 && since(begin) < seconds) {
    const auto burst = clock::now();
    while (since(burst) < 0.1 * share) {
      work<<<132 * 8, 256>>>(out, 6000);
      if (cudaDeviceSynchronize() != cudaSuccess) return 1;
      ++launches;
    }
    if (share < 1) std::this_thread::sleep_for(std::chrono::duration<double>(0.1 * (1 - share)));
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(hold + (share > 0 ? 0 : seconds)));
  std::printf("%ld\n", launches);
  return 0;
}
