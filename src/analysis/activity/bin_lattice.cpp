#include "analysis/activity/bin_lattice.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace jouleprof::analysis {

void BinLattice::Sums::add(std::uint32_t number, double seconds) {
  if (number >= sums_.size()) {
    sums_.resize(number + 1, 0.0);
    added_.resize(number / 64 + 1, 0);
  }
  sums_[number] += seconds;
  added_[number / 64] |= std::uint64_t{1} << (number % 64);
}

template <class Use>
void BinLattice::Sums::take(Use use) {
  for (std::size_t word = 0; word < added_.size(); ++word) {
    for (; added_[word] != 0; added_[word] &= added_[word] - 1) {
      const std::size_t number =
          64 * word + static_cast<std::size_t>(std::countr_zero(added_[word]));
      use(static_cast<std::uint32_t>(number), sums_[number]);
      sums_[number] = 0;
    }
  }
}

// A begin slightly before a bin's, by rounding, belongs to the bin.
std::size_t BinLattice::bin_at(double t) const {
  return static_cast<std::size_t>(std::max(t / width_ + 1e-6, 0.0));
}

void BinLattice::add(double begin, double length, std::uint32_t kernel_class, double busy) {
  for (std::size_t i = bin_at(begin);; ++i) {
    const double lo = std::max(begin, static_cast<double>(i) * width_);
    const double hi = std::min(begin + length, static_cast<double>(i + 1) * width_);
    if (hi - lo > 1e-6 * length) {
      raw_.push_back({i, kernel_class, static_cast<float>(busy * (hi - lo) / length)});
    }
    if (begin + length <= static_cast<double>(i + 1) * width_ + 1e-9) break;
  }
}

void BinLattice::sort(std::size_t end) {
  begins_.clear();
  entries_.clear();
  std::size_t last = 0;
  first_ = end;
  for (const Raw& raw : raw_) {
    if (raw.bin >= end) continue;
    first_ = std::min(first_, raw.bin);
    last = std::max(last, raw.bin + 1);
  }
  if (last <= first_) return;
  begins_.assign(last - first_ + 1, 0);
  for (const Raw& raw : raw_) {
    if (raw.bin < end) ++begins_[raw.bin - first_];
  }
  // The end of each bin's entries, then, filled from the back, their begin.
  std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
  entries_.resize(begins_.back());
  for (std::size_t i = raw_.size(); i-- > 0;) {
    const Raw& raw = raw_[i];
    if (raw.bin < end) entries_[--begins_[raw.bin - first_]] = {raw.kernel_class, raw.busy};
  }
  std::erase_if(raw_, [&](const Raw& raw) { return raw.bin < end; });
}

void BinLattice::gather(std::size_t number, std::span<const Entry> entries, Bin& bin) {
  bin.begin = static_cast<double>(number) * width_;
  bin.busy = 0;
  bin.classes.clear();
  for (const Entry& e : entries) {
    if (e.kernel_class < kPartOfOthers) {
      own_.add(e.kernel_class, e.busy);
    } else {
      parts_.add(e.kernel_class - kPartOfOthers, e.busy);
    }
  }
  own_.take([&](std::uint32_t k, double seconds) {
    bin.classes.push_back({k, seconds});
    bin.busy += seconds;
  });
  parts_.take([&](std::uint32_t k, double seconds) {
    bin.classes.push_back({kPartOfOthers + k, seconds});
  });
  if (bin.busy > width_) {
    for (Busy& busy : bin.classes) busy.seconds *= width_ / bin.busy;
    bin.busy = width_;
  }
}

}  // namespace jouleprof::analysis
