// How warnings name a domain.
#pragma once

#include <algorithm>
#include <string>

#include "model/domain.h"

namespace jouleprof::analysis {

// The device, "gpu0"; of a part of one also which: "gpu0 memory", "package-0 cpu cores".
inline std::string label_of(const model::Domain& domain) {
  if (!domain.parent || domain.kind == model::DomainKind::kGpu) return domain.device;
  if (domain.kind == model::DomainKind::kGpuMemory) return domain.device + " memory";
  std::string kind(model::to_string(domain.kind));
  std::replace(kind.begin(), kind.end(), '_', ' ');
  return domain.device + ' ' + kind;
}

}  // namespace jouleprof::analysis
