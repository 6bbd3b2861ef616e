// Calls of layers, for the tracer of this process, and which module is which layer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::layers {

// Sends the calls and times since the last call of this as one chunk of kLayers, after the
// definitions of the layers (scopes::send), and the re-runs (send_replays). Without calls
// there is no chunk. Threads that call layers do not wait for it. From one thread at a time.
void send(model::ActivitySink& sink, HostTime now);

// Drops the calls and times since then.
void forget();

// While false, calls of modules are not traced. Starts as false.
void set_active(bool active) noexcept;
bool active() noexcept;

// Whether each call from outside of all layers takes the process's CPU time, which costs two system
// calls: for energy that is split by time. Starts as false.
void take_cpu_time(bool take) noexcept;

// Why records of layers are missing, each reason once; empty: none is known to be.
std::string problem();
void add_problem(const std::string& text);

// --- Kernels that are re-run in isolation: when, and for how many launches of the program ---
// Thread safety: all from any thread; the first three by one thread at a time.

// The process's work from now on is not the program's: calls of layers are not traced (set_active).
void begin_replay();

// The work since begin_replay(), or since the last call of this or the next one, prepared a loop.
void replay_prepared();
// It was launches of one kernel, whichever layers launch it in the program.
void replayed_kernel(const model::KernelRerun& loop);

// The work of the program continues.
void end_replay();

// Sends a kReplay chunk for each call of the two above since this was called last, after the
// layers' definitions.
void send_replays(model::ActivitySink& sink);

// --- The layer of each module, by the address of the module ---

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
    // Entries behind it that hashed to before the hole move up, so that no search ends early.
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
