#include "spans/cupti/aggregate/kernel_classes.h"

#include <fmt/format.h>

#include <bit>

#include "model/activity/collective.h"

namespace jouleprof::cupti {
namespace {

constexpr std::array<const char*, 11> kCopies{
    "memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA", "memcpy AtoH", "memcpy AtoA",
    "memcpy AtoD", "memcpy DtoA", "memcpy DtoD", "memcpy HtoH", "memcpy PtoP"};

}  // namespace

KernelClasses::KernelClasses(model::ActivitySink& sink, Limits limits)
    : sink_(sink), limits_(limits) {}

std::size_t KernelClasses::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t x = key.name;
  for (const Shape& shape : {key.grid, key.block}) {
    for (const std::uint32_t n : shape) x = (x ^ n) * 0x9E3779B97F4A7C15ULL ^ x >> 29;
  }
  return x;
}

std::uint32_t KernelClasses::define(const model::KernelClass& kernel_class) {
  const auto id = static_cast<std::uint32_t>(collective_.size());
  sink_.define(id, kernel_class);
  collective_.push_back(kernel_class.kind == model::ActivityKind::kKernel &&
                        !model::collective_kind(kernel_class.name).empty());
  return id;
}

std::uint32_t KernelClasses::named_kernel(std::string_view name, const Shape& grid,
                                          const Shape& block) {
  std::string text(name);
  auto found = names_.find(text);
  if (found == names_.end()) {
    if (names_.size() >= limits_.names) {
      if (others_ == model::kNone) {
        others_ = define({model::ActivityKind::kKernel, "other kernels", {}, {}, 0});
      }
      return others_;
    }
    found = names_.emplace(text, static_cast<std::uint32_t>(names_.size())).first;
  }
  Key key{found->second, grid, block};
  if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  if (kernels_.size() >= limits_.shapes) {
    key.grid = key.block = {};
    if (const auto known = kernels_.find(key); known != kernels_.end()) return known->second;
  }
  const std::uint32_t id =
      define({model::ActivityKind::kKernel, std::move(text), key.grid, key.block, 0});
  kernels_.emplace(key, id);
  return id;
}

std::uint32_t KernelClasses::sized(model::ActivityKind kind, const std::string& name,
                                   std::uint64_t bytes, std::vector<std::uint32_t>& ids) {
  const auto power = static_cast<std::size_t>(std::bit_width(bytes));
  if (ids.empty()) ids.assign(65, model::kNone);
  if (ids[power] == model::kNone) {
    ids[power] = define({kind, name, {}, {}, std::bit_floor(bytes)});
  }
  return ids[power];
}

std::uint32_t KernelClasses::copy(unsigned copy_kind, std::uint64_t bytes) {
  if (copy_kind >= kCopies.size()) copy_kind = 0;
  return sized(model::ActivityKind::kMemcpy, kCopies[copy_kind], bytes, copies_[copy_kind]);
}

std::uint32_t KernelClasses::set(std::uint64_t bytes) {
  return sized(model::ActivityKind::kMemset, "memset", bytes, sets_);
}

std::uint32_t KernelClasses::graph(std::uint32_t id) {
  // Programs with thousands of graphs have one class for those beyond.
  if (graphs_.size() >= 1000) id = 0;
  const auto [place, fresh] = graphs_.try_emplace(id, model::kNone);
  if (fresh) {
    place->second = define({model::ActivityKind::kGraph,
                            id == 0 ? "other graphs" : fmt::format("graph {}", id),
                            {},
                            {},
                            0});
  }
  return place->second;
}

}  // namespace jouleprof::cupti
