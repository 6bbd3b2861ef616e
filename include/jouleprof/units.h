// Energy, Power and Duration: one type per physical dimension.
//
// A unit is named only where a number enters or leaves; in between the compiler keeps dimensions
// apart. Energy is an exact integer, so that "the parts sum to the whole" is an equality.
#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#if __cplusplus >= 202002L
#include <compare>
#endif

namespace jouleprof {

using Duration = std::chrono::nanoseconds;

// A duration in seconds, as a floating-point number.
constexpr double seconds(Duration d) { return static_cast<double>(d.count()) * 1e-9; }

// The duration of `s` seconds, rounded to the nanosecond.
inline Duration duration_of(double s) { return Duration{std::llround(s * 1e9)}; }

// An amount of energy in whole microjoules. The range is 29 years at 10 kW.
class Energy {
 public:
  constexpr Energy() = default;
  static constexpr Energy microjoules(std::int64_t n) { return Energy{n}; }
  static constexpr Energy millijoules(std::int64_t n) { return Energy{n * 1000}; }
  // Rounded to the nearest microjoule.
  static Energy joules(double j) { return Energy{std::llround(j * 1e6)}; }

  constexpr std::int64_t microjoules() const { return microjoules_; }
  constexpr double joules() const { return static_cast<double>(microjoules_) * 1e-6; }

#if __cplusplus >= 202002L
  constexpr auto operator<=>(const Energy&) const = default;
#else
  friend constexpr bool operator==(Energy a, Energy b) { return a.microjoules_ == b.microjoules_; }
  friend constexpr bool operator!=(Energy a, Energy b) { return a.microjoules_ != b.microjoules_; }
  friend constexpr bool operator<(Energy a, Energy b) { return a.microjoules_ < b.microjoules_; }
  friend constexpr bool operator>(Energy a, Energy b) { return a.microjoules_ > b.microjoules_; }
  friend constexpr bool operator<=(Energy a, Energy b) { return a.microjoules_ <= b.microjoules_; }
  friend constexpr bool operator>=(Energy a, Energy b) { return a.microjoules_ >= b.microjoules_; }
#endif
  constexpr Energy& operator+=(Energy e) { return microjoules_ += e.microjoules_, *this; }
  constexpr Energy& operator-=(Energy e) { return microjoules_ -= e.microjoules_, *this; }
  friend constexpr Energy operator+(Energy a, Energy b) { return a += b; }
  friend constexpr Energy operator-(Energy a, Energy b) { return a -= b; }
  friend constexpr Energy operator-(Energy a) { return Energy{-a.microjoules_}; }

 private:
  constexpr explicit Energy(std::int64_t n) : microjoules_(n) {}
  std::int64_t microjoules_ = 0;
};

// A rate of energy, in watts.
class Power {
 public:
  constexpr Power() = default;
  static constexpr Power watts(double w) { return Power{w}; }
  static constexpr Power milliwatts(std::int64_t n) { return Power{static_cast<double>(n) * 1e-3}; }

  constexpr double watts() const { return watts_; }

#if __cplusplus >= 202002L
  constexpr auto operator<=>(const Power&) const = default;
#else
  friend constexpr bool operator==(Power a, Power b) { return a.watts_ == b.watts_; }
  friend constexpr bool operator!=(Power a, Power b) { return a.watts_ != b.watts_; }
  friend constexpr bool operator<(Power a, Power b) { return a.watts_ < b.watts_; }
  friend constexpr bool operator>(Power a, Power b) { return a.watts_ > b.watts_; }
  friend constexpr bool operator<=(Power a, Power b) { return a.watts_ <= b.watts_; }
  friend constexpr bool operator>=(Power a, Power b) { return a.watts_ >= b.watts_; }
#endif
  constexpr Power& operator+=(Power p) { return watts_ += p.watts_, *this; }
  constexpr Power& operator-=(Power p) { return watts_ -= p.watts_, *this; }
  friend constexpr Power operator+(Power a, Power b) { return a += b; }
  friend constexpr Power operator-(Power a, Power b) { return a -= b; }
  friend constexpr Power operator*(Power p, double k) { return Power{p.watts_ * k}; }
  friend constexpr Power operator*(double k, Power p) { return p * k; }

 private:
  constexpr explicit Power(double w) : watts_(w) {}
  double watts_ = 0;
};

inline Energy operator*(Power p, Duration d) {
  // Watts times nanoseconds are nanojoules.
  return Energy::microjoules(std::llround(p.watts() * static_cast<double>(d.count()) * 1e-3));
}
inline Energy operator*(Duration d, Power p) { return p * d; }

// The mean power over `d`, which must not be zero.
constexpr Power operator/(Energy e, Duration d) {
  return Power::watts(static_cast<double>(e.microjoules()) * 1e3 / static_cast<double>(d.count()));
}

}  // namespace jouleprof
