// Expected output in files. JOULEPROF_UPDATE_GOLDEN=1 rewrites them; review the difference.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace jouleprof {

// Whether `actual` equals the file's content byte by byte.
inline ::testing::AssertionResult matches_golden(const std::filesystem::path& path,
                                                 const std::string& actual) {
  const char* update = std::getenv("JOULEPROF_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << actual;
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return ::testing::AssertionFailure()
           << path << " does not exist; JOULEPROF_UPDATE_GOLDEN=1 writes it";
  }
  std::ostringstream expected;
  expected << file.rdbuf();
  if (expected.str() == actual) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << path << " holds:\n"
                                       << expected.str() << "but this came:\n"
                                       << actual << "(JOULEPROF_UPDATE_GOLDEN=1 rewrites the file)";
}

}  // namespace jouleprof
