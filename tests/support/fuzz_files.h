// Files for fuzzers of readers: a folder in memory, removed when the program ends, and seeds.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace jouleprof {

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// The same in every call of one process; removed when that ends.
inline const std::filesystem::path& fuzz_folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      const std::filesystem::path memory = "/dev/shm";
      path = std::filesystem::exists(memory) ? memory : std::filesystem::temp_directory_path();
      path /= "jouleprof-fuzz-" + std::to_string(getpid());
      std::filesystem::create_directories(path);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

// Whether a file of fuzz_folder() may have the name.
inline bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 200 && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

// Writes a seed if JOULEPROF_FUZZ_SEEDS names a folder.
inline void write_seed(const std::string& name, std::string_view bytes) {
  const char* folder = std::getenv("JOULEPROF_FUZZ_SEEDS");
  if (folder != nullptr) write_bytes(std::filesystem::path(folder) / name, bytes);
}

}  // namespace jouleprof
