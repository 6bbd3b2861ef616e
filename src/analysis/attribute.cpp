#include "analysis/attribute.h"

#include <fmt/format.h>

#include <utility>

#include "analysis/activity/layer_time.h"
#include "analysis/kernels/kernel_attribution.h"
#include "analysis/timeline/recording_timelines.h"

namespace jouleprof::analysis {

Result<std::vector<model::ActivityProfile>> attribute(const model::Recording& recording,
                                                      const Options& options) {
  std::vector<model::ActivityProfile> out;
  if (recording.traces.empty()) return out;
  const auto known = recorded_span(recording);
  if (!known) return out;
  const HostTime origin = recording.run.work_begin.value_or(known->begin);
  std::optional<HostTime> from;
  std::optional<HostTime> to;
  if (options.from) from = origin + *options.from;
  if (options.to) to = origin + *options.to;
  if (from && to && *to <= *from) {
    return fail(Errc::kInvalidArgument, fmt::format("the part from {:.3f} s to {:.3f} s is empty",
                                                    seconds(*options.from), seconds(*options.to)));
  }
  Timelines timelines = timelines_of(recording);
  for (std::size_t i = 0; i < recording.domains.size(); ++i) {
    const auto& domain = recording.domains[i];
    if (domain.kind == model::DomainKind::kGpu && timelines[i]) {
      auto profile = attribute_kernels(recording, domain, *timelines[i], from, to);
      if (!profile) return tl::unexpected(profile.error());
      if (*profile) out.push_back(std::move(**profile));
    }
    if (domain.kind == model::DomainKind::kCpu && timelines[i]) {
      auto profile = attribute_layer_time(recording, domain, *timelines[i], from, to);
      if (!profile) return tl::unexpected(profile.error());
      if (*profile) out.push_back(std::move(**profile));
    }
  }
  return out;
}

}  // namespace jouleprof::analysis
