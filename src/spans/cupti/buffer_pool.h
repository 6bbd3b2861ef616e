// Buffers that the driver fills with records.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace jouleprof::cupti {

struct FullBuffer {
  std::uint8_t* data = nullptr;
  std::size_t valid = 0;  // bytes
};

// At most `most` buffers of 4 MB; one that was read is used again. Thread safety: all functions
// from any thread, under one lock that is held for a few instructions.
class BufferPool {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;

  explicit BufferPool(std::size_t most = 24);  // 96 MB
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // nullptr when all are in use.
  std::uint8_t* take() noexcept;
  // Ignores a buffer that is not from this pool.
  void full(std::uint8_t* buffer, std::size_t valid) noexcept;
  // A full buffer, the oldest first; data is nullptr when there is none. To be put back.
  FullBuffer next() noexcept;
  void put_back(std::uint8_t* buffer) noexcept;

  std::size_t outside() noexcept;  // taken, and not full yet
  std::uint64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  std::uint64_t completed() const noexcept { return completed_.load(std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  std::mutex mutex_;  // guards what follows; all vectors have room for all buffers
  std::vector<std::uint8_t*> all_;
  std::vector<std::uint8_t*> free_;
  std::vector<FullBuffer> full_;
  std::size_t outside_ = 0;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> completed_{0};
};

}  // namespace jouleprof::cupti
