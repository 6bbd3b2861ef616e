// A spool file with these bytes must give a trace or warnings, and no more than it holds.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>

#include "recording/spool/random_trace.h"
#include "recording/spool/spool_reader.h"

namespace {

struct Consumer : jouleprof::spool::SpoolConsumer {
  jouleprof::spool::TraceSink sink;

  jouleprof::model::ActivitySink& process(const jouleprof::spool::SpoolProcess&) override {
    return sink;
  }
  void warn(std::string) override {}
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path folder = [] {
    char name[] = "/dev/shm/spool_fuzz.XXXXXX";
    return std::filesystem::path(mkdtemp(name));
  }();
  std::ofstream(folder / "1-2-0000.spool", std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  Consumer consumer;
  jouleprof::spool::SpoolReader reader(folder);
  (void)reader.poll(consumer);
  (void)reader.poll(consumer);
  return 0;
}
