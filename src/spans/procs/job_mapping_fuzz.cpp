// Files of --job-mapping-dir: the first line is the file's name, the rest its text.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "spans/procs/job_mapping.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto folder =
      std::filesystem::temp_directory_path() / ("job_mapping_fuzz." + std::to_string(getpid()));
  const std::string input(reinterpret_cast<const char*>(data), size);
  const auto line = input.find('\n');
  const auto name = input.substr(0, line);
  if (name.empty() || name.size() > 200 || name == "." || name == ".." ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    return 0;
  }
  std::filesystem::create_directory(folder);
  std::ofstream(folder / name) << (line == std::string::npos ? "" : input.substr(line + 1));
  jouleprof::spans::JobMapping mapping;
  if (!mapping.read(folder)) std::abort();
  for (const auto& gpu : mapping.all()) {
    for (const auto& job : gpu.jobs) {
      // An id is a label of a series: printable and bounded.
      if (job.empty() || job.size() > 128) std::abort();
      for (const char c : job) {
        if (c <= ' ' || c == '\x7f') std::abort();
      }
    }
  }
  std::filesystem::remove_all(folder);
  return 0;
}
