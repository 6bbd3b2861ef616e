#include "spans/windows/shared_rings.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <vector>

namespace jouleprof::spans {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kStride = (sizeof(RingSlot) + kPage - 1) / kPage * kPage;

off_t place_of(std::uint32_t number) { return static_cast<off_t>(number * kStride); }

// Not by mapping: the process may cut its file at any time.
bool read_slot(int fd, std::uint32_t number, RingSlot& out) {
  const ssize_t n = ::pread(fd, static_cast<void*>(&out), sizeof out, place_of(number));
  return n == static_cast<ssize_t>(sizeof out);
}

}  // namespace

SharedRings::SharedRings() : fd_(::memfd_create("jouleprof-windows", MFD_CLOEXEC)) {}

SharedRings::~SharedRings() {
  if (fd_ >= 0) ::close(fd_);
}

SharedRings::Made SharedRings::make(pid_t thread) noexcept {
  if (fd_ < 0 || made_ == kMost) return {};
  if (::ftruncate(fd_, place_of(made_ + 1)) != 0) return {};
  void* const at =
      ::mmap(nullptr, kStride, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, place_of(made_));
  if (at == MAP_FAILED) return {};
  try {
    // Default-initialised: pages of records stay untouched until they are used.
    std::shared_ptr<RingSlot> slot(::new (at) RingSlot,
                                   [](RingSlot* s) { ::munmap(static_cast<void*>(s), kStride); });
    slot->thread = thread;
    return {std::move(slot), made_++};
  } catch (...) {  // no memory; the shared pointer has called its deleter
    return {};
  }
}

std::uint64_t read_left(int fd, const std::function<std::uint64_t(std::uint32_t)>& received,
                        const std::function<void(pid_t, const WindowRecord&)>& take) {
  struct stat file {};
  if (::fstat(fd, &file) != 0) return 0;
  const auto slots = std::min<std::uint64_t>(static_cast<std::uint64_t>(file.st_size) / kStride,
                                             SharedRings::kMost);
  std::uint64_t overwritten = 0;
  const auto image = std::make_unique<RingSlot>();
  const auto again = std::make_unique<RingSlot>();
  for (std::uint32_t number = 0; number < slots; ++number) {
    if (!read_slot(fd, number, *image) || !read_slot(fd, number, *again)) break;
    const std::uint64_t pushed = image->ring.pushed();
    const std::uint64_t first = received(number);
    if (pushed <= first) continue;
    // A running process may have written over what was being read.
    const std::uint64_t newest = std::max<std::uint64_t>(again->ring.pushed(), pushed);
    const std::uint64_t oldest =
        newest > WindowRing::kCapacity ? newest - WindowRing::kCapacity : 0;
    overwritten += std::min(std::max(oldest, first), pushed) - first;
    for (std::uint64_t i = std::max(oldest, first); i < pushed; ++i) {
      take(static_cast<pid_t>(image->thread), image->ring.at(i));
    }
  }
  return overwritten;
}

}  // namespace jouleprof::spans
