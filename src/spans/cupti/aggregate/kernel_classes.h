// Identifiers of kernel signatures.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/activity/activity.h"

namespace jouleprof::cupti {

// Defines each signature to the sink when it is first needed. Bounded: beyond 20,000 signatures of
// kernels grid and block are left out; beyond 100,000 names all others share the signature "other
// kernels".
class KernelClasses {
 public:
  struct Limits {
    std::size_t shapes = 20'000;
    std::size_t names = 100'000;
  };
  using Shape = std::array<std::uint32_t, 3>;

  explicit KernelClasses(model::ActivitySink& sink) : KernelClasses(sink, Limits{}) {}
  KernelClasses(model::ActivitySink& sink, Limits limits);

  // `name` may be null. Until the next renew() the same pointer means the same name.
  std::uint32_t kernel(const char* name, const Shape& grid, const Shape& block) {
    Cached& slot = cache_[hash(name, grid, block)];
    if (slot.name == name && slot.round == round_ && slot.grid == grid && slot.block == block) {
      return slot.id;
    }
    slot = {name, grid, block, round_, named_kernel(name == nullptr ? "" : name, grid, block)};
    return slot.id;
  }
  std::uint32_t copy(unsigned copy_kind, std::uint64_t bytes);  // CUPTI's copy kind
  std::uint32_t set(std::uint64_t bytes);
  std::uint32_t graph(std::uint32_t id);

  // Of a kernel's, copy's, set's or graph's number.
  bool is_collective(std::uint32_t id) const { return collective_[id]; }

  // The driver may reuse the memory of a name: call this about once a second.
  void renew() { ++round_; }

 private:
  struct Cached {
    const char* name = nullptr;
    Shape grid{};
    Shape block{};
    std::uint32_t round = 0;
    std::uint32_t id = 0;
  };
  struct Key {
    std::uint32_t name = 0;
    Shape grid{};
    Shape block{};
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };

  static constexpr std::size_t kCache = 1 << 14;
  static std::size_t hash(const char* name, const Shape& grid, const Shape& block) {
    std::uint64_t x = reinterpret_cast<std::uintptr_t>(name) * 0x9E3779B97F4A7C15ULL;
    x += (std::uint64_t{grid[0]} << 32 | block[0]) * 0xC2B2AE3D27D4EB4FULL;
    x += (std::uint64_t{grid[1]} << 32 | grid[2]) * 0x165667B19E3779F9ULL;
    x += (std::uint64_t{block[1]} << 32 | block[2]) * 0x27D4EB2F165667C5ULL;
    return static_cast<std::size_t>((x ^ x >> 31) >> 7) % kCache;
  }

  std::uint32_t named_kernel(std::string_view name, const Shape& grid, const Shape& block);
  std::uint32_t sized(model::ActivityKind kind, const std::string& name, std::uint64_t bytes,
                      std::vector<std::uint32_t>& ids);
  std::uint32_t define(const model::KernelClass& kernel_class);

  model::ActivitySink& sink_;
  Limits limits_;
  std::vector<bool> collective_;  // by number
  std::uint32_t round_ = 1;
  std::vector<Cached> cache_ = std::vector<Cached>(kCache);
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<Key, std::uint32_t, KeyHash> kernels_;
  std::uint32_t others_ = model::kNone;
  std::array<std::vector<std::uint32_t>, 11> copies_;  // by kind and binary logarithm
  std::vector<std::uint32_t> sets_;
  std::unordered_map<std::uint32_t, std::uint32_t> graphs_;
};

}  // namespace jouleprof::cupti
