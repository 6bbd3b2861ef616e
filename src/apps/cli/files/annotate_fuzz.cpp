// The first byte chooses whether the trace is compressed, the second cuts compressed ones off; the
// trace follows.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "base/gzip/gzip.h"
#include "importers/torch/example_torch_trace.h"
#include "importers/torch/torch_trace.h"
#include "report/chrome/torch_annotator.h"
#include "tests/support/fuzz_files.h"

namespace {

using namespace std::chrono_literals;
using namespace jouleprof;

std::string compressed(const std::string& text, unsigned cut) {
  std::ostringstream out;
  GzipStream packed(out);
  packed << text;
  packed.finish();
  std::string bytes = out.str();
  return bytes.substr(0, bytes.size() - std::min<std::size_t>(cut, bytes.size()));
}

// A joule for each class.
std::vector<model::ActivityProfile> profiles_of(const model::Recording& power,
                                                const model::Trace& trace) {
  model::ActivityProfile p;
  p.domain = power.domains[0];
  p.begin = HostTime{1000s};
  p.end = HostTime{1004s};
  for (const auto& kernel : trace.classes) {
    model::ActivityRow row;
    row.name = kernel.name;
    row.kernel = kernel;
    row.busy = 1ms;
    model::Measurement joule;
    joule.energy = Energy::joules(1);
    joule.error = Energy::joules(0.5);
    row.energy = joule;
    p.by_kernel.push_back(std::move(row));
  }
  return {p};
}

void check(const Error& error) {
  if (error.message.empty() || error.message.find('\n') != std::string::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const std::string trace = importers::trace_text();
  write_seed("plain", std::string(2, '\0') + trace);
  write_seed("packed", std::string("\x01\x00", 2) + trace);
  write_seed("packed_cut", std::string("\x01\x14", 2) + trace);
  write_seed("cut", std::string(2, '\0') + trace.substr(0, trace.size() * 2 / 3));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const model::Recording power = importers::torch_power();
  const std::string text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::filesystem::path path = fuzz_folder() / "trace.json";
  write_bytes(path, data[0] & 1 ? compressed(text, data[1]) : text);
  const auto trace = importers::TorchTrace::read(path, power);
  if (!trace) {
    check(trace.error());
    return 0;
  }
  const auto profiles = profiles_of(power, trace->profiled().trace);
  const std::vector<report::CounterTrack> tracks{{"gpu0 power (W)", {}}};
  report::TorchAnnotator annotator(trace->profiled(), profiles, tracks, "1");
  std::ostringstream out;
  const auto made = trace->for_each_piece([&](const model::TracePiece& piece) {
    annotator.write(out, piece);
    return true;
  });
  if (!made) {
    check(made.error());
    return 0;
  }
  // A trace stays one, and a second annotation is refused.
  write_bytes(path, out.str());
  const auto again = importers::TorchTrace::read(path, power);
  if (again || again.error().code != Errc::kInvalidArgument) std::abort();
  return 0;
}
