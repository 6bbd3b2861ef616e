// Busy times of several processes on one lattice of bins.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace jouleprof::analysis {

// Bins can be taken as soon as nothing more is added to them, so that a long recording is never in
// memory twice.
class BinLattice {
 public:
  // Numbers from here on are parts of time that was added under another number: they do not add to
  // a bin's busy time.
  static constexpr std::uint32_t kPartOfOthers = 1U << 31;

  struct Busy {
    std::uint32_t kernel_class = 0;
    double seconds = 0;
  };
  struct Bin {
    double begin = 0;  // seconds
    double busy = 0;   // seconds, of all numbers below kPartOfOthers
    std::vector<Busy> classes;
  };

  // Bins are [i * width, (i + 1) * width), in seconds.
  explicit BinLattice(double width) : width_(width) {}

  double width() const { return width_; }

  // Adds `busy` seconds of a signature, uniformly over [begin, begin + length). The interval need
  // not lie on the lattice, and begins at or after the time of the last take_before().
  void add(double begin, double length, std::uint32_t kernel_class, double busy) {
    for (std::size_t i = bin_at(begin);; ++i) {
      const double lo = std::max(begin, static_cast<double>(i) * width_);
      const double hi = std::min(begin + length, static_cast<double>(i + 1) * width_);
      if (hi - lo > 1e-6 * length) {
        raw_.push_back({i, kernel_class, static_cast<float>(busy * (hi - lo) / length)});
      }
      if (begin + length <= static_cast<double>(i + 1) * width_ + 1e-9) break;
    }
  }

  // Calls use(Bin) for each bin with activity, in order, and removes it. Where the sum of several
  // processes exceeds a bin's width, it is scaled to the width.
  template <class Use>
  void take(Use use) {
    take_to(std::numeric_limits<std::size_t>::max(), use);
  }

  // Takes only bins that end at or before `t`, now or in a later call.
  template <class Use>
  void take_before(double t, Use use) {
    const std::size_t end = bin_at(t);
    if (end >= taken_ + kFewestBins) take_to(end, use);
  }

 private:
  static constexpr std::size_t kFewestBins = 1024;  // that are worth a pass over all entries

  struct Raw {
    std::size_t bin;
    std::uint32_t kernel_class;
    float busy;
  };
  struct Entry {
    std::uint32_t kernel_class;
    float busy;
  };
  // Sums by number, in increasing order of the numbers.
  class Sums {
   public:
    void add(std::uint32_t number, double seconds) {
      if (number >= sums_.size()) {
        sums_.resize(number + 1, 0.0);
        added_.resize(number / 64 + 1, 0);
      }
      sums_[number] += seconds;
      added_[number / 64] |= std::uint64_t{1} << (number % 64);
    }
    // Calls use(number, sum) for each number that was added, and clears all.
    template <class Use>
    void take(Use use) {
      for (std::size_t word = 0; word < added_.size(); ++word) {
        for (; added_[word] != 0; added_[word] &= added_[word] - 1) {
          const std::size_t number =
              64 * word + static_cast<std::size_t>(std::countr_zero(added_[word]));
          use(static_cast<std::uint32_t>(number), sums_[number]);
          sums_[number] = 0;
        }
      }
    }

   private:
    std::vector<double> sums_;
    std::vector<std::uint64_t> added_;  // one bit for each number
  };

  // A begin slightly before a bin's, by rounding, belongs to the bin.
  std::size_t bin_at(double t) const {
    return static_cast<std::size_t>(std::max(t / width_ + 1e-6, 0.0));
  }

  template <class Use>
  void take_to(std::size_t end, Use use) {
    sort(end);
    Bin bin;
    for (std::size_t i = 0; i + 1 < begins_.size(); ++i) {
      if (begins_[i] == begins_[i + 1]) continue;
      gather(first_ + i, std::span(entries_).subspan(begins_[i], begins_[i + 1] - begins_[i]), bin);
      use(bin);
    }
    taken_ = end;
  }

  // Moves what was added below bin `end` from raw_ to entries_: by bin (counting sort), then in the
  // order in which it was added. begins_[i]: the first entry of bin first_ + i.
  void sort(std::size_t end) {
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
  void gather(std::size_t number, std::span<const Entry> entries, Bin& bin) {
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

  double width_;
  std::size_t taken_ = 0;  // bins below were taken
  std::vector<Raw> raw_;
  std::size_t first_ = 0;
  std::vector<std::size_t> begins_;
  std::vector<Entry> entries_;
  Sums own_, parts_;
};

}  // namespace jouleprof::analysis
