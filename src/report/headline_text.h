// Phrases of a run's headline, which its page and its figure share.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "model/profile.h"
#include "report/total.h"

namespace jouleprof::report {

inline constexpr std::string_view kSimulatedText =
    "SIMULATED: these figures come from a simulated device. Nothing was measured.";
inline constexpr std::string_view kCutOffText =
    "CUT OFF: the recording was not closed in order; its last moments are missing.";

inline constexpr std::string_view kBeingWrittenText =
    "STILL BEING WRITTEN: these figures end with what has been written so far.";
// kCutOffText, kBeingWrittenText, or nothing of a recording that was closed in order.
std::string_view incomplete_text(const model::Profile& profile);

std::string command_text(const model::RunInfo& run);  // as a shell reads it; may be empty
// ", from 1.000 s to 2.000 s of the run"; empty of all of it.
std::string part_text(const model::Profile& profile);
// When the run began and how long it was, also where the profile is of a part.
RealTime run_start(const model::Profile& profile);
Duration run_duration(const model::Profile& profile);
std::string exit_text(int status);  // "exit status 137 (signal 9)"
// "exit status 0, started ... on HOST", and the part where it is one.
std::string run_line(const model::Profile& profile);
// "±5.0 %"
std::string error_text(Energy error, Energy of);
std::string error_text(const model::Measurement& m);  // "-0.5 % +8.5 %" where not symmetric
// "scale ±5 %", "truth -0.5 to +8 % and +0 to +4 W of what it shows"
std::string scale_text(const model::ScaleError& scale);
std::string energy_interval_text(const model::Measurement& m);  // "8.500 kJ to 9.394 kJ"
// Said of an energy that another tool reported without an error.
inline constexpr std::string_view kNoInterval = "no interval: the file states none";
// "8.947 kJ", "at least 8.947 kJ"; and its error: "±5.0 %", without an upper one "-5.0 %".
std::string quoted_energy_text(const Quoted& quote);
std::string quoted_error_text(const Quoted& quote, bool ascii = false);
std::string quoted_provenance_text(const Quoted& quote);
// "95 % interval 8.500 kJ to 9.394 kJ · 2.623 Wh · repeatability ±0.2 %"
std::string quoted_interval_text(const Quoted& quote);
// Which devices were lost, and what they took before; empty where none was.
std::string partial_text(const model::Profile& profile, const Total& total);
// Whose energy the quoted one is, with its parts; empty where it is all of the total.
std::string whose_text(const model::Profile& profile, const Total& total, const Quoted& quote);
// The mean power of the total in watts; "at least 78.0" where a device was lost; empty where
// unknown.
std::string mean_watts_text(const model::Profile& profile, const Total& total);
// The domains of the total, and what it lacks.
std::string coverage_text(const model::Profile& profile, const Total& total);
// The domain with the greatest power of those that count; nullptr where none is known.
const model::DomainProfile* highest_peak(const Total& total);

}  // namespace jouleprof::report
