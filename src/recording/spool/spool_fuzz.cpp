// Bytes as a spool file. With an even first byte they are the file; with an odd one they are
// frames, each a type, two bytes of length and a payload, that get the checksums which a fuzzer
// cannot guess. The second byte says where a first read stops.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "recording/spool/frame.h"
#include "recording/spool/random_trace_fixture.h"
#include "recording/spool/spool_reader.h"
#include "recording/spool/spool_writer.h"
#include "tests/support/fuzz_files.h"

namespace {

using namespace jouleprof;
using namespace jouleprof::spool;

struct Consumer : SpoolConsumer {
  TraceSink sink;
  std::string warnings;

  model::ActivitySink& process(const SpoolProcess& process) override {
    static_cast<model::TracedProcess&>(sink.trace) = process;
    return sink;
  }
  void warn(std::string text) override { warnings += text; }
};

const std::filesystem::path& file() {
  static const std::filesystem::path path = fuzz_folder() / "1-2-0000.spool";
  return path;
}

std::string as_file(std::string_view rest) {
  std::string bytes(kMagic);
  while (rest.size() >= 3) {
    const auto type = static_cast<std::uint8_t>(rest[0]);
    const std::size_t length = static_cast<unsigned char>(rest[1]) +
                               std::size_t{256} * static_cast<unsigned char>(rest[2]);
    rest.remove_prefix(3);
    put_frame(bytes, FrameType{type}, rest.substr(0, length));
    rest.remove_prefix(std::min(length, rest.size()));
  }
  return bytes;
}

SpoolProcess process_of_file() {
  SpoolProcess process;
  process.pid = 1;
  process.start = HostTime{Duration{2}};
  return process;
}

std::string header() {
  Header head;
  head.process = process_of_file();
  head.process.program = "p";
  head.start = process_of_file().start;
  std::string payload;
  FieldWriter out(payload);
  fields(head, out);
  return payload;
}

Consumer read_once(const std::string& bytes) {
  write_bytes(file(), bytes);
  Consumer consumer;
  SpoolReader reader(fuzz_folder());
  if (!reader.poll(consumer)) std::abort();
  return consumer;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  for (unsigned seed = 0; seed != 6; ++seed) {
    model::Trace trace = RandomTrace(seed, seed < 3 ? 1 : 6).make();
    trace.pid = 1;
    const auto folder = fuzz_folder() / "seed";
    std::filesystem::create_directories(folder);
    auto out = SpoolWriter::open(folder, trace);
    if (!out) std::abort();
    send(trace, **out);
    (*out)->close();
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream in(entry.path(), std::ios::binary);
      const std::string bytes{std::istreambuf_iterator<char>(in), {}};
      std::string frames("\x01\x40");
      std::string_view rest = std::string_view(bytes).substr(kMagic.size());
      for (Frame frame = first_frame(rest); frame.state == Frame::State::kWhole;
           frame = first_frame(rest)) {
        // The header's process and start are those of the file's name.
        const std::string payload = frame.type == 1 ? header() : std::string(frame.payload);
        frames += static_cast<char>(frame.type);
        frames += static_cast<char>(payload.size() & 0xff);
        frames += static_cast<char>(payload.size() >> 8);
        frames += payload;
        rest.remove_prefix(frame.size);
      }
      write_seed("frames" + std::to_string(seed), frames);
    }
    std::filesystem::remove_all(folder);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::string bytes = data[0] % 2 == 0 ? std::string(rest) : as_file(rest);
  const Consumer whole = read_once(bytes);

  // In two goes, by the same reader and by another one that goes on: nothing is lost or twice.
  const std::size_t stop = bytes.size() * data[1] / 256;
  write_bytes(file(), std::string_view(bytes).substr(0, stop));
  Consumer consumer;
  SpoolReader reader(fuzz_folder());
  if (!reader.poll(consumer)) std::abort();
  model::Trace first = consumer.sink.trace;
  first.position = reader.position(process_of_file());
  const bool damaged = reader.damaged();
  write_bytes(file(), bytes);
  if (!reader.poll(consumer)) std::abort();
  if (!damaged && !(consumer.sink.trace == whole.sink.trace)) std::abort();
  if (damaged || !first.position || first.pid != 1) return 0;
  Consumer rest_of_it;
  rest_of_it.sink.trace = first;
  rest_of_it.sink.trace.position.reset();
  SpoolReader another(fuzz_folder());
  another.resume(first, rest_of_it.sink);
  if (!another.poll(rest_of_it)) std::abort();
  if (!(rest_of_it.sink.trace == whole.sink.trace)) std::abort();
  return 0;
}
