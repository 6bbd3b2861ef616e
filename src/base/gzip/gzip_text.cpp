#include "base/gzip/gzip_text.h"

#include <zlib.h>

namespace jouleprof {
namespace {

constexpr int kGzip = 16;  // added to the window's size: gzip's header instead of zlib's
constexpr int kMemory = 8;

}  // namespace

std::string gzip_text(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + kGzip, kMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool is_done = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(is_done ? stream.total_out : 0);
  deflateEnd(&stream);
  return out;
}

}  // namespace jouleprof
