// Files of --job-mapping-dir: the first line is the file's name, the rest its text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "spans/procs/owners.h"
#include "tests/support/fuzz_files.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto folder = jouleprof::fuzz_folder() / "jobs";
  const std::string input(reinterpret_cast<const char*>(data), size);
  const auto line = input.find('\n');
  const auto name = input.substr(0, line);
  if (!jouleprof::is_file_name(name)) return 0;
  std::filesystem::create_directory(folder);
  jouleprof::write_bytes(folder / name, line == std::string::npos ? "" : input.substr(line + 1));
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
