#include "report/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "report/cells.h"

namespace jouleprof::report {
namespace {

TEST(Quantity, EnergyHasFourDigitsAndAPrefix) {
  EXPECT_EQ(watt_hours_text(Energy::joules(9443)), "2.623 Wh");
  EXPECT_EQ(watt_hours_text(Energy::joules(9.443e6)), "2.623 kWh");
  EXPECT_EQ(watt_hours_text(Energy::joules(8.673)), "2.409 mWh");
  EXPECT_EQ(watt_hours_text(Energy::joules(0.04)), "0.011 mWh");
  EXPECT_EQ(watt_hours_text(Energy::joules(0.0014)), "0.389 uWh");
  EXPECT_EQ(watt_hours_text(Energy{}), "0 Wh");
  const auto text = [](std::int64_t uj) { return energy_text(Energy::microjoules(uj)); };
  EXPECT_EQ(text(0), "0 J");
  EXPECT_EQ(text(1), "0.001 mJ");
  EXPECT_EQ(text(123), "0.123 mJ");
  EXPECT_EQ(text(999'940), "999.9 mJ");
  EXPECT_EQ(text(999'960), "1.000 J");
  EXPECT_EQ(text(1'234'000'000), "1.234 kJ");
  EXPECT_EQ(text(12'345'600'000'000), "12.35 MJ");
  EXPECT_EQ(text(999'960'000'000), "1.000 MJ");
  EXPECT_EQ(text(-1'500'000), "-1.500 J");
  EXPECT_EQ(text(std::numeric_limits<std::int64_t>::max()), "9223 GJ");
}

TEST(Quantity, NumbersNeverShowMinusZero) {
  EXPECT_EQ(number_text(148.04), "148.0");
  EXPECT_EQ(number_text(1234.4), "1234");
  EXPECT_EQ(number_text(99.996), "100.0");
  EXPECT_EQ(number_text(0.5), "0.500");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(-0.0001), "0");
  EXPECT_EQ(number_text(std::nan("")), "-");
  EXPECT_EQ(fixed_decimal(-0.0000001), "0.000000");
  EXPECT_EQ(fixed_decimal(std::numeric_limits<double>::infinity()), "");
}

TEST(Quantity, SmallPercentagesAreNotNothing) {
  EXPECT_EQ(percent_text(0.05), "5.0 %");
  EXPECT_EQ(percent_text(0.7), "70 %");
  EXPECT_EQ(percent_text(0.0018), "0.2 %");
  EXPECT_EQ(percent_text(0.0007), "0.07 %");
  EXPECT_EQ(percent_text(1e-9), "0.01 %");
  EXPECT_EQ(percent_text(0), "0 %");
}

TEST(Quantity, IntervalsHaveTwoWidthsWhereTheyDiffer) {
  const auto joules = [](double value) { return Energy::joules(value); };
  EXPECT_EQ(interval_text(joules(100), joules(5), joules(5)), "±5.0 %");
  EXPECT_EQ(interval_text(joules(100), joules(5), joules(5), true), "+-5.0 %");
  EXPECT_EQ(interval_text(joules(100), joules(5), joules(23)), "-5.0 % +23 %");
  EXPECT_EQ(interval_text(joules(100), joules(5), joules(5.2)), "±5.2 %");
  EXPECT_EQ(interval_text(joules(100), joules(5.7), joules(5.4)), "±5.7 %");
  EXPECT_EQ(interval_text({}, joules(5), joules(7)), "-5.000 J +7.000 J");
  EXPECT_EQ(interval_text(joules(0.04), joules(0.39), joules(0.39)), "±975 %");
  EXPECT_EQ(interval_text(joules(0.04), joules(1.217), joules(1.217)), "±1.217 J");
  EXPECT_EQ(interval_text(joules(0.04), joules(0.04), joules(1.217)), "-100 % +1.217 J");
  EXPECT_EQ(lower_interval_text(100, 5), "-5.0 %");
  EXPECT_EQ(lower_interval_text(100, 121), "-100 %");
}

TEST(Quantity, Durations) {
  EXPECT_EQ(duration_text(duration_of(0.0083)), "8.300 ms");
  EXPECT_EQ(duration_text(duration_of(0.99999)), "1.000 s");
  EXPECT_EQ(duration_text(duration_of(83.42)), "83.42 s");
  EXPECT_EQ(duration_text(duration_of(99.999)), "1 min 40 s");
  EXPECT_EQ(duration_text(duration_of(3599.6)), "1 h 0 min");
  EXPECT_EQ(duration_text(duration_of(7513)), "2 h 5 min");
  EXPECT_EQ(duration_text(duration_of(-1)), "-1.000 s");
}

TEST(Quantity, DecimalsAreExact) {
  EXPECT_EQ(joules_decimal(Energy::microjoules(std::numeric_limits<std::int64_t>::max())),
            "9223372036854.775807");
  EXPECT_EQ(joules_decimal(Energy::microjoules(std::numeric_limits<std::int64_t>::min())),
            "-9223372036854.775808");
  EXPECT_EQ(joules_decimal(Energy::microjoules(-5)), "-0.000005");
  EXPECT_EQ(seconds_decimal(Duration{-1'500'000'000}), "-1.500000000");
}

TEST(Quantity, WallTime) {
  EXPECT_EQ(utc_text(RealTime{Duration{1'795'183'391'250'000'001}}),
            "2026-11-20T14:03:11.250000001Z");
  EXPECT_EQ(utc_text(RealTime{Duration{-1}}), "1969-12-31T23:59:59.999999999Z");
}

TEST(Quantity, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(14'890'000), "14.2 MiB");
  EXPECT_EQ(bytes_text(std::uint64_t{1023} * 1024 * 1024), "1.0 GiB");
}

TEST(Cells, WidthsFollowWhatATerminalShows) {
  EXPECT_EQ(display_width("\xC2\xB1"
                          "5"),
            2u);
  EXPECT_EQ(display_width("\xE6\xB7\xB1"), 2u);  // a wide character
  EXPECT_EQ(fit("abcdefgh", 6), "abc...");
  EXPECT_EQ(fit("abcdef", 6), "abcdef");
  EXPECT_EQ(fit("\xE6\xB7\xB1\xE6\xB7\xB1\xE6\xB7\xB1", 5), "\xE6\xB7\xB1...");
  EXPECT_EQ(fit("abcdef", 2), "..");
}

TEST(Cells, PrintableKeepsTextAndDropsHarm) {
  EXPECT_EQ(printable("caf\xC3\xA9 \xE6\xB7\xB1"), "caf\xC3\xA9 \xE6\xB7\xB1");
  EXPECT_EQ(printable("a\tb\nc"), "a b c");
  EXPECT_EQ(printable("\x1b[1m", true), "?[1m");
  EXPECT_EQ(printable("\xE2\x80\xAE"
                      "x",
                      true),
            "?x");                                              // right-to-left override
  EXPECT_EQ(printable("\xC0\xAF\xED\xA0\x80", true), "?????");  // overlong; half a surrogate
  EXPECT_EQ(printable("\xE6\xB7", true), "??");                 // cut off
}

TEST(Cells, ShellWordsReadBack) {
  EXPECT_EQ(shell_word("train.py"), "train.py");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace jouleprof::report
