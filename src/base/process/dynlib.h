// A shared library loaded at run time.
#pragma once

#include <dlfcn.h>

#include <string>
#include <utility>

#include "base/result.h"

namespace jouleprof {

class DynLib {
 public:
  // Loads `name` (a SONAME or a path). Errors: not_found with the loader's own words.
  static Result<DynLib> open(const std::string& name) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      return fail(Errc::kNotFound, reason != nullptr ? reason : name + ": cannot be loaded");
    }
    return DynLib(handle);
  }
  // The one that the process has loaded already; without symbols where it has not.
  static DynLib loaded(const std::string& name) noexcept {
    return DynLib(dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD));
  }

  DynLib() = default;
  DynLib(DynLib&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  DynLib& operator=(DynLib&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  DynLib(const DynLib&) = delete;
  DynLib& operator=(const DynLib&) = delete;
  ~DynLib() {
    if (handle_ != nullptr) dlclose(handle_);
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // The address of a symbol, or nullptr.
  void* symbol(const char* name) const noexcept {
    return handle_ != nullptr ? dlsym(handle_, name) : nullptr;
  }

  // Sets `function` to the symbol's address, or to nullptr; returns whether it was found.
  template <typename F>
  bool bind(F*& function, const char* name) const noexcept {
    function = reinterpret_cast<F*>(symbol(name));
    return function != nullptr;
  }

 private:
  explicit DynLib(void* handle) : handle_(handle) {}
  void* handle_ = nullptr;
};

}  // namespace jouleprof
