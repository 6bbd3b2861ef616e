// Reads any bytes as a recording.
//
//   mkdir corpus && JOULEPROF_FUZZ_SEEDS=corpus recording_reader_fuzz -runs=0
//   recording_reader_fuzz -max_len=32768 -len_control=0 corpus
//
// The first writes recordings to begin from, with small pages, so that a mutation meets something.
#include <SQLiteCpp/Database.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "recording/reader.h"
#include "recording/recording_fixture.h"
#include "recording/writer.h"

namespace {

namespace fs = std::filesystem;

void write_seeds(const fs::path& folder) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const fs::path path = folder / ("seed" + std::to_string(seed) + ".jprof");
    const auto recording = jouleprof::recording::RandomRecording(seed, seed < 4 ? 1 : 20).make();
    if (!jouleprof::recording::write_recording(path, recording, {.overwrite = true})) std::abort();
    SQLite::Database db(path.string(), SQLite::OPEN_READWRITE);
    db.exec("PRAGMA page_size = 512; VACUUM");
  }
}

// In memory where there is such a folder; SQLite needs a name.
fs::path input_path() {
  const fs::path memory = "/dev/shm";
  const fs::path folder = fs::exists(memory) ? memory : fs::temp_directory_path();
  return folder / ("jouleprof-fuzz-" + std::to_string(getpid()) + ".jprof");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* folder = std::getenv("JOULEPROF_FUZZ_SEEDS")) write_seeds(folder);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fs::path path = input_path();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto read = jouleprof::recording::read_recording(path);
  if (!read && read.error().code != jouleprof::Errc::kCorrupt &&
      read.error().code != jouleprof::Errc::kUnsupported) {
    std::fprintf(stderr, "%s\n", read.error().message.c_str());
    std::abort();
  }
  fs::remove(path);
  return 0;
}
