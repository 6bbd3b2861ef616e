// load.cu: keeps a GPU busy with a stated amount of work, for comparisons of a program with itself.
//   load PERCENT: 100 is about two seconds of fused multiply-adds on all multiprocessors of an H200.
#include <cstdio>
#include <cstdlib>

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
  const int launches = 20 * (argc > 1 ? std::atoi(argv[1]) : 100) / 2;
  float* out = nullptr;
  if (cudaMalloc(&out, sizeof(float) * 132 * 8 * 256) != cudaSuccess) return 1;
  for (int i = 0; i < launches; ++i) work<<<132 * 8, 256>>>(out, 60000);
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::fprintf(stderr, "load: %s\n", cudaGetErrorString(error));
  return error == cudaSuccess ? 0 : 1;
}
