// A CUDA program for replay_run.py: a graph of three kernels, and kernels that are no good to run again.
//
//   replay SECONDS [graph|streams|flag|assert|leave|abort]
//
// flag: a kernel that waits for a flag that the program sets once. assert: a kernel that fails where it
// runs again. leave, abort: the program ends without its handlers.
#include <cuda_runtime.h>
#include <unistd.h>

#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

constexpr int kStatus = 3;
constexpr int kN = 1 << 24;

__global__ void saxpy(float* y, const float* x, float a) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kN; i += gridDim.x * blockDim.x) {
    y[i] = a * x[i] + 0.5f * y[i];
  }
}

__global__ void polynomial(float* y, const float* x) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < kN; i += gridDim.x * blockDim.x) {
    float v = x[i];
    for (int k = 0; k < 128; ++k) v = v * 0.999f + 0.001f;
    y[i] = v;
  }
}

__global__ void tiles(float* y, const float* x) {
  __shared__ float part[32][33];
  for (int tile = blockIdx.x; tile < kN / 1024; tile += gridDim.x) {
    part[threadIdx.y][threadIdx.x] = x[tile * 1024 + threadIdx.y * 32 + threadIdx.x];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < 32; ++k) sum += part[threadIdx.x][k] * part[k][threadIdx.y];
    __syncthreads();
    y[tile * 1024 + threadIdx.y * 32 + threadIdx.x] = sum;
  }
}

__device__ void work() {
  const long long begin = clock64();
  while (clock64() - begin < 150000) {
  }
}

__global__ void waits(volatile int* flag) {
  work();
  while (*flag == 0) {
  }
  *flag = 0;
}

__global__ void only(int* left) {
  work();
  assert(*left > 0);
  *left -= 1;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const std::string mode = argc > 2 ? argv[2] : "graph";
  float *x, *y, *z;
  int* word;
  cudaMalloc(&x, kN * 4);
  cudaMalloc(&y, kN * 4);
  cudaMalloc(&z, kN * 4);
  cudaMalloc(&word, 4);
  cudaMemset(x, 0x3c, kN * 4);
  cudaMemset(y, 0x3b, kN * 4);
  cudaStream_t s;
  cudaStreamCreate(&s);
  const auto step = [&] {
    saxpy<<<1056, 256, 0, s>>>(y, x, 0.5f);
    polynomial<<<1056, 256, 0, s>>>(z, y);
    tiles<<<1056, dim3(32, 32), 0, s>>>(y, z);
  };
  cudaGraph_t graph;
  cudaGraphExec_t run;
  cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
  for (int i = 0; i < 20; ++i) step();
  cudaStreamEndCapture(s, &graph);
  cudaGraphInstantiate(&run, graph, 0);
  const auto begin = std::chrono::steady_clock::now();
  long steps = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    if (mode == "graph") {
      cudaGraphLaunch(run, s);
      cudaGraphLaunch(run, s);
    } else {
      for (int i = 0; i < 40; ++i) step();
    }
    steps += 40;
    if (mode == "flag" || mode == "assert") {
      for (int i = 0; i < 20; ++i) {
        const int one = 1;
        cudaMemcpyAsync(word, &one, 4, cudaMemcpyHostToDevice, s);
        if (mode == "flag") {
          waits<<<1, 1, 0, s>>>(word);
        } else {
          only<<<1, 1, 0, s>>>(word);
        }
      }
    }
    cudaStreamSynchronize(s);
  }
  if (cudaGetLastError() != cudaSuccess) return 1;
  std::printf("%s ended, %d\n", mode.c_str(), steps > 0);
  if (mode == "leave") {
    std::fflush(stdout);
    _exit(kStatus);
  }
  if (mode == "abort") {
    std::fflush(stdout);
    std::abort();
  }
  return kStatus;  // what is printed is in a buffer still
}
