// An object for the life of the process, in static memory.
#pragma once

#include <cstddef>
#include <new>

namespace jouleprof {

// `static NeverDestroyed<T> only;`: other threads may use it while the process exits, and it asks
// for no memory of its own, so that it can be made where there is none.
template <typename T>
class NeverDestroyed {
 public:
  NeverDestroyed() { ::new (static_cast<void*>(place_)) T; }
  NeverDestroyed(const NeverDestroyed&) = delete;
  NeverDestroyed& operator=(const NeverDestroyed&) = delete;

  T& operator*() { return *std::launder(reinterpret_cast<T*>(place_)); }
  T* operator->() { return &**this; }

 private:
  alignas(T) std::byte place_[sizeof(T)];
};

}  // namespace jouleprof
