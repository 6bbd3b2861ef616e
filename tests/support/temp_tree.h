// A folder of small files that exists during a test: fake /sys and /proc trees, inputs, outputs.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <utility>

namespace jouleprof {

class TempTree {
 public:
  TempTree() : TempTree({}) {}
  // Pairs of relative path and content; folders are made as needed.
  TempTree(std::initializer_list<std::pair<std::string, std::string>> files) {
    std::string name = (std::filesystem::temp_directory_path() / "jouleprof-test-XXXXXX").string();
    root_ = mkdtemp(name.data());
    for (const auto& [path, content] : files) write(path, content);
  }
  TempTree(const TempTree&) = delete;
  TempTree& operator=(const TempTree&) = delete;
  ~TempTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  void write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << content;
  }

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path operator/(const std::string& path) const { return root_ / path; }

 private:
  std::filesystem::path root_;
};

}  // namespace jouleprof
