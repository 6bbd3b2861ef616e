// Writing compressed with gzip.
#pragma once

#include <memory>
#include <ostream>
#include <streambuf>
#include <string_view>
#include <vector>

namespace jouleprof {

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

}  // namespace jouleprof
