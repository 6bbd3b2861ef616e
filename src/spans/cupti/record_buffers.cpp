#include "spans/cupti/record_buffers.h"

#include <algorithm>

namespace jouleprof::cupti {

BufferPool::BufferPool(std::size_t most) : most_(most) {
  all_.reserve(most);
  free_.reserve(most);
  full_.reserve(most);
}

BufferPool::~BufferPool() {
  for (std::uint8_t* buffer : all_) munmap(buffer, kBytes);
}

std::uint8_t* BufferPool::take() noexcept {
  const std::scoped_lock lock(mutex_);
  if (!free_.empty()) {
    std::uint8_t* buffer = free_.back();
    free_.pop_back();
    ++outside_;
    return buffer;
  }
  // The system provides pages on first use, not the program's own allocator.
  void* memory = all_.size() < most_ ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                     : MAP_FAILED;
  if (memory == MAP_FAILED) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  ++outside_;
  all_.push_back(static_cast<std::uint8_t*>(memory));
  return all_.back();
}

void BufferPool::full(std::uint8_t* buffer, std::size_t valid) noexcept {
  const std::scoped_lock lock(mutex_);
  // Another client of CUPTI may have handed out buffers before us.
  if (std::find(all_.begin(), all_.end(), buffer) == all_.end()) return;
  completed_.fetch_add(1, std::memory_order_relaxed);
  --outside_;
  if (valid == 0) {
    free_.push_back(buffer);
  } else {
    full_.push_back({buffer, valid});
  }
}

FullBuffer BufferPool::next() noexcept {
  const std::scoped_lock lock(mutex_);
  if (full_.empty()) return {};
  const FullBuffer first = full_.front();
  full_.erase(full_.begin());
  return first;
}

void BufferPool::put_back(std::uint8_t* buffer) noexcept {
  const std::scoped_lock lock(mutex_);
  free_.push_back(buffer);
}

std::size_t BufferPool::outside() noexcept {
  const std::scoped_lock lock(mutex_);
  return outside_;
}

}  // namespace jouleprof::cupti
