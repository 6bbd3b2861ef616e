// Records CUPTI's activity buffers of a known program on a real GPU, with what the vendor's own
// headers say of each record, as a fixture (tests/fixtures/cupti).
//
//   nvcc -o record_buffers record_buffers.cu -lcupti && ./record_buffers OUT
//
// Writes OUT/buffers.bin, the buffers' valid bytes one after the other, and OUT/records.csv, a row
// for each record. The device's UUID is written over: the bytes 0 to 15 stand in its place.
#include <cuda_runtime.h>
#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kBufferBytes = 1 << 15;  // small, so that there are several
constexpr std::size_t kMegabyte = 1 << 20;

void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "record_buffers: %s\n", cudaGetErrorString(error));
  std::exit(1);
}

void check(CUptiResult result) {
  if (result == CUPTI_SUCCESS) return;
  const char* text = "";
  cuptiGetResultString(result, &text);
  std::fprintf(stderr, "record_buffers: %s\n", text);
  std::exit(1);
}

template <typename T>
__global__ void scale(T* values, T by) {
  values[blockIdx.x * blockDim.x + threadIdx.x] *= by;
}

__global__ void spin(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

// What a row of records.csv has, in its order.
struct Row {
  std::size_t buffer = 0;  // where the buffer begins in buffers.bin
  std::size_t valid = 0;   // its bytes
  std::size_t offset = 0;  // of the record in it
  unsigned kind = 0;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint32_t device = 0;
  std::uint32_t stream = 0;
  std::uint32_t correlation = 0;
  std::uint32_t graph = 0;
  std::uint64_t node = 0;
  std::uint64_t bytes = 0;
  unsigned copy_kind = 0;
  std::int32_t grid[3] = {0, 0, 0};
  std::int32_t block[3] = {0, 0, 0};
  std::size_t name_offset = 0;  // of the pointer to the name, in the record; 0: it has none
  std::string name;
};

template <typename Record>
void take(const Record& record, Row& row) {
  row.start = record.start;
  row.end = record.end;
  row.device = record.deviceId;
  row.stream = record.streamId;
  row.correlation = record.correlationId;
  row.graph = record.graphId;
}

Row row_of(const CUpti_Activity& record) {
  Row row;
  row.kind = record.kind;
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      const auto& kernel = reinterpret_cast<const CUpti_ActivityKernel10&>(record);
      take(kernel, row);
      row.node = kernel.graphNodeId;
      row.grid[0] = kernel.gridX, row.grid[1] = kernel.gridY, row.grid[2] = kernel.gridZ;
      row.block[0] = kernel.blockX, row.block[1] = kernel.blockY, row.block[2] = kernel.blockZ;
      row.name_offset = offsetof(CUpti_ActivityKernel10, name);
      if (kernel.name != nullptr) row.name = kernel.name;
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = reinterpret_cast<const CUpti_ActivityMemcpy6&>(record);
      take(copy, row);
      row.node = copy.graphNodeId;
      row.bytes = copy.bytes;
      row.copy_kind = copy.copyKind;
      break;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& set = reinterpret_cast<const CUpti_ActivityMemset4&>(record);
      take(set, row);
      row.node = set.graphNodeId;
      row.bytes = set.bytes;
      break;
    }
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      take(reinterpret_cast<const CUpti_ActivityGraphTrace2&>(record), row);
      break;
    case CUPTI_ACTIVITY_KIND_DEVICE: {
      const auto& device = reinterpret_cast<const CUpti_ActivityDevice5&>(record);
      row.device = device.id;
      row.name_offset = offsetof(CUpti_ActivityDevice5, name);
      if (device.name != nullptr) row.name = device.name;
      break;
    }
    default:
      break;
  }
  return row;
}

std::mutex mutex;
std::string bytes_of_all;
std::vector<Row> rows;

void requested(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  *size = kBufferBytes;
  *most_records = 0;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
}

void completed(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::scoped_lock lock(mutex);
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_DEVICE) {
      auto* uuid = reinterpret_cast<CUpti_ActivityDevice5*>(record)->uuid.bytes;
      for (int i = 0; i < 16; ++i) uuid[i] = static_cast<char>(i);
    }
    Row row = row_of(*record);
    row.buffer = bytes_of_all.size();
    row.valid = valid;
    row.offset = static_cast<std::size_t>(reinterpret_cast<std::uint8_t*>(record) - buffer);
    rows.push_back(std::move(row));
  }
  bytes_of_all.append(reinterpret_cast<const char*>(buffer), valid);
  std::free(buffer);
}

void write(const std::string& folder) {
  std::ofstream(folder + "/buffers.bin", std::ios::binary) << bytes_of_all;
  std::ofstream out(folder + "/records.csv");
  out << "buffer,valid,offset,kind,start,end,device,stream,correlation,graph,node,bytes,copy_kind,"
         "grid_x,grid_y,grid_z,block_x,block_y,block_z,name_offset,name\n";
  for (const Row& r : rows) {
    out << r.buffer << ',' << r.valid << ',' << r.offset << ',' << r.kind << ',' << r.start << ','
        << r.end << ',' << r.device << ',' << r.stream << ',' << r.correlation << ',' << r.graph
        << ',' << r.node << ',' << r.bytes << ',' << r.copy_kind;
    for (const std::int32_t n : r.grid) out << ',' << n;
    for (const std::int32_t n : r.block) out << ',' << n;
    out << ',' << r.name_offset << ',' << r.name << '\n';
  }
}

void work(cudaStream_t one, cudaStream_t other) {
  float* floats = nullptr;
  double* doubles = nullptr;
  char* host = nullptr;
  char* bytes = nullptr;
  check(cudaMalloc(&floats, 4 * 128 * sizeof(float)));
  check(cudaMalloc(&doubles, 8 * 64 * sizeof(double)));
  check(cudaMalloc(&bytes, 2 * kMegabyte));
  check(cudaMallocHost(&host, kMegabyte));
  for (int i = 0; i < 30; ++i) scale<<<4, 128, 0, one>>>(floats, 2.0F);
  for (int i = 0; i < 20; ++i) scale<<<dim3(4, 2), dim3(32, 2), 0, one>>>(doubles, 2.0);
  for (int i = 0; i < 5; ++i) {
    check(cudaMemcpyAsync(bytes, host, kMegabyte, cudaMemcpyHostToDevice, one));
    check(cudaMemcpyAsync(host, bytes, kMegabyte / 2, cudaMemcpyDeviceToHost, one));
    check(cudaMemcpyAsync(bytes + kMegabyte, bytes, kMegabyte, cudaMemcpyDeviceToDevice, one));
    check(cudaMemsetAsync(bytes, 0, 4096, one));
  }
  check(cudaDeviceSynchronize());
  for (int i = 0; i < 10; ++i) {  // side by side
    spin<<<1, 32, 0, one>>>(100'000);
    spin<<<2, 32, 0, other>>>(150'000);
  }
  check(cudaDeviceSynchronize());

  cudaGraph_t graph{};
  cudaGraphExec_t executable{};
  check(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  check(cudaMemsetAsync(bytes, 0, 8192, one));
  scale<<<4, 128, 0, one>>>(floats, 0.5F);
  spin<<<3, 32, 0, one>>>(20'000);
  check(cudaStreamEndCapture(one, &graph));
  // A graph that was made executable while its launches were not traced as one must never be
  // launched while they are: CUPTI 13.0 then reads what is not there.
  check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
  check(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 8; ++i) check(cudaGraphLaunch(executable, one));
  check(cudaDeviceSynchronize());
  check(cuptiActivityFlushAll(0));
  check(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
  for (int i = 0; i < 6; ++i) check(cudaGraphLaunch(executable, one));
  check(cudaDeviceSynchronize());
  // These leave their nodes' stamps in the records of the last launch before them.
  check(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_GRAPH_TRACE));
  for (int i = 0; i < 5; ++i) check(cudaGraphLaunch(executable, one));
  check(cudaDeviceSynchronize());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: record_buffers OUT\n");
    return 2;
  }
  check(cuptiActivityRegisterCallbacks(requested, completed));
  for (const auto kind : {CUPTI_ACTIVITY_KIND_DEVICE, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                          CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET}) {
    check(cuptiActivityEnable(kind));
  }
  cudaStream_t one{};
  cudaStream_t other{};
  check(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
  check(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  work(one, other);
  check(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  write(argv[1]);
  std::uint32_t version = 0;
  int driver = 0;
  check(cuptiGetVersion(&version));
  check(cudaDriverGetVersion(&driver));
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0));
  std::printf("%zu records, %zu bytes; CUPTI %u, driver for CUDA %d, %s\n", rows.size(), bytes_of_all.size(),
              version, driver, properties.name);
}
