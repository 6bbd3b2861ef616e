// What ran on a GPU, and for which part of the program: as a traced process tells it.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"

namespace jouleprof::model {

enum class Phase : std::uint8_t { kNone = 0, kForward = 1, kBackward = 2, kOptimizer = 3 };

// "None", wherever an index into one of Trace's lists may be missing.
inline constexpr std::uint32_t kNone = 0xFFFFFFFF;

enum class ActivityKind : std::uint8_t {
  kKernel = 0,
  kMemcpy = 1,
  kMemset = 2,
  kGraph = 3,  // a launch of a CUDA graph whose nodes were not seen
};

// Launches that are taken to draw the same power: of one kernel in one shape, or copies of one kind
// and about one size.
struct KernelClass {
  ActivityKind kind = ActivityKind::kKernel;
  std::string name;                     // a kernel's as the compiler wrote it: mangled
  std::array<std::uint32_t, 3> grid{};  // zeros: not a kernel, or any shape
  std::array<std::uint32_t, 3> block{};
  std::uint64_t bytes = 0;  // of a copy or set: the power of two at or below its size

  bool operator==(const KernelClass&) const = default;
};

// A module of a model.
struct Layer {
  std::string name;              // "blocks.0.attn.qkv"; the model itself has its type's name
  std::string type;              // "Linear"
  std::uint32_t parent = kNone;  // the layer that holds it
  std::string shapes;            // of its inputs, when first seen: "[64, 197, 768] bfloat16"
  std::uint64_t parameters = 0;  // of its own, children's left out
  std::optional<double> macs;    // multiply-accumulates of one call, where known
  bool compiled = false;         // a region of torch.compile: layers within are not told apart

  bool operator==(const Layer&) const = default;
};

// A named range (NVTX) and the one around it.
struct Range {
  std::string name;
  std::uint32_t parent = kNone;

  bool operator==(const Range&) const = default;
};

// On whose behalf something was launched.
struct Scope {
  std::uint32_t layer = kNone;
  std::uint32_t range = kNone;
  Phase phase = Phase::kNone;

  bool operator==(const Scope&) const = default;
};

struct TracedDevice {
  std::uint32_t ordinal = 0;  // CUDA's, in that process
  std::string uuid;           // "GPU-..." or "MIG-..."; empty when not known
  std::string name;

  bool operator==(const TracedDevice&) const = default;
};

enum class ChunkKind : std::uint8_t {
  kBins = 1,      // BinEntry: a device's activity in bins of Trace::bin
  kScopes = 2,    // ScopeEntry: a device's activity by scope over the chunk's whole span
  kEvents = 3,    // EventEntry: a device's every launch
  kLayers = 4,    // LayerEntry: the host's calls of layers over the chunk's whole span
  kWideBins = 5,  // as kBins, in bins of kWide times that: of programs that run for long
  // LayerEntry: one layer that was run alone over the chunk's whole span, calls after calls, so
  // that its kernels are told apart; without an entry, what was done for that. No work of the
  // program's.
  kReplay = 6,
  kPhases = 7,  // PhaseEntry: the host's time in phases outside of layers
  // Of the time in kBins, kWideBins and kScopes, that in which other launches ran beside; the same
  // entries, their launches 0.
  kOverlappedBins = 8,
  kWideOverlappedBins = 9,
  kOverlappedScopes = 10,
};

// How much longer wide bins are.
inline constexpr int kWide = 8;

// Entries of one kind, encoded (activity_codec.h).
struct ActivityChunk {
  ChunkKind kind{};
  std::uint32_t device = kNone;  // index into Trace::devices; those of the host have none
  HostTime begin{};
  HostTime end{};
  std::string bytes;

  bool operator==(const ActivityChunk&) const = default;
};

inline bool is_bins(ChunkKind kind) {
  return kind == ChunkKind::kBins || kind == ChunkKind::kWideBins;
}

inline bool is_overlapped_bins(ChunkKind kind) {
  return kind == ChunkKind::kOverlappedBins || kind == ChunkKind::kWideOverlappedBins;
}

// Of the process, and of no device.
inline bool is_of_host(ChunkKind kind) {
  return kind == ChunkKind::kLayers || kind == ChunkKind::kReplay || kind == ChunkKind::kPhases;
}

// The length of the bins of a kind of chunks in a trace whose Trace::bin is `bin`.
inline Duration bin_of(ChunkKind kind, Duration bin) {
  const bool wide = kind == ChunkKind::kWideBins || kind == ChunkKind::kWideOverlappedBins;
  return wide ? kWide * bin : bin;
}

// How tracing went. All counts are from the process's start.
struct TraceStatus {
  std::uint64_t activities = 0;      // records taken: kernels, copies, sets, graph launches
  std::uint64_t dropped = 0;         // records that the driver or the tracer had no room for
  std::uint64_t late = 0;            // came too late to share time with those that they overlap
  std::uint64_t graph_launches = 0;  // of CUDA graphs, seen as one record ...
  std::uint64_t graph_expanded = 0;  // ... and spread over the graph's nodes as once seen
  std::string problem;  // why there is nothing, or not everything; empty when all is well
  bool ended = false;   // the process said goodbye: nothing was lost at the end

  bool operator==(const TraceStatus&) const = default;
};

// How far what a process wrote was taken in (recording/spool).
struct SpoolPosition {
  HostTime start{};        // of its tracing: with its pid this names its files
  std::uint32_t file = 0;  // files before this one were taken whole
  std::uint64_t bytes = 0;

  bool operator==(const SpoolPosition&) const = default;
};

// All that one process told. Identifiers are indices into these lists.
struct Trace {
  pid_t pid = 0;
  std::string program;  // the process's name
  Duration bin = std::chrono::milliseconds{1};
  std::vector<TracedDevice> devices;
  std::vector<KernelClass> classes;
  std::vector<Layer> layers;
  std::vector<Range> ranges;
  std::vector<Scope> scopes;
  std::vector<ActivityChunk> chunks;
  TraceStatus status;
  std::optional<SpoolPosition> position;  // none: it did not come from a spool

  bool operator==(const Trace&) const = default;
};

}  // namespace jouleprof::model
