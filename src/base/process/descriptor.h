// File descriptors that are closed with their owners.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace jouleprof {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}  // negative: none
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    close();
    fd_ = other.release();
    return *this;
  }
  ~Descriptor() { close(); }

  explicit operator bool() const noexcept { return fd_ >= 0; }
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }
  void close() noexcept {
    if (fd_ >= 0) ::close(release());
  }

 private:
  int fd_ = -1;
};

// A descriptor that stays open in a program that may close all of its descriptors, as daemons do.
// The program then has files of its own under their numbers, which are neither used nor closed
// here.
class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  explicit OwnDescriptor(int fd) noexcept { reset(fd); }  // takes it; negative: none
  OwnDescriptor(OwnDescriptor&& other) noexcept { swap(other); }
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    swap(other);
    return *this;
  }
  ~OwnDescriptor() { close(); }

  // Negative: none, or the program closed it.
  int get() const noexcept {
    struct stat now {};
    const bool is_ours =
        fd_ >= 0 && ::fstat(fd_, &now) == 0 && now.st_dev == device_ && now.st_ino == inode_;
    return is_ours ? fd_ : -1;
  }
  void reset(int fd) noexcept {
    if (fd != fd_) close();  // else the program closed it, and the kernel gave its number again
    fd_ = -1;
    struct stat made {};
    if (fd < 0 || ::fstat(fd, &made) != 0) return;
    fd_ = fd;
    device_ = made.st_dev;
    inode_ = made.st_ino;
  }
  void close() noexcept {
    if (const int fd = get(); fd >= 0) ::close(fd);
    fd_ = -1;
  }

 private:
  void swap(OwnDescriptor& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
  }

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// Both ends of a pipe, or of a pair of sockets. False: errno says why.
inline bool make_pipe(Descriptor& read, Descriptor& write) noexcept {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  read = Descriptor(ends[0]);
  write = Descriptor(ends[1]);
  return true;
}
inline bool make_socket_pair(Descriptor& a, Descriptor& b) noexcept {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  a = Descriptor(ends[0]);
  b = Descriptor(ends[1]);
  return true;
}

}  // namespace jouleprof
