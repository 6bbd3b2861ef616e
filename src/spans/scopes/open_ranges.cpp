#include "spans/scopes/open_ranges.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace jouleprof::scopes {
namespace {

constexpr std::size_t kPlaces = 4096;
static_assert((kPlaces & (kPlaces - 1)) == 0);

// A place's turn is odd while a range has it, and one more when that closes: so an old number never
// fits a range that came to the same place later.
std::array<std::atomic<std::uint64_t>, kPlaces> turns;
std::atomic<std::size_t> next_place{0};
std::atomic<std::uint64_t> opened{0};
std::atomic<std::uint64_t> closed{0};

std::atomic<std::uint64_t>& place_of(std::uint64_t number) noexcept {
  return turns[number % kPlaces];
}

}  // namespace

std::uint64_t open_range() noexcept {
  // A program that never ends what it starts does not pay for the search each time.
  const std::uint64_t ended = closed.load(std::memory_order_relaxed);
  if (opened.load(std::memory_order_relaxed) >= ended + kPlaces) return 0;
  for (std::size_t tries = 0; tries != kPlaces; ++tries) {
    const std::size_t place = next_place.fetch_add(1, std::memory_order_relaxed) % kPlaces;
    std::uint64_t turn = turns[place].load(std::memory_order_relaxed);
    if (turn % 2 == 0 && turns[place].compare_exchange_strong(turn, turn + 1)) {
      opened.fetch_add(1, std::memory_order_relaxed);
      return (turn + 1) * kPlaces + place;
    }
  }
  return 0;
}

bool close_range(std::uint64_t number) noexcept {
  std::uint64_t turn = number / kPlaces;
  if (turn % 2 == 0 || !place_of(number).compare_exchange_strong(turn, turn + 1)) return false;
  closed.fetch_add(1, std::memory_order_release);
  return true;
}

bool is_open(std::uint64_t number) noexcept {
  return place_of(number).load(std::memory_order_acquire) == number / kPlaces;
}

std::uint64_t ranges_closed() noexcept { return closed.load(std::memory_order_acquire); }

}  // namespace jouleprof::scopes
