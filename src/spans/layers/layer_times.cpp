#include "spans/layers/layer_times.h"

#include <new>

namespace jouleprof::layers {

LayerTimes::~LayerTimes() {
  for (auto& page : pages_) delete page.load(std::memory_order_acquire);
}

LayerTimes::Page* LayerTimes::add_page(std::uint32_t index) noexcept {
  auto* page = new (std::nothrow) Page;
  pages_[index].store(page, std::memory_order_release);
  return page;
}

}  // namespace jouleprof::layers
