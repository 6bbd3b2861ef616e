#include <algorithm>

#include "report/chrome/chrome_trace.h"
#include "report/format/format.h"

namespace jouleprof::report {
namespace {

using namespace std::chrono_literals;

// Viewers take minutes for millions of values of a counter. A shorter part shows each.
constexpr int kMostSteps = 200'000;  // an hour, by 18 ms

Result<void> write(const analysis::Run& run, const analysis::Part& part,
                   const FormatOptions& options, std::ostream& out) {
  const auto span = run.span(part);
  if (!span) return tl::unexpected(span.error());
  const auto& activity = run.activity(part);
  if (!activity) return tl::unexpected(activity.error());
  ChromeTraceParts parts;
  parts.profiles = &*activity;
  parts.version = options.version;
  if (part.from) parts.begin = span->begin;
  if (part.to) parts.end = span->end;
  parts.window_energy = window_energy_of(run);
  parts.busy_step = (span->end - span->begin) / kMostSteps;
  parts.curves = power_curves(run, part, std::max<Duration>(parts.busy_step, 20ms),
                              std::max<Duration>(parts.busy_step, 100ms));
  return write_chrome_trace(out, run.recording(), parts);
}

}  // namespace

extern const Format chrome_format;
constinit const Format chrome_format{
    .name = "chrome",
    .extension = ".trace.json",
    .shows = "power, launches, layers and windows over time, for ui.perfetto.dev",
    .write = write};

}  // namespace jouleprof::report
