// Numbers as text: short ones for people, exact decimals for programs. None looks at the locale.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/domain.h"

namespace jouleprof::report {

// For people: about four significant digits, never "-0".
std::string energy_text(Energy e);       // "12.34 kJ", "999.9 mJ", "0 J"
std::string watt_hours_text(Energy e);   // "2.623 Wh", "1.204 kWh"
std::string number_text(double value);   // "148.0", "1234", "0.512"; "-" unless finite
std::string units_text(double count);    // all digits: "100,000", "0.5"
std::string percent_text(double ratio);  // 0.05 is "5.0 %"; a tiny one is never rounded to nothing
// "5.0 %"; in joules of an energy that is not positive, or of more than ten times it.
std::string error_width_text(Energy error, Energy of);
// "±5.0 %"; of an interval that is not symmetric "-5.0 % +23 %".
std::string interval_text(Energy of, Energy error, Energy upper_error, bool ascii = false);
// "-5.0 %": the same of joules that are at least so many, and have no upper end.
std::string lower_interval_text(double of, double error);
std::string duration_text(Duration d);        // "831.2 ms", "83.42 s", "23 min 4 s", "2 h 5 min"
std::string bytes_text(std::uint64_t bytes);  // "14.2 MiB"

// The word in capitals unless it is "measured": nothing else may be taken for that.
std::string provenance_word(model::Provenance p);

// For programs: every digit that the value has.
std::string joules_decimal(Energy e);                       // six decimals
std::string seconds_decimal(Duration d);                    // nine decimals
std::string fixed_decimal(double value, int decimals = 6);  // empty unless finite

std::string utc_text(RealTime t);          // 2026-11-20T14:03:11.000250000Z
std::string utc_seconds_text(RealTime t);  // 2026-11-20 14:03:11 UTC
// Local time (TZ), `decimals` digits of the second, 0 to 9.
std::string local_date_text(RealTime t, std::string_view separator);  // 2026-11-20
std::string local_clock_text(RealTime t, int decimals);               // 14:03:11.250

}  // namespace jouleprof::report
