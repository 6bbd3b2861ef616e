// The entries of an ActivityChunk as bytes: unsigned LEB128 numbers, one entry after the other.
//
//   kBins    bin - previous entry's bin, kernel class, busy nanoseconds, launches
//   kScopes  kernel class, scope + 1 (0: none), launches, busy nanoseconds
//   kEvents, kCollectives
//            start - previous entry's start (zigzag, nanoseconds; first: from the chunk's begin),
//            duration nanoseconds, kernel class, scope + 1 (0: none), stream
//   kLayers  layer, phase, calls, wall nanoseconds, CPU nanoseconds
//   kReplay  launches, clock in kHz
//   kPhases  phase, times, wall nanoseconds, CPU nanoseconds
//
// Wide bins as kBins; the overlapped kinds as those that they are a part of.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/activity/activity.h"

namespace jouleprof::model {

// Activity of one class in one bin: bin i is [begin + i * Trace::bin, begin + (i + 1) *
// Trace::bin). Where n launches run at once, each is busy for 1/n of that time: a bin's sum never
// exceeds the bin.
struct BinEntry {
  std::uint32_t bin = 0;  // never falls within a chunk
  std::uint32_t kernel_class = 0;
  std::uint64_t busy_nanoseconds = 0;
  std::uint64_t launches = 0;  // that began in this bin

  bool operator==(const BinEntry&) const = default;
};

// Busy as in BinEntry.
struct ScopeEntry {
  std::uint32_t kernel_class = 0;
  std::uint32_t scope = 0;
  std::uint64_t launches = 0;
  std::uint64_t busy_nanoseconds = 0;

  bool operator==(const ScopeEntry&) const = default;
};

// One launch, from its true begin to its true end.
struct EventEntry {
  std::int64_t start_nanoseconds = 0;  // since the chunk's begin
  std::uint64_t duration_nanoseconds = 0;
  std::uint32_t kernel_class = 0;
  std::uint32_t scope = kNone;
  std::uint32_t stream = 0;

  bool operator==(const EventEntry&) const = default;
};

// Time in a layer's own code on the host, without the layers that it calls.
struct LayerEntry {
  std::uint32_t layer = 0;
  Phase phase = Phase::kForward;
  std::uint64_t calls = 0;
  std::uint64_t wall_nanoseconds = 0;
  // CPU time of the process, all threads together, in calls of this layer from outside of all
  // layers. 0: not measured.
  std::uint64_t cpu_nanoseconds = 0;

  bool operator==(const LayerEntry&) const = default;
};

// A kernel's loop, in whatever layers the program launches it.
struct KernelRerun {
  std::uint64_t launches = 0;         // of the program, for which it stands; 0: not known
  std::uint64_t clock_kilohertz = 0;  // the mean SM clock; 0: not known

  bool operator==(const KernelRerun&) const = default;
};

// Time in backward passes or optimizers' steps on the host, without calls of layers in them. For
// the forward phase: how often layers were called from outside of all others, and no time.
struct PhaseEntry {
  Phase phase = Phase::kBackward;
  std::uint64_t times = 0;
  std::uint64_t wall_nanoseconds = 0;
  std::uint64_t cpu_nanoseconds = 0;  // of the process, all threads together

  bool operator==(const PhaseEntry&) const = default;
};

class ActivityEncoder {
 public:
  void add(const BinEntry& entry);  // entry.bin not below the last one's
  void add(const ScopeEntry& entry);
  void add(const EventEntry& entry);
  void add(const LayerEntry& entry);
  void add(const KernelRerun& entry);
  void add(const PhaseEntry& entry);

  bool empty() const { return bytes_.empty(); }
  std::size_t size() const { return bytes_.size(); }
  // The bytes so far; starts anew.
  std::string take();

 private:
  std::string bytes_;
  std::uint32_t bin_ = 0;
  std::int64_t start_ = 0;
};

// Reads entries of the one kind that the bytes hold. next() is false at the end of the bytes and at
// damage; after damage ok() is false.
class ActivityDecoder {
 public:
  explicit ActivityDecoder(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool next(BinEntry& entry);
  bool next(ScopeEntry& entry);
  bool next(EventEntry& entry);
  bool next(LayerEntry& entry);
  bool next(KernelRerun& entry);
  bool next(PhaseEntry& entry);
  bool ok() const { return ok_; }

 private:
  bool number(std::uint64_t& value);
  bool long_number(std::uint64_t& value);
  bool number(std::uint64_t highest, std::uint64_t& value);
  bool damaged();
  bool index(std::uint32_t& value);
  bool phase(Phase& value);
  bool scope(std::uint32_t& value);

  const char* at_;
  const char* end_;
  bool ok_ = true;
  std::uint32_t bin_ = 0;
  std::int64_t start_ = 0;
};

}  // namespace jouleprof::model
