// Reads a file that may be compressed with gzip; its content decides, not its name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/result.h"

namespace jouleprof {

class GzipReader {
 public:
  // Errors: not_found, permission_denied, invalid_argument for a folder; unavailable.
  static Result<GzipReader> open(const std::filesystem::path& path);

  // Up to `size` bytes of the content; 0 at its end. Errors: corrupt when the compressed data are
  // damaged or cut off (what came before is still given first), else as the system says.
  Result<std::size_t> read(char* to, std::size_t size);

  const std::string& path() const { return path_; }

 private:
  struct Close {
    void operator()(void* file) const noexcept;
  };
  GzipReader(std::string path, void* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<void, Close> file_;  // gzFile
};

}  // namespace jouleprof
