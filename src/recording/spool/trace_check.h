// Whether the parts of a trace fit together.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/activity/activity.h"

namespace jouleprof::spool {

// Checks the parts of a trace in their order. Each call returns what is wrong with the part, or
// nothing; a part that is wrong is treated as missing.
//
// Identifiers count up from zero in each list. A layer's or range's parent has a lower identifier
// than itself, so there are no cycles. Scopes name layers and ranges that exist. Chunks name
// an existing device (kLayers, kReplay: none), end not before they begin, and are decodable to
// their end; their entries name existing classes, scopes and layers and lie within about the
// chunk's span.
class TraceCheck {
 public:
  TraceCheck() = default;
  // Continues after a trace that was checked.
  explicit TraceCheck(const model::Trace& so_far);

  std::string_view define(std::uint32_t id, const model::TracedDevice& device);
  std::string_view define(std::uint32_t id, const model::KernelClass& kernel_class);
  std::string_view define(std::uint32_t id, const model::Layer& layer);
  std::string_view define(std::uint32_t id, const model::Range& range);
  std::string_view define(std::uint32_t id, const model::Scope& scope);
  // `bin`: Trace::bin.
  std::string_view add(const model::ActivityChunk& chunk, Duration bin) const;

 private:
  static std::string_view next(std::uint32_t id, std::uint32_t& count);

  std::uint32_t devices_ = 0;
  std::uint32_t classes_ = 0;
  std::uint32_t layers_ = 0;
  std::uint32_t ranges_ = 0;
  std::uint32_t scopes_ = 0;
};

}  // namespace jouleprof::spool
