// A shared library loaded at run time.
#pragma once

#include <string>

#include "base/result.h"

namespace jouleprof {

class DynLib {
 public:
  // Loads `name` (a SONAME or a path). Errors: not_found with the loader's own words.
  static Result<DynLib> open(const std::string& name);
  // The one that the process has loaded already; without symbols where it has not.
  static DynLib loaded(const std::string& name) noexcept;

  DynLib() = default;
  DynLib(DynLib&& other) noexcept;
  DynLib& operator=(DynLib&& other) noexcept;
  DynLib(const DynLib&) = delete;
  DynLib& operator=(const DynLib&) = delete;
  ~DynLib();

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // The address of a symbol, or nullptr.
  void* symbol(const char* name) const noexcept;

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
