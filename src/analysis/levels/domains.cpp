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
  return !instances_of(recording.domains, domain.id).empty();
}

namespace {

bool is_instance_of(const model::Domain& domain, model::DomainId board) {
  return domain.parent == board && domain.uuid.starts_with("MIG-");
}

}  // namespace

std::vector<const model::Domain*> instances_of(const std::vector<model::Domain>& domains,
                                               model::DomainId board) {
  std::vector<const model::Domain*> out;
  for (const auto& d : domains) {
    if (is_instance_of(d, board)) out.push_back(&d);
  }
  return out;
}

unsigned slices_of(const model::Domain& instance) {
  const std::string_view name = instance.name;
  const auto begin = name.rfind("MIG ");
  const auto unit = begin == std::string_view::npos ? begin : name.find("g.", begin);
  if (unit == std::string_view::npos || unit == 0) return 0;
  const char digit = name[unit - 1];
  return digit >= '1' && digit <= '9' ? static_cast<unsigned>(digit - '0') : 0;
}

bool is_use_of(const model::Recording& recording, model::DomainId used,
               const model::Domain& domain) {
  const auto of_board = [&](model::DomainId board) {
    return used == board ||
           std::any_of(recording.domains.begin(), recording.domains.end(),
                       [&](const auto& d) { return d.id == used && is_instance_of(d, board); });
  };
  return of_board(domain.id) || (domain.parent && of_board(*domain.parent));
}

}  // namespace jouleprof::analysis
