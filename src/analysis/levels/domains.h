// Which domain a traced chunk of activity belongs to, and which board is divided.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "model/domain.h"
#include "model/recording.h"

namespace jouleprof::analysis {

// Whether active energy is divided by CPU time.
inline bool follows_cpu_time(model::DomainKind kind) {
  using enum model::DomainKind;
  return kind == kCpu || kind == kDram || kind == kCpuCores || kind == kCpuUncore;
}

// Whether `chunk` of `trace` is activity on the GPU `domain`, or on the GPU that contains it.
// Devices are matched by UUID; a device without one is the recording's only GPU.
inline bool is_on(const model::Recording& recording, const model::Trace& trace,
                  const model::ActivityChunk& chunk, const model::Domain& domain) {
  if (model::is_of_host(chunk.kind) || chunk.device >= trace.devices.size()) return false;
  const std::string& uuid = trace.devices[chunk.device].uuid;
  const auto& domains = recording.domains;
  if (uuid.empty()) {
    return std::ranges::count_if(domains, [](const auto& d) {
             return d.kind == model::DomainKind::kGpu && !d.parent && d.visible;
           }) == 1;
  }
  const auto board =
      std::ranges::find_if(domains, [&](const auto& d) { return domain.parent == d.id; });
  return uuid == (board == domains.end() ? domain : *board).uuid;
}

// Whether MIG made the domain of the board.
inline bool is_instance_of(const model::Domain& domain, model::DomainId board) {
  return domain.parent == board && domain.uuid.starts_with("MIG-");
}

// The instances of a board that MIG divides, in the recording's order.
inline std::vector<const model::Domain*> instances_of(const std::vector<model::Domain>& domains,
                                                      model::DomainId board) {
  std::vector<const model::Domain*> out;
  for (const auto& d : domains) {
    if (is_instance_of(d, board)) out.push_back(&d);
  }
  return out;
}

// The instances of the board that `domain` is or is part of.
inline std::vector<const model::Domain*> parts_of(const model::Recording& recording,
                                                  const model::Domain& domain) {
  const bool is_board = domain.kind == model::DomainKind::kGpu || !domain.parent;
  return instances_of(recording.domains, is_board ? domain.id : *domain.parent);
}

// Whether MIG divides the board. Its sensors see all instances together, and whose they are is not
// known.
inline bool is_divided(const model::Recording& recording, const model::Domain& domain) {
  return !parts_of(recording, domain).empty();
}

// The compute slices of an instance, of "NVIDIA H100 80GB HBM3 MIG 3g.40gb": 3. Its share of the
// board's multiprocessors is in proportion to them. 0: its name does not say it.
inline unsigned slices_of(const model::Domain& instance) {
  const std::string_view name = instance.name;
  const auto begin = name.rfind("MIG ");
  const auto unit = begin == std::string_view::npos ? begin : name.find("g.", begin);
  if (unit == std::string_view::npos || unit == 0) return 0;
  const char digit = name[unit - 1];
  return digit >= '1' && digit <= '9' ? static_cast<unsigned>(digit - '0') : 0;
}

// Whether the use of `used` by a process is one of `domain`: the board itself, an instance of it,
// or what contains it.
inline bool is_use_of(const model::Recording& recording, model::DomainId used,
                      const model::Domain& domain) {
  const auto of_board = [&](model::DomainId board) {
    return used == board || std::ranges::any_of(recording.domains, [&](const auto& d) {
             return d.id == used && is_instance_of(d, board);
           });
  };
  return of_board(domain.id) || (domain.parent && of_board(*domain.parent));
}

// How warnings name a domain.
// The device, "gpu0"; of a part of one also which: "gpu0 memory", "package-0 cpu cores".
inline std::string label_of(const model::Domain& domain) {
  if (!domain.parent || domain.kind == model::DomainKind::kGpu) return domain.device;
  if (domain.kind == model::DomainKind::kGpuMemory) return domain.device + " memory";
  std::string kind(model::to_string(domain.kind));
  std::ranges::replace(kind, '_', ' ');
  return domain.device + ' ' + kind;
}

}  // namespace jouleprof::analysis
