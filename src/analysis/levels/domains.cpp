#include "analysis/levels/domains.h"

namespace jouleprof::analysis {
namespace {

bool has_one_gpu(const model::Recording& recording) {
  return std::count_if(recording.domains.begin(), recording.domains.end(), [](const auto& d) {
           return d.kind == model::DomainKind::kGpu && !d.parent && d.visible;
         }) == 1;
}

const std::string& uuid_of_board(const model::Recording& recording, const model::Domain& domain) {
  for (const auto& d : recording.domains) {
    if (domain.parent && d.id == *domain.parent) return d.uuid;
  }
  return domain.uuid;
}

}  // namespace

bool is_on(const model::Recording& recording, const model::Trace& trace,
           const model::ActivityChunk& chunk, const model::Domain& domain) {
  if (model::is_of_host(chunk.kind) || chunk.device >= trace.devices.size()) return false;
  const std::string& uuid = trace.devices[chunk.device].uuid;
  return uuid.empty() ? has_one_gpu(recording) : uuid == uuid_of_board(recording, domain);
}

bool is_divided(const model::Recording& recording, const model::Domain& domain) {
  return std::any_of(recording.domains.begin(), recording.domains.end(), [&](const auto& d) {
    return d.parent == domain.id && d.uuid.starts_with("MIG-");
  });
}

}  // namespace jouleprof::analysis
