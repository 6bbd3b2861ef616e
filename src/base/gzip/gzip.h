// Reads a file that may be compressed with gzip, and writes compressed with it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/result.h"

namespace jouleprof {

// The content of the file decides whether it is compressed, not its name.
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

// --- Writing compressed with gzip ---

// A stream whose bytes go, compressed, into another one. finish() ends the compressed data, and so
// does the destructor. Fails (badbit) when the stream below does.
class GzipStream : public std::ostream {
 public:
  explicit GzipStream(std::ostream& below);
  ~GzipStream() override;

  void finish();

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

// "trace.json.gz" is to be compressed.
inline bool names_gzip(std::string_view path) { return path.ends_with(".gz"); }

// Compresses a text at once.
// With gzip's fastest level. Empty: there is no memory for it.
std::string gzip_text(std::string_view text);

// The text of the first member of `bytes`, which may have several, and is left with those after it.
// Absent, and `bytes` as it was: the member is damaged, cut off or longer than `limit`.
std::optional<std::string> gunzip_member(std::string_view& bytes, std::size_t limit);

}  // namespace jouleprof
