// The layer of each module, by the address of the module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/activity/activity.h"

namespace jouleprof::layers {

// The layer of a module.
struct ModuleEntry {
  const void* module = nullptr;
  std::uint32_t layer = model::kNone;
  // Called by the module that replaces it (a compiled model calls the original): it is then no
  // layer of its own.
  bool inner = false;
};

// A hash table with linear probing. Not thread-safe: Python's global lock guards it.
class ModuleMap {
 public:
  ModuleMap() : slots_(kFirstSize) {}

  // nullptr: not known. Valid until the next put() or erase().
  const ModuleEntry* find(const void* module) const noexcept {
    for (std::size_t i = place(module);; i = next(i)) {
      if (slots_[i].module == module) return &slots_[i];
      if (slots_[i].module == nullptr) return nullptr;
    }
  }

  void put(const ModuleEntry& entry) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    insert(entry);
  }

  void erase(const void* module) noexcept {
    std::size_t hole = place(module);
    while (slots_[hole].module != module) {
      if (slots_[hole].module == nullptr) return;
      hole = next(hole);
    }
    // Those behind it that hashed to before the hole move up, so that no search ends early.
    for (std::size_t i = next(hole); slots_[i].module != nullptr; i = next(i)) {
      const std::size_t home = place(slots_[i].module);
      const bool stays = hole <= i ? (hole < home && home <= i) : (hole < home || home <= i);
      if (stays) continue;
      slots_[hole] = slots_[i];
      hole = i;
    }
    slots_[hole] = {};
    --size_;
  }

  std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::size_t kFirstSize = 1024;

  std::size_t place(const void* module) const noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(module) >> 4;  // objects lie 16 bytes apart
    return (bits * 0x9E3779B97F4A7C15u >> 20) & (slots_.size() - 1);
  }
  std::size_t next(std::size_t i) const noexcept { return (i + 1) & (slots_.size() - 1); }

  void insert(const ModuleEntry& entry) {
    std::size_t i = place(entry.module);
    while (slots_[i].module != nullptr && slots_[i].module != entry.module) i = next(i);
    if (slots_[i].module == nullptr) ++size_;
    slots_[i] = entry;
  }

  void grow() {
    std::vector<ModuleEntry> old(2 * slots_.size());
    old.swap(slots_);
    size_ = 0;
    for (const ModuleEntry& entry : old) {
      if (entry.module != nullptr) insert(entry);
    }
  }

  std::vector<ModuleEntry> slots_;  // a power of two of them
  std::size_t size_ = 0;
};

}  // namespace jouleprof::layers
