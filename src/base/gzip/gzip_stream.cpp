#include "base/gzip/gzip_stream.h"

#include <zlib.h>

#include <array>
#include <limits>

namespace jouleprof {
namespace {

// Twice as fast as zlib's usual level for a tenth more bytes of JSON.
constexpr int kLevel = 4;
constexpr int kGzipWindow = 15 + 16;
constexpr std::size_t kChunk = 256 * 1024;

}  // namespace

class GzipStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::ostream& below) : below_(below), in_(kChunk), out_(kChunk) {
    good_ = deflateInit2(&z_, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    setp(in_.data(), in_.data() + in_.size());
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() override {
    finish();
    deflateEnd(&z_);
  }

  bool finish() {
    if (!finished_) compress(Z_FINISH);
    finished_ = true;
    return good_;
  }

 protected:
  int_type overflow(int_type c) override {
    if (finished_ || !compress(Z_NO_FLUSH)) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      *pptr() = traits_type::to_char_type(c);
      pbump(1);
    }
    return traits_type::not_eof(c);
  }
  // Not a flush of the compressed data, which would only make them longer.
  int sync() override { return good_ ? 0 : -1; }

 private:
  bool compress(int flush) {
    if (!good_) return false;
    z_.next_in = reinterpret_cast<Bytef*>(pbase());
    z_.avail_in = static_cast<uInt>(pptr() - pbase());
    do {
      z_.next_out = reinterpret_cast<Bytef*>(out_.data());
      z_.avail_out = static_cast<uInt>(out_.size());
      if (deflate(&z_, flush) == Z_STREAM_ERROR) return good_ = false;
      below_.write(out_.data(), static_cast<std::streamsize>(out_.size() - z_.avail_out));
      if (!below_) return good_ = false;
    } while (z_.avail_out == 0);
    setp(in_.data(), in_.data() + in_.size());
    return true;
  }

  std::ostream& below_;
  z_stream z_{};
  std::vector<char> in_;
  std::vector<char> out_;
  bool good_ = false;
  bool finished_ = false;
};

GzipStream::GzipStream(std::ostream& below)
    : std::ostream(nullptr), buffer_(std::make_unique<Buffer>(below)) {
  rdbuf(buffer_.get());
}

GzipStream::~GzipStream() = default;

void GzipStream::finish() {
  if (!buffer_->finish()) setstate(std::ios_base::badbit);
}

}  // namespace jouleprof
