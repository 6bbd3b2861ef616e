#include "report/foreign/aipowermeter.h"
#include "report/format/format.h"

namespace jouleprof::report {
namespace {

using namespace std::chrono_literals;

Result<void> write(const analysis::Run& run, const analysis::Part& part, const FormatOptions&,
                   std::ostream& out) {
  const auto span = run.span(part);
  if (!span) return tl::unexpected(span.error());
  return write_aipowermeter(out, run.recording(), power_curves(run, part, 100ms));
}

}  // namespace

extern const Format aipowermeter_format;
constinit const Format aipowermeter_format{.name = "aipowermeter",
                                           .extension = "power_metrics.json",
                                           .shows = "JSON Lines that AIPowerMeter reads",
                                           .write = write};

}  // namespace jouleprof::report
