#include "report/quantity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>

#include "base/text.h"

namespace jouleprof::report {
namespace {

constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;

// The decimal exponent of `value` once rounded to four significant digits.
int exponent_of(double value) {
  const std::string text = fmt::format("{:.3e}", value);
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* begin = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(begin, text.data() + text.size(), exponent);
  return exponent;
}

std::string exact_decimal(std::int64_t count, std::int64_t per_unit, int digits) {
  const bool negative = count < 0;
  const auto size =
      negative ? 0 - static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(count);
  const auto unit = static_cast<std::uint64_t>(per_unit);
  return fmt::format("{}{}.{:0{}}", negative ? "-" : "", size / unit, size % unit, digits);
}

struct WallTime {
  std::tm tm{};
  std::int64_t nanoseconds = 0;
};

WallTime split_time(RealTime t, bool local) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(t.time_since_epoch());
  WallTime result;
  result.nanoseconds = (t.time_since_epoch() - whole).count();
  const auto stamp = static_cast<std::time_t>(whole.count());
  if (local) {
    localtime_r(&stamp, &result.tm);
  } else {
    gmtime_r(&stamp, &result.tm);
  }
  return result;
}

std::string date(const std::tm& tm, std::string_view separator) {
  return fmt::format("{:04}{}{:02}{}{:02}", tm.tm_year + 1900, separator, tm.tm_mon + 1, separator,
                     tm.tm_mday);
}

std::string clock(const std::tm& tm) {
  return fmt::format("{:02}:{:02}:{:02}", tm.tm_hour, tm.tm_min, tm.tm_sec);
}

}  // namespace

std::string energy_text(Energy e) {
  static constexpr std::array<std::string_view, 5> kUnits{"mJ", "J", "kJ", "MJ", "GJ"};
  if (e == Energy{}) return "0 J";
  const double joules = static_cast<double>(e.microjoules()) / 1e6;
  const int exponent = exponent_of(joules);
  const int group = std::clamp(exponent >= 0 ? exponent / 3 : -1, -1, 3);
  const int decimals = std::clamp(3 - (exponent - 3 * group), 0, 3);
  return fmt::format("{:.{}f} {}", joules * std::pow(10.0, -3 * group), decimals,
                     kUnits[static_cast<std::size_t>(group + 1)]);
}

std::string watt_hours_text(Energy e) {
  constexpr std::array<std::pair<double, std::string_view>, 3> kUnits{
      {{1e6, "MWh"}, {1e3, "kWh"}, {1, "Wh"}}};
  const double hours = e.joules() / 3600;
  for (const auto& [size, unit] : kUnits) {
    if (std::abs(hours) >= size) return fmt::format("{} {}", number_text(hours / size), unit);
  }
  if (e == Energy{}) return "0 Wh";
  if (std::abs(hours) < 1e-5) return fmt::format("{} uWh", number_text(hours * 1e6));
  return fmt::format("{} mWh", number_text(hours * 1e3));
}

std::string number_text(double value) {
  if (!std::isfinite(value)) return "-";
  if (std::abs(value) < 0.0005) return "0";
  return fmt::format("{:.{}f}", value, std::clamp(3 - exponent_of(value), 0, 3));
}

std::string units_text(double count) {
  constexpr double kAllDigits = 1e15;
  if (count >= kAllDigits || count != std::round(count)) return shortest(count);
  std::string digits = fmt::format("{:.0f}", count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string percent_text(double ratio) {
  const double percent = std::abs(ratio) * 100;
  if (!std::isfinite(percent)) return "-";
  if (percent == 0) return "0 %";
  if (percent >= 9.95) return fmt::format("{:.0f} %", percent);
  if (percent >= 0.095) return fmt::format("{:.1f} %", percent);
  return fmt::format("{:.2f} %", std::max(percent, 0.01));
}

std::string error_width_text(Energy error, Energy of) {
  constexpr double kMostPercent = 10;  // of itself: "45.04 mJ ±2701 %" says less than "±1.217 J"
  if (of > Energy{} && std::abs(error.joules()) < kMostPercent * of.joules()) {
    return percent_text(error.joules() / of.joules());
  }
  return energy_text(error < Energy{} ? -error : error);
}

std::string interval_text(Energy of, Energy error, Energy upper_error, bool ascii) {
  const auto width = [&](Energy e) { return error_width_text(e, of); };
  // Nearly symmetric: with the wider side.
  constexpr double kNearly = 1.1;
  const auto [narrow, wide] = std::minmax(error, upper_error);
  if (narrow >= Energy{} && wide.joules() <= kNearly * narrow.joules()) {
    return (ascii ? "+-" : "±") + width(wide);
  }
  if (width(error) == width(upper_error)) return (ascii ? "+-" : "±") + width(error);
  // Of a sensor that is known to read low or high, both ends may lie on one side.
  const auto sign = [](Energy e, char usual, char other) { return e < Energy{} ? other : usual; };
  return fmt::format("{}{} {}{}", sign(error, '-', '+'), width(error), sign(upper_error, '+', '-'),
                     width(upper_error));
}

std::string lower_interval_text(double of, double error) {
  return "-" + percent_text(of > 0 ? std::min(error / of, 1.0) : 0);  // no energy is negative
}

std::string duration_text(Duration d) {
  const double s = seconds(d);
  if (s < 0) return "-" + duration_text(-d);
  if (s < 0.99995) return fmt::format("{} ms", number_text(s * 1e3));
  if (s < 99.995) return fmt::format("{} s", number_text(s));
  const auto whole = std::chrono::round<std::chrono::seconds>(d).count();
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<std::string_view, 5> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 99.95 ? 1 : 0, kUnits[unit]);
}

std::string provenance_word(model::Provenance p) {
  std::string word(to_string(p));
  if (p == model::Provenance::kMeasured) return word;
  std::ranges::transform(word, word.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return word;
}

std::string joules_decimal(Energy e) { return exact_decimal(e.microjoules(), 1'000'000, 6); }

std::string seconds_decimal(Duration d) {
  return exact_decimal(d.count(), kNanosecondsPerSecond, 9);
}

std::string fixed_decimal(double value, int decimals) {
  if (!std::isfinite(value)) return {};
  std::string text = fmt::format("{:.{}f}", value, decimals);
  const bool is_zero = text.find_first_of("123456789") == std::string::npos;
  return is_zero && text.front() == '-' ? text.substr(1) : text;
}

std::string utc_text(RealTime t) {
  const WallTime w = split_time(t, false);
  return fmt::format("{}T{}.{:09}Z", date(w.tm, "-"), clock(w.tm), w.nanoseconds);
}

std::string utc_seconds_text(RealTime t) {
  const WallTime w = split_time(t, false);
  return fmt::format("{} {} UTC", date(w.tm, "-"), clock(w.tm));
}

std::string local_date_text(RealTime t, std::string_view separator) {
  return date(split_time(t, true).tm, separator);
}

std::string local_clock_text(RealTime t, int decimals) {
  const WallTime w = split_time(t, true);
  const std::string fraction =
      fmt::format(".{:09}", w.nanoseconds).substr(0, static_cast<std::size_t>(decimals) + 1);
  return clock(w.tm) + (decimals > 0 ? fraction : "");
}

}  // namespace jouleprof::report
