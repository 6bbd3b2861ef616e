// Sums by a 64-bit key, cheap enough for each kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jouleprof::model {

class FlatSums {
 public:
  struct Sum {
    std::uint64_t key = 0;
    std::uint64_t launches = 0;
    std::uint64_t busy = 0;  // nanoseconds
  };

  void add(std::uint64_t key, std::uint64_t launches, std::uint64_t busy) {
    Sum& sum = at(key);
    sum.launches += launches;
    sum.busy += busy;
  }

  const std::vector<Sum>& sums() const { return sums_; }  // by first use
  void clear();

 private:
  static std::size_t hash(std::uint64_t key) {
    key *= 0x9E3779B97F4A7C15ULL;
    return static_cast<std::size_t>(key >> 32 ^ key >> 51);
  }

  Sum& at(std::uint64_t key) {
    if (last_ < sums_.size() && sums_[last_].key == key) return sums_[last_];
    if (sums_.size() * 2 >= slots_.size()) grow();
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash(key) & mask;
    while (slots_[i] != 0 && sums_[slots_[i] - 1].key != key) i = (i + 1) & mask;
    if (slots_[i] == 0) {
      sums_.push_back({key, 0, 0});
      slots_[i] = static_cast<std::uint32_t>(sums_.size());
    }
    last_ = slots_[i] - 1;
    return sums_[last_];
  }

  void grow();

  std::vector<Sum> sums_;
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(64);  // index + 1; 0: free
  std::size_t last_ = 0;
};

}  // namespace jouleprof::model
