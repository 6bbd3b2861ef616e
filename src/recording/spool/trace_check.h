// Whether the parts of a trace fit together.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "model/activity/activity.h"
#include "model/activity/activity_codec.h"
#include "model/activity/serving.h"

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
  explicit TraceCheck(const model::Trace& so_far)
      : devices_(static_cast<std::uint32_t>(so_far.devices.size())),
        classes_(static_cast<std::uint32_t>(so_far.classes.size())),
        layers_(static_cast<std::uint32_t>(so_far.layers.size())),
        ranges_(static_cast<std::uint32_t>(so_far.ranges.size())),
        scopes_(static_cast<std::uint32_t>(so_far.scopes.size())) {}

  std::string_view define(std::uint32_t id, const model::TracedDevice&) {
    return next(id, devices_);
  }
  std::string_view define(std::uint32_t id, const model::KernelClass& c) {
    if (c.kind > model::ActivityKind::kGraph) return "is of an unknown kind";
    return next(id, classes_);
  }
  std::string_view define(std::uint32_t id, const model::Layer& layer) {
    if (!below_or_none(layer.parent, id)) return "has a parent that is not defined before it";
    if (layer.macs && (!std::isfinite(*layer.macs) || *layer.macs < 0))
      return "has impossible macs";
    return next(id, layers_);
  }
  std::string_view define(std::uint32_t id, const model::Range& range) {
    if (!below_or_none(range.parent, id)) return "has a parent that is not defined before it";
    return next(id, ranges_);
  }
  std::string_view define(std::uint32_t id, const model::Scope& scope) {
    if (!below_or_none(scope.layer, layers_)) return kNoLayer;
    if (!below_or_none(scope.range, ranges_)) return kNoRange;
    if (scope.phase > model::Phase::kOptimizer) return "is of an unknown phase";
    return next(id, scopes_);
  }
  // `bin`: Trace::bin.
  std::string_view add(const model::ActivityChunk& chunk, Duration bin) const {
    using enum model::ChunkKind;
    if (chunk.end < chunk.begin) return "ends before it begins";
    const bool of_device = !model::is_of_host(chunk.kind);
    if (of_device ? chunk.device >= devices_ : chunk.device != model::kNone) {
      return "names a device that is not defined";
    }
    // Rounding at the edges, and records that came while the chunk was closed, are no damage.
    const std::int64_t length = (chunk.end - chunk.begin).count() + 1'000'000'000;
    model::ActivityDecoder decoder(chunk.bytes);
    switch (chunk.kind) {
      case kBins:
      case kWideBins:
      case kOverlappedBins:
      case kWideOverlappedBins: {
        if (bin <= Duration{}) return "has bins of no length";
        for (model::BinEntry e; decoder.next(e);) {
          if (e.kernel_class >= classes_) return kNoClass;
          if (e.bin > length / model::bin_of(chunk.kind, bin).count()) return kBinTooFar;
          if (e.busy_nanoseconds > kLongest || e.launches > kLongest) return kTooLong;
        }
        break;
      }
      case kScopes:
      case kOverlappedScopes:
        for (model::ScopeEntry e; decoder.next(e);) {
          if (e.kernel_class >= classes_) return kNoClass;
          if (e.scope >= scopes_ && e.scope != model::kNone) return kNoScope;
          if (e.busy_nanoseconds > kLongest || e.launches > kLongest) return kTooLong;
        }
        break;
      case kEvents:
      case kCollectives:
        for (model::EventEntry e; decoder.next(e);) {
          if (e.kernel_class >= classes_) return kNoClass;
          if (e.scope >= scopes_ && e.scope != model::kNone) return kNoScope;
          if (e.start_nanoseconds > length || e.start_nanoseconds < -kFarBack) return kTooFar;
          if (e.duration_nanoseconds > kLongest) return kTooLong;
        }
        break;
      case kReplay:
        for (model::KernelRerun e; decoder.next(e);) {
          if (e.launches > kLongest || e.clock_kilohertz > kLongest) return kTooLong;
        }
        break;
      case kLayers:
        for (model::LayerEntry e; decoder.next(e);) {
          if (e.layer >= layers_) return kNoLayer;
          if (e.wall_nanoseconds > kLongest || e.cpu_nanoseconds > kLongest || e.calls > kLongest) {
            return kTooLong;
          }
        }
        break;
      case kPhases:
        for (model::PhaseEntry e; decoder.next(e);) {
          if (e.wall_nanoseconds > kLongest || e.cpu_nanoseconds > kLongest || e.times > kLongest) {
            return kTooLong;
          }
        }
        break;
      case kServing:
        return model::decode_serving(chunk.bytes, [](const auto&) {}) ? std::string_view{}
                                                                      : kBroken;
      default:
        return "is of an unknown kind";
    }
    return decoder.ok() ? std::string_view{} : kBroken;
  }

 private:
  static constexpr std::string_view kBroken = "holds what cannot be decoded";
  static constexpr std::string_view kNoClass = "names a kernel signature that is not defined";
  static constexpr std::string_view kNoScope = "names a scope that is not defined";
  static constexpr std::string_view kNoLayer = "names a layer that is not defined";
  static constexpr std::string_view kNoRange = "names a range that is not defined";
  static constexpr std::string_view kTooFar = "reaches beyond its end";
  static constexpr std::string_view kBinTooFar = "reaches beyond its end by the bins of its trace";
  static constexpr std::string_view kTooLong = "holds a time that cannot be";

  static constexpr std::int64_t kFarBack =
      86'400'000'000'000;  // a day: a launch is recorded when it has ended
  // Far beyond any, and sums of them do not overflow.
  static constexpr std::uint64_t kLongest = std::uint64_t{1} << 55;

  static bool below_or_none(std::uint32_t id, std::uint32_t count) {
    return id < count || id == model::kNone;
  }

  static std::string_view next(std::uint32_t id, std::uint32_t& count) {
    if (id != count) return "is out of turn";
    ++count;
    return {};
  }

  std::uint32_t devices_ = 0;
  std::uint32_t classes_ = 0;
  std::uint32_t layers_ = 0;
  std::uint32_t ranges_ = 0;
  std::uint32_t scopes_ = 0;
};

}  // namespace jouleprof::spool
