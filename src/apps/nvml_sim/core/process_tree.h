// Finding the processes of a tree.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace jouleprof::nvml_sim {

// Whose tree: that of `pid` if it is not zero; else those of all processes that were started with
// `environment` ("NAME=value", or "NAME" for any value) in theirs; else that of this process.
struct TreeTarget {
  pid_t pid = 0;
  std::string environment;

  bool operator==(const TreeTarget&) const = default;
};

// The living processes of the tree, its root included, sorted. Empty when there is none.
std::vector<pid_t> tree_members(const TreeTarget& target,
                                const std::filesystem::path& proc = "/proc");

}  // namespace jouleprof::nvml_sim
