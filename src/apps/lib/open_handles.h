// The handles that callers hold, so that one that was closed is not closed again.
#pragma once

#include <cstddef>
#include <mutex>
#include <new>
#include <set>

namespace jouleprof::lib {

// Thread-safe.
template <typename T>
class OpenHandles {
 public:
  void add(T* handle) {
    const std::lock_guard lock(mutex_);
    open_.insert(handle);
  }
  // Whether it was open; never NULL.
  bool remove(T* handle) noexcept {
    if (handle == nullptr) return false;
    const std::lock_guard lock(mutex_);
    return open_.erase(handle) > 0;
  }

 private:
  std::mutex mutex_;
  std::set<T*> open_;
};

// The one of this program, which needs no memory. Never destroyed: programs close handles while
// they exit.
template <typename T>
OpenHandles<T>& open_handles() noexcept {
  alignas(OpenHandles<T>) static std::byte room[sizeof(OpenHandles<T>)];
  static auto* const kOpen = new (room) OpenHandles<T>;
  return *kOpen;
}

}  // namespace jouleprof::lib
