// The first byte chooses which files there are, what the samples are, whether events are kept and
// whether the files are compressed; the second cuts compressed ones off. Samples, counter, kernels
// and names follow, each ended by a byte 0x01.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>

#include "base/gzip/gzip.h"
#include "importers/csv/csv_recording.h"
#include "tests/support/fuzz_files.h"

namespace {

namespace importers = jouleprof::importers;

constexpr std::size_t kFiles = 4;

std::string compressed(const std::string& text, unsigned cut) {
  std::ostringstream out;
  jouleprof::GzipStream packed(out);
  packed << text;
  packed.finish();
  std::string bytes = out.str();
  return bytes.substr(0, bytes.size() - std::min<std::size_t>(cut, bytes.size()));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const std::string samples = "t_ms,power_w\n1000,100\n1020,200.5\n1040,210\n1060,100\n";
  const std::string counter =
      "t_before_ns,t_after_ns,energy_mj\n1000000000,1000100000,5\n"
      "1100000000,1100100000,5000\n";
  const std::string kernels =
      "start_us,duration_us,kernel_id,stream\n1000000,500,0,7\n"
      "1000600,2000.5,1,7\n1002000,3000,1,8\n";
  const std::string named =
      "name,start_ns,end_ns\n\"gemm<float, 4>\",1000000000,1000500000\n"
      "Memcpy DtoD,1000600000,1000700000\nBuffer Flush,1000700000,1000800000\n";
  const std::string names =
      "{\"base_unix_ns\": 0, \"kernels\": {\"0\": \"gemm\", \"1\": \"Memset (Device)\"}}";
  const std::string end = "\x01";
  for (const char choice : {'\x0f', '\x1f', '\x4f', '\x8f', '\x2f'}) {
    jouleprof::write_seed("by_id" + std::to_string(static_cast<unsigned char>(choice)),
                          choice + (end + samples) + end + counter + end + kernels + end + names);
  }
  jouleprof::write_seed("by_name", "\x07" + end + samples + end + counter + end + named);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const unsigned choice = data[0];
  std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  importers::CsvSources sources;
  const std::array<std::filesystem::path*, kFiles> paths{&sources.samples, &sources.counter,
                                                         &sources.kernels, &sources.names};
  for (std::size_t i = 0; i != kFiles; ++i) {
    const auto end = text.find('\x01');
    const std::string part = text.substr(0, end);
    text = end == std::string::npos ? "" : text.substr(end + 1);
    if ((choice >> i & 1) == 0) continue;
    *paths[i] = jouleprof::fuzz_folder() / std::to_string(i);
    jouleprof::write_bytes(*paths[i], choice & 0x40 ? compressed(part, data[1]) : part);
  }
  sources.events = choice & 0x10;
  sources.sampled = choice & 0x20 ? "instant" : choice & 0x80 ? "average" : "ring";
  if (choice & 0x80) sources.device_name = "NVIDIA H100 80GB HBM3";
  if (choice & 0x20) sources.idle = {"0s:10ms"};

  const auto recording = importers::import_csv(sources);
  if (!recording) {
    const std::string& message = recording.error().message;
    if (message.empty() || message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const auto& readings = recording->readings;
  if (readings.powers.empty() && readings.counters.empty()) std::abort();
  if (*recording->run.work_end < *recording->run.work_begin) std::abort();
  for (std::size_t i = 1; i < readings.powers.size(); ++i) {
    if (readings.powers[i].at <= readings.powers[i - 1].at) std::abort();
  }
  for (const auto& trace : recording->traces) {
    for (const auto& chunk : trace.chunks) {
      if (chunk.device >= trace.devices.size() || chunk.end < chunk.begin) std::abort();
    }
  }
  return 0;
}
