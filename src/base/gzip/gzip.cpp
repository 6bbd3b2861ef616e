#include "base/gzip/gzip.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <streambuf>

#include "base/file.h"

namespace jouleprof {
namespace {

constexpr unsigned kBufferBytes = 256 * 1024;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

gzFile handle(void* file) { return static_cast<gzFile>(file); }

// Twice as fast as zlib's usual level for a tenth more bytes of JSON.
constexpr int kLevel = 4;
constexpr int kGzipWindow = MAX_WBITS + 16;  // 16: gzip's header instead of zlib's
constexpr std::size_t kChunk = 256 * 1024;
constexpr int kMemory = 8;

}  // namespace

void GzipReader::Close::operator()(void* file) const noexcept { gzclose_r(handle(file)); }

Result<GzipReader> GzipReader::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_failure(fmt::format("cannot open {}", path.string()), errno);
  struct stat status {};
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(fd);
    return system_failure(fmt::format("cannot read {}", path.string()), EISDIR);
  }
  const gzFile file = gzdopen(fd, "rb");
  if (!file) {
    ::close(fd);
    return fail(Errc::kUnavailable, fmt::format("cannot read {}: out of memory", path.string()));
  }
  gzbuffer(file, kBufferBytes);
  return GzipReader(path.string(), file);
}

Result<std::size_t> GzipReader::read(char* to, std::size_t size) {
  errno = 0;
  const int got =
      gzread(handle(file_.get()), to, static_cast<unsigned>(std::min(size, kMostAtOnce)));
  if (got > 0 || size == 0) return static_cast<std::size_t>(std::max(got, 0));
  int code = Z_OK;
  const char* text = gzerror(handle(file_.get()), &code);
  if (code == Z_ERRNO) return system_failure(fmt::format("cannot read {}", path_), errno);
  if (got == 0 && code != Z_BUF_ERROR) return std::size_t{0};
  if (code == Z_BUF_ERROR) {
    return fail(Errc::kCorrupt, fmt::format("{}: the compressed file is cut off", path_));
  }
  return fail(Errc::kCorrupt, fmt::format("{}: the compressed data are damaged ({})", path_, text));
}

class GzipStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::ostream& below) : below_(below), in_(kChunk), out_(kChunk) {
    good_ = deflateInit2(&z_, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) == Z_OK;
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

std::string gzip_text(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
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

std::optional<std::string> gunzip_member(std::string_view& bytes, std::size_t limit) {
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) return std::nullopt;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(std::min(bytes.size(), kMostAtOnce));
  std::string out;
  int state = Z_OK;
  while (state == Z_OK && out.size() <= limit) {
    constexpr std::size_t kStep = std::size_t{1} << 14;
    const std::size_t had = out.size();
    out.resize(had + kStep);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + had);
    stream.avail_out = kStep;
    state = inflate(&stream, Z_NO_FLUSH);
    out.resize(out.size() - stream.avail_out);
  }
  const auto rest =
      static_cast<std::size_t>(stream.next_in - reinterpret_cast<const Bytef*>(bytes.data()));
  inflateEnd(&stream);
  if (state != Z_STREAM_END || out.size() > limit) return std::nullopt;
  bytes.remove_prefix(rest);
  return out;
}

}  // namespace jouleprof
