// Busy times of several processes brought to one lattice of bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace jouleprof::analysis {

class BinLattice {
 public:
  // Numbers from here on are of time that was added already, as another number's: no part of what a
  // bin was busy.
  static constexpr std::uint32_t kPartOfOthers = 1U << 31;

  struct Busy {
    std::uint32_t kernel_class = 0;
    double seconds = 0;
  };
  struct Bin {
    double begin = 0;  // seconds
    double busy = 0;   // seconds, of all classes below kPartOfOthers
    std::vector<Busy> classes;
  };

  // Bins are [i * width, (i + 1) * width), in seconds.
  explicit BinLattice(double width) : width_(width) {}

  double width() const { return width_; }

  // A class was busy for so long within [begin, begin + length), which need not lie on the lattice:
  // spread evenly.
  void add(double begin, double length, std::uint32_t kernel_class, double busy);

  // Calls use(Bin) for each bin in which anything ran, in order, and forgets all. Where several
  // processes' work exceeds a bin together, it is scaled to it.
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
  // The bin that begins at an index; returns the next one's.
  std::size_t gather(std::size_t first, Bin& bin) const;

  double width_;
  std::vector<Raw> raw_;
};

}  // namespace jouleprof::analysis
