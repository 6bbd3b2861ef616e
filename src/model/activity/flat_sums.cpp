#include "model/activity/flat_sums.h"

#include <algorithm>

namespace jouleprof::model {

void FlatSums::clear() {
  // A table that one busy second blew up is not cleared every second from then on.
  if (slots_.size() > 64 && sums_.size() * 16 < slots_.size()) {
    slots_.assign(slots_.size() / 2, 0);
  } else {
    std::fill(slots_.begin(), slots_.end(), 0);
  }
  sums_.clear();
  last_ = 0;
}

void FlatSums::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t n = 0; n != sums_.size(); ++n) {
    std::size_t i = hash(sums_[n].key) & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<std::uint32_t>(n + 1);
  }
}

}  // namespace jouleprof::model
