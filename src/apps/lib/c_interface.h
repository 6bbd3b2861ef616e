// Errors and provenances as the C interface gives them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <string_view>
#include <system_error>

#include "base/result.h"
#include "jouleprof/jouleprof.h"
#include "model/domain.h"

namespace jouleprof::lib {

// Copies `text`, cut to fit, always ended by a NUL. `to` may be NULL, `size` 0.
inline void copy_text(std::string_view text, char* to, size_t size) {
  if (to == nullptr || size == 0) return;
  const size_t length = std::min(text.size(), size - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
}

// Calls `call`; no exception gets out. `otherwise` is the result after one.
template <typename T, typename Call>
T without_exceptions(T otherwise, Call&& call) noexcept {
  try {
    return call();
  } catch (...) {
    return otherwise;
  }
}

// The status of `e`, its message in `error`.
inline jouleprof_status fail(const Error& e, char* error, size_t error_size) {
  copy_text(e.message, error, error_size);
  return static_cast<jouleprof_status>(static_cast<int>(e.code) + 1);
}

// Runs a function that reports its failure.
template <typename Call>
jouleprof_status checked(char* error, size_t error_size, Call&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    copy_text("out of memory", error, error_size);
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::resource_unavailable_try_again) {
      copy_text("no thread can be started; raise the limit (ulimit -u, -v)", error, error_size);
      return JOULEPROF_UNAVAILABLE;
    }
    copy_text(e.what(), error, error_size);
  } catch (const std::exception& e) {
    copy_text(e.what(), error, error_size);
  } catch (...) {
    copy_text("an unknown exception", error, error_size);
  }
  return JOULEPROF_INTERNAL;
}

// JOULEPROF_INVALID_ARGUMENT, and why.
inline jouleprof_status refuse(const char* why, char* error, size_t error_size) {
  copy_text(why, error, error_size);
  return JOULEPROF_INVALID_ARGUMENT;
}

inline jouleprof_provenance to_c(model::Provenance p) {
  return static_cast<jouleprof_provenance>(p);
}

static_assert(static_cast<int>(model::Provenance::kMeasured) == JOULEPROF_MEASURED);
static_assert(static_cast<int>(model::Provenance::kEstimated) == JOULEPROF_ESTIMATED);
static_assert(static_cast<int>(model::Provenance::kSimulated) == JOULEPROF_SIMULATED);
static_assert(static_cast<int>(model::Provenance::kUnavailable) == JOULEPROF_UNAVAILABLE_FIGURE);
static_assert(static_cast<int>(Errc::kNotFound) + 1 == JOULEPROF_NOT_FOUND);
static_assert(static_cast<int>(Errc::kInternal) + 1 == JOULEPROF_INTERNAL);

// The handles that callers hold, so that one that was closed is not closed again.
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

// Keeps the memory of this library's thread-local data from being asked for late.
// Does nothing. Its thread-local variable, compiled as CMakeLists.txt says, makes the loader place
// all of this library's thread-local data, libstdc++'s of exceptions among them, in the block that
// each thread has from its begin, if there is room. Otherwise the C library asks for memory at a
// thread's first exception, and ends the program where there is none.
void keep_thread_data() noexcept;

}  // namespace jouleprof::lib
