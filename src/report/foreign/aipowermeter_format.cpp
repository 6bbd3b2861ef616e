#include <algorithm>
#include <optional>

#include "report/foreign/aipowermeter.h"
#include "report/format/format.h"

namespace jouleprof::report {
namespace {

using namespace std::chrono_literals;

constexpr Duration kStep = 100ms;

// Curves have whole steps only: what is left at both ends of the span, as the timeline has it.
void complete(const analysis::Run& run, const analysis::PartSpan& span,
              std::vector<PowerCurve>& curves) {
  for (PowerCurve& curve : curves) {
    const auto& domains = run.recording().domains;
    const auto domain =
        static_cast<std::size_t>(std::find_if(domains.begin(), domains.end(),
                                              [&](const auto& d) { return d.id == curve.domain; }) -
                                 domains.begin());
    const auto rest = [&](HostTime begin, HostTime end) -> std::optional<model::PowerStep> {
      if (begin >= end || end - begin > kStep) return std::nullopt;
      const auto energy = run.energy(domain, begin, end);
      if (!energy) return std::nullopt;
      return model::PowerStep{begin, end, energy->energy / (end - begin), {}};
    };
    const auto first = rest(span.begin, curve.steps.front().begin);
    const auto last = rest(curve.steps.back().end, span.end);
    if (first) curve.steps.insert(curve.steps.begin(), *first);
    if (last) curve.steps.push_back(*last);
  }
}

Result<void> write(const analysis::Run& run, const analysis::Part& part, const FormatOptions&,
                   std::ostream& out) {
  const auto span = run.span(part);
  if (!span) return tl::unexpected(span.error());
  auto curves = power_curves(run, part, kStep);
  complete(run, *span, curves);
  const auto& profile = run.profile(part);
  return write_aipowermeter(out, run.recording(), curves,
                            profile ? profile->processes : std::vector<model::ProcessProfile>{});
}

}  // namespace

extern const Format aipowermeter_format;
constinit const Format aipowermeter_format{.name = "aipowermeter",
                                           .extension = "power_metrics.json",
                                           .shows = "JSON Lines that AIPowerMeter reads",
                                           .write = write};

}  // namespace jouleprof::report
