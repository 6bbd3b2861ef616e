// The first byte chooses the format (or none: recognise it) and whether an interval is given; the
// rest is the file. A second file follows a byte 0x01.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "importers/import.h"

namespace importers = jouleprof::importers;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto formats = importers::formats();
  importers::ImportOptions options;
  const std::size_t choice = data[0] % (formats.size() + 1);
  if (choice < formats.size()) options.format = formats[choice].name;
  if (data[0] & 0x80) options.interval = std::chrono::seconds{data[0]};

  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto second = text.find('\x01');
  std::vector<importers::SourceText> sources{{"a", text.substr(0, second)}};
  if (second != std::string::npos) sources.push_back({"b", text.substr(second + 1)});

  const auto recording = importers::import_texts(sources, options);
  if (!recording) {
    if (recording.error().message.empty()) std::abort();
    if (recording.error().message.find('\n') != std::string::npos) std::abort();
    return 0;
  }
  // Time goes forward, and every figure is one.
  const auto& run = recording->run;
  if (run.work_begin && *run.work_end < *run.work_begin) std::abort();
  for (const auto& power : recording->readings.powers) {
    if (!(power.power.watts() >= 0) || power.at < jouleprof::HostTime{}) std::abort();
  }
  for (const auto& window : recording->imported_windows) {
    for (const auto& energy : window.energies) {
      if (energy.energy < jouleprof::Energy{}) std::abort();
    }
  }
  if (recording->readings.powers.empty() && recording->readings.counters.empty() &&
      recording->imported_windows.empty()) {
    std::abort();
  }
  return 0;
}
