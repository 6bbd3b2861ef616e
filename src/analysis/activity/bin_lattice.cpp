#include "analysis/activity/bin_lattice.h"

#include <algorithm>
#include <tuple>

namespace jouleprof::analysis {

void BinLattice::add(double begin, double length, std::uint32_t kernel_class, double busy) {
  const auto first = static_cast<std::size_t>(std::max(begin / width_ + 1e-6, 0.0));
  for (std::size_t i = first;; ++i) {
    const double lo = std::max(begin, static_cast<double>(i) * width_);
    const double hi = std::min(begin + length, static_cast<double>(i + 1) * width_);
    if (hi - lo > 1e-6 * length) {
      raw_.push_back({i, kernel_class, static_cast<float>(busy * (hi - lo) / length)});
    }
    if (begin + length <= static_cast<double>(i + 1) * width_ + 1e-9) break;
  }
}

void BinLattice::sort() {
  std::sort(raw_.begin(), raw_.end(), [](const Raw& a, const Raw& b) {
    return std::tie(a.bin, a.kernel_class) < std::tie(b.bin, b.kernel_class);
  });
}

std::size_t BinLattice::gather(std::size_t first, Bin& bin) const {
  bin.begin = static_cast<double>(raw_[first].bin) * width_;
  bin.busy = 0;
  bin.classes.clear();
  std::size_t i = first;
  for (; i < raw_.size() && raw_[i].bin == raw_[first].bin; ++i) {
    if (bin.classes.empty() || bin.classes.back().kernel_class != raw_[i].kernel_class) {
      bin.classes.push_back({raw_[i].kernel_class, 0});
    }
    bin.classes.back().seconds += raw_[i].busy;
    if (raw_[i].kernel_class < kPartOfOthers) bin.busy += raw_[i].busy;
  }
  if (bin.busy > width_) {
    for (Busy& busy : bin.classes) busy.seconds *= width_ / bin.busy;
    bin.busy = width_;
  }
  return i;
}

}  // namespace jouleprof::analysis
