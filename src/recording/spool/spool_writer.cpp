#include "recording/spool/spool_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "base/file.h"
#include "recording/spool/frame.h"

namespace jouleprof::spool {
namespace {

constexpr std::size_t kMostKept = std::size_t{4} << 20;

}  // namespace

Result<std::unique_ptr<SpoolWriter>> SpoolWriter::open(const std::filesystem::path& folder,
                                                       const model::TracedProcess& process,
                                                       std::size_t segment_bytes) {
  std::unique_ptr<SpoolWriter> writer(new SpoolWriter);
  std::error_code err;
  // The program may change its working folder.
  writer->folder_ = std::filesystem::absolute(folder, err);
  writer->owner_ = ::getpid();
  writer->process_ = process;
  writer->start_ = HostClock::now();
  writer->segment_bytes_ = segment_bytes;
  if (!writer->begin_segment()) {
    return system_failure(
        fmt::format("cannot write the trace to {}", writer->segment_path(0).string()), errno);
  }
  return writer;
}

SpoolWriter::~SpoolWriter() {
  struct stat now {};
  if (is_ours(fd_, now)) ::close(fd_);
}

std::filesystem::path SpoolWriter::segment_path(std::uint32_t segment) const {
  return folder_ /
         fmt::format("{}-{}-{:04}.spool", process_.pid, start_.time_since_epoch().count(), segment);
}

// A program that becomes a daemon closes all descriptors that it did not open. The number of ours
// is then reused, and writing to it would damage a file of the program.
bool SpoolWriter::is_ours(int fd, struct stat& now) const {
  return fd >= 0 && ::fstat(fd, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
}

bool SpoolWriter::failed(std::string_view what, int err) {
  problem_ = fmt::format("{} {}: {}", what, segment_path(segment_).string(), std::strerror(err));
  return false;
}

// Begins the next file, or the first. Sets errno where it cannot.
bool SpoolWriter::begin_segment() {
  const std::uint32_t number = fd_ < 0 ? 0 : segment_ + 1;
  const int fd = ::open(segment_path(number).c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  std::string header;
  std::string payload;
  const Header head{process_, start_, number};
  FieldWriter out(payload);
  fields(head, out);
  header = kMagic;
  put_frame(header, FrameType::kHeader, payload);
  struct stat made {};
  const ssize_t written = ::write(fd, header.data(), header.size());
  if (written != static_cast<ssize_t>(header.size()) || ::fstat(fd, &made) != 0) {
    const int err = written < 0 ? errno : ENOSPC;
    ::close(fd);
    ::unlink(segment_path(number).c_str());
    errno = err;
    return false;
  }
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
  device_ = made.st_dev;
  inode_ = made.st_ino;
  segment_ = number;
  size_ = header.size();
  return true;
}

// Appends whole frames; all or nothing.
bool SpoolWriter::write_out(std::string_view bytes) {
  struct stat now {};
  if (!is_ours(fd_, now)) {
    const int fd =
        ::open(segment_path(segment_).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (!is_ours(fd, now)) {
      const int err = fd < 0 ? errno : ENOENT;
      if (fd >= 0) ::close(fd);
      fd_ = -1;
      ended_ = true;
      return failed("lost", err);
    }
    fd_ = fd;
  }
  if (now.st_nlink == 0) {  // the tool removed the file: it does not read any more
    ended_ = true;
    return failed("removed by its reader:", ENOENT);
  }
  // Where there is no room for another file, writing continues in this one.
  if (size_ + bytes.size() > segment_bytes_) (void)begin_segment();
  // Beyond this limit the kernel sends a signal that ends the program.
  rlimit largest{};
  if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && size_ + bytes.size() > largest.rlim_cur) {
    return failed("cannot write", EFBIG);
  }
  ssize_t written = 0;
  do {
    written = ::write(fd_, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(bytes.size())) {
    size_ += bytes.size();
    return true;
  }
  const int err = written < 0 ? errno : ENOSPC;
  // A torn frame would make all that follows unreadable.
  if (written > 0 && ::ftruncate(fd_, static_cast<off_t>(size_)) != 0) ended_ = true;
  return failed("cannot write", err);
}

template <class Fill>
void SpoolWriter::frame(FrameType type, bool keep, Fill&& fill) noexcept {
  if (ended_ || ::getpid() != owner_) return;
  try {
    payload_.clear();
    frame_.clear();
    FieldWriter out(payload_);
    fill(out);
    const bool fits = payload_.size() <= kLargestPayload;
    if (fits) {
      put_frame(frame_, type, payload_);
      if (!kept_.empty() && write_out(kept_)) kept_.clear();
      if (kept_.empty() && !ended_ && write_out(frame_)) return;
    }
    ++lost_;
    if (!keep || ended_) return;
    if (fits && kept_.size() + frame_.size() <= kMostKept) {
      kept_ += frame_;
      --lost_;
    } else {
      ended_ = true;  // what follows could not be understood without it
    }
  } catch (const std::exception&) {  // no memory
    ++lost_;
    ended_ = true;
  }
}

template <class Record>
void SpoolWriter::define_as(std::uint32_t id, const Record& record) {
  frame(kFrameOf<Record>, true, [&](FieldWriter& out) {
    out.put(id);
    fields(record, out);
  });
}

void SpoolWriter::define(std::uint32_t id, const model::TracedDevice& d) { define_as(id, d); }
void SpoolWriter::define(std::uint32_t id, const model::KernelClass& c) { define_as(id, c); }
void SpoolWriter::define(std::uint32_t id, const model::Layer& l) { define_as(id, l); }
void SpoolWriter::define(std::uint32_t id, const model::Range& r) { define_as(id, r); }
void SpoolWriter::define(std::uint32_t id, const model::Scope& s) { define_as(id, s); }

void SpoolWriter::add(const model::ActivityChunk& chunk) {
  frame(FrameType::kChunk, false, [&](FieldWriter& out) { fields(chunk, out); });
}

void SpoolWriter::status(const model::TraceStatus& status) {
  frame(FrameType::kStatus, true, [&](FieldWriter& out) { fields(status, out); });
}

void SpoolWriter::close() {
  frame(FrameType::kEnd, false, [](FieldWriter&) {});
  if (::getpid() == owner_) ended_ = true;
}

}  // namespace jouleprof::spool
