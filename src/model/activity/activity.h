// What ran on a GPU, and for which part of the program: the records of a traced process. Their
// fields are listed once more in record_fields.h, from which all files and tables are made.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/process/process.h"

namespace jouleprof::model {

enum class Phase : std::uint8_t { kNone = 0, kForward = 1, kBackward = 2, kOptimizer = 3 };

// "None", wherever an index into one of Trace's lists may be missing.
inline constexpr std::uint32_t kNone = 0xFFFFFFFF;

enum class ActivityKind : std::uint8_t {
  kKernel = 0,
  kMemcpy = 1,
  kMemset = 2,
  kGraph = 3,  // a launch of a CUDA graph whose nodes were not observed
};

// A kernel signature. Its launches are assumed to draw the same power: launches of one kernel with
// one grid and block, or copies of one kind and about one size.
struct KernelClass {
  ActivityKind kind = ActivityKind::kKernel;
  std::string name;                     // of a kernel: mangled
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
  std::string shapes;            // of its inputs at its first call: "[64, 197, 768] bfloat16"
  std::uint64_t parameters = 0;  // without those of its children
  std::optional<double> macs;    // multiply-accumulates of one call, where known
  bool compiled = false;         // a region of torch.compile: layers within are not separated

  bool operator==(const Layer&) const = default;
};

// A named range (NVTX) and the one around it.
struct Range {
  std::string name;
  std::uint32_t parent = kNone;

  bool operator==(const Range&) const = default;
};

// How the names of ranges begin that XLA opens around its programs, as spans/scopes shortens them.
inline constexpr std::string_view kXlaModule = "XlaModule ";

// On whose behalf something was launched.
struct Scope {
  std::uint32_t layer = kNone;
  std::uint32_t range = kNone;
  Phase phase = Phase::kNone;

  bool operator==(const Scope&) const = default;
};

struct TracedDevice {
  std::uint32_t ordinal = 0;  // of CUDA, in that process
  std::string uuid;           // "GPU-..." or "MIG-..."; empty when not known
  std::string name;

  bool operator==(const TracedDevice&) const = default;
};

enum class ChunkKind : std::uint8_t {
  kBins = 1,      // BinEntry: activity of a device in bins of Trace::bin
  kScopes = 2,    // ScopeEntry: activity of a device by scope, over the interval of the chunk
  kEvents = 3,    // EventEntry: every launch on a device
  kLayers = 4,    // LayerEntry: calls of layers on the host, over the interval of the chunk
  kWideBins = 5,  // as kBins, in bins of kWide times that: of programs that run for long
  // KernelRerun: one kernel that was run in isolation over the interval of the chunk, launch after
  // launch; without an entry, the preparation for that. No work of the program.
  kReplay = 6,
  kPhases = 7,  // PhaseEntry: time of the host in phases, outside of layers
  // The part of the time in kBins, kWideBins and kScopes during which other launches ran; the same
  // entries, with 0 launches.
  kOverlappedBins = 8,
  kWideOverlappedBins = 9,
  kOverlappedScopes = 10,
  kCollectives =
      11,  // EventEntry: launches of collectives' kernels on a device (model/activity/collective.h)
  kServing = 12,  // steps and requests of an inference server (model/activity/serving.h)
};

// How much longer wide bins are.
inline constexpr int kWide = 8;

// No chunk of kBins, and none of kScopes of that time, is longer, unless one bin is: what ran in a
// layer is known by slices of it. (Earlier recordings: 1 s.)
inline constexpr Duration kScopeInterval = std::chrono::milliseconds{500};

// Entries of one kind, encoded (activity_codec.h).
struct ActivityChunk {
  ChunkKind kind{};
  std::uint32_t device = kNone;  // index into Trace::devices; none: of the host
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

// Whether chunks of the kind describe the process and no device.
inline bool is_of_host(ChunkKind kind) {
  return kind == ChunkKind::kLayers || kind == ChunkKind::kReplay || kind == ChunkKind::kPhases ||
         kind == ChunkKind::kServing;
}

// The length of the bins of a kind of chunks in a trace whose Trace::bin is `bin`.
inline Duration bin_of(ChunkKind kind, Duration bin) {
  const bool wide = kind == ChunkKind::kWideBins || kind == ChunkKind::kWideOverlappedBins;
  return wide ? kWide * bin : bin;
}

// Counts of the tracer since the process began.
struct TraceStatus {
  std::uint64_t activities = 0;      // records received: kernels, copies, sets, graph launches
  std::uint64_t dropped = 0;         // records that the driver or the tracer had no room for
  std::uint64_t late = 0;            // received too late to share time with those that they overlap
  std::uint64_t graph_launches = 0;  // of CUDA graphs, received as one record ...
  std::uint64_t graph_expanded = 0;  // ... and distributed over the nodes of an earlier launch
  std::uint64_t memsets_left_out = 0;  // small ones, not recorded on purpose
  std::string problem;                 // why records are missing; empty: none is known to be
  bool ended = false;  // the process ended its trace in order: its end is not missing

  bool operator==(const TraceStatus&) const = default;
};

// How much of a process's spool (recording/spool) is in the recording.
struct SpoolPosition {
  HostTime start{};        // of its tracing: with its pid this names its files
  std::uint32_t file = 0;  // files before this one are in the recording in full
  std::uint64_t bytes = 0;

  bool operator==(const SpoolPosition&) const = default;
};

struct TracedProcess {
  pid_t pid = 0;
  std::string program;  // the process's name
  Duration bin = std::chrono::milliseconds{1};
  Rank rank;

  bool operator==(const TracedProcess&) const = default;
};

// All records of one process. Identifiers are indices into these lists.
struct Trace : TracedProcess {
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

// Receives the records of a traced process.
// A record is defined before the first chunk that names its identifier; identifiers count up from
// zero. Calls come from one thread at a time.
class ActivitySink {
 public:
  virtual ~ActivitySink() = default;
  virtual void define(std::uint32_t id, const TracedDevice& device) = 0;
  virtual void define(std::uint32_t id, const KernelClass& kernel_class) = 0;
  virtual void define(std::uint32_t id, const Layer& layer) = 0;
  virtual void define(std::uint32_t id, const Range& range) = 0;
  virtual void define(std::uint32_t id, const Scope& scope) = 0;
  virtual void add(const ActivityChunk& chunk) = 0;
  virtual void status(const TraceStatus& status) = 0;  // replaces the status before
};

// The power of kernels that earlier runs resolved.
// What one run found for one kernel signature on one board, from its own readings alone.
struct RememberedKernel {
  std::string board;  // UUID of the GPU
  KernelClass kernel;
  Duration launch{};  // mean time of a launch: one signature may do different work
  Power power;        // above the held power, while no other launch runs
  Power error;        // half of its 95 % interval in that run, without the calibration error
  std::optional<double> sm_clock_hertz;  // mean while kernels ran; absent: not known
  RealTime observed{};                   // when the run began

  bool operator==(const RememberedKernel&) const = default;
};

}  // namespace jouleprof::model
