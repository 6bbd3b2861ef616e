// Writes recordings into a new merged file. Private to this folder.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace jouleprof::recording {

struct MergeInput {
  std::filesystem::path file;  // a recording or a merged file
  std::string name = {};       // of a recording's part; empty: the file's, without its folder
  bool is_claimed = false;     // by the caller
};

// Writes the recordings of `inputs` into the empty file `output`. Returns how many they are.
// Errors: as merge_recordings'.
Result<std::size_t> write_merged(const std::vector<MergeInput>& inputs,
                                 const std::filesystem::path& output);

}  // namespace jouleprof::recording
