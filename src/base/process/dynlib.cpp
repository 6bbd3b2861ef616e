#include "base/process/dynlib.h"

#include <dlfcn.h>

#include <utility>

namespace jouleprof {

Result<DynLib> DynLib::open(const std::string& name) {
  void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    return fail(Errc::kNotFound, reason != nullptr ? reason : name + ": cannot be loaded");
  }
  return DynLib(handle);
}

DynLib DynLib::loaded(const std::string& name) noexcept {
  return DynLib(dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD));
}

DynLib::DynLib(DynLib&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}

DynLib& DynLib::operator=(DynLib&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

DynLib::~DynLib() {
  if (handle_ != nullptr) dlclose(handle_);
}

void* DynLib::symbol(const char* name) const noexcept {
  return handle_ != nullptr ? dlsym(handle_, name) : nullptr;
}

}  // namespace jouleprof
