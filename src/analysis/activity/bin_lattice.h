// Busy times of several processes on one lattice of bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jouleprof::analysis {

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
  // not lie on the lattice.
  void add(double begin, double length, std::uint32_t kernel_class, double busy);

  // Calls use(Bin) for each bin with activity, in order, and clears all. Where the sum of several
  // processes exceeds a bin's width, it is scaled to the width.
  template <class Use>
  void take(Use use) {
    sort();
    Bin bin;
    for (std::size_t i = 0; i < raw_.size();) {
      i = gather(i, bin);
      use(bin);
    }
    raw_ = {};
  }

 private:
  struct Raw {
    std::size_t bin;
    std::uint32_t kernel_class;
    float busy;
  };

  void sort();
  // Sets `bin` to the one whose entries begin at `first`; returns the begin of the next one's.
  std::size_t gather(std::size_t first, Bin& bin) const;

  double width_;
  std::vector<Raw> raw_;
};

}  // namespace jouleprof::analysis
