// Busy times of several processes on one lattice of bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
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
  void add(double begin, double length, std::uint32_t kernel_class, double busy);

  // Calls use(Bin) for each bin with activity, in order, and removes it. Where the sum of several
  // processes exceeds a bin's width, it is scaled to the width.
  template <class Use>
  void take(Use use) {
    take_to(std::numeric_limits<std::size_t>::max(), use);
  }

  // The same for bins that end at or before `t`, now or in a later call.
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
    void add(std::uint32_t number, double seconds);
    // Calls use(number, sum) for each number that was added, and clears all.
    template <class Use>
    void take(Use use);

   private:
    std::vector<double> sums_;
    std::vector<std::uint64_t> added_;  // one bit for each number
  };

  std::size_t bin_at(double t) const;

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
  void sort(std::size_t end);
  void gather(std::size_t number, std::span<const Entry> entries, Bin& bin);

  double width_;
  std::size_t taken_ = 0;  // bins below were taken
  std::vector<Raw> raw_;
  std::size_t first_ = 0;
  std::vector<std::size_t> begins_;
  std::vector<Entry> entries_;
  Sums own_, parts_;
};

}  // namespace jouleprof::analysis
