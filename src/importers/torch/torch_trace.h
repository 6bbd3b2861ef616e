// Reads a trace that torch.profiler wrote (Kineto's Chrome JSON).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/gzip/gzip.h"
#include "base/result.h"
#include "base/text.h"
#include "jouleprof/units.h"
#include "model/activity/activity.h"
#include "model/activity/profiled_trace.h"
#include "model/recording.h"

namespace jouleprof::importers {

// One event of a trace that torch.profiler wrote.
struct TorchEvent {
  enum class Kind {
    kOther,
    kWork,    // of the GPU: a kernel, copy or set
    kLaunch,  // a call of CUDA's runtime or driver, which may have launched work
    kRange,   // on the CPU: an operator, a Python function or module, the user's own
  };

  Kind kind = Kind::kOther;
  Duration ts{};  // since the file's base time
  Duration duration{};
  std::string_view category;
  std::string_view name;  // as written: a JSON string with its quotes
  std::string_view pid;   // as written
  std::string_view tid;
  std::string_view args;  // as written; empty when there are none
  std::optional<std::int64_t> device;
  std::optional<std::int64_t> stream;
  std::optional<std::int64_t> correlation;
  std::string_view grid;  // as written
  std::string_view block;
  std::uint64_t bytes = 0;
};

// What ran, of a kWork event.
model::KernelClass class_of(const TorchEvent& event);

// Converts a file's times to host time; fast for neighbouring times.
class TorchClock {
 public:
  TorchClock(RealTime base, const ClockMap& clocks) : base_(base), clocks_(&clocks) {}
  RealTime real(Duration ts) const { return base_ + ts; }
  HostTime host(Duration ts);

 private:
  RealTime base_;
  const ClockMap* clocks_;
  std::int64_t tenth_ = -1;  // of a second, for which `offset_` holds
  Duration offset_{};
};

class TorchTrace {
 public:
  // Reads the file once. `power` is the recording of the same time: its clock points map the file's
  // wall time to host time, and its visible GPUs are the file's, in order. Memory: about 100 bytes
  // a kernel, independent of the file's other events. Errors: as GzipReader; corrupt when it is no
  // trace; invalid_argument when it was annotated before; unavailable when the two have no time in
  // common, or the file's time is unknown.
  static Result<TorchTrace> read(const std::filesystem::path& path, const model::Recording& power);

  const model::ProfiledTrace& profiled() const { return profiled_; }

  // Reads the file again and passes its pieces, in order, to `take`, until that returns false. One
  // piece is in memory at a time. Errors: as GzipReader; corrupt when the file changed since
  // read().
  Result<void> for_each_piece(const std::function<bool(const model::TracePiece&)>& take) const;

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view s) const { return std::hash<std::string_view>{}(s); }
  };
  template <typename Value>
  using Names = std::unordered_map<std::string, Value, NameHash, std::equal_to<>>;

  Result<void> scan(std::optional<RealTime> base);
  void take(const TorchEvent& event, TorchClock& clock);
  std::uint32_t class_of_event(const TorchEvent& event);
  std::uint32_t thread_of(const TorchEvent& event);
  void join();
  void bin();
  Result<void> check(const model::Recording& power) const;

  std::optional<std::uint32_t> thread(std::string_view pid, std::string_view tid) const;

  std::filesystem::path path_;
  model::ProfiledTrace profiled_;
  bool annotated_ = false;
  std::vector<model::Domain> gpus_;
  Names<std::uint32_t> classes_;
  Names<std::uint32_t> threads_;
  std::string key_;
};

// Reads a trace in Chrome's JSON format event by event, and returns every byte of it.
//
// simdjson and nlohmann-json need the whole document in memory, and give values without the text
// between them. Traces of training runs hold gigabytes, are often compressed or cut off, and must
// be copied byte for byte; so they are scanned here, and base/json/json.h finds values in
// place. What is given out is JSON: a value that is none is an error, and so is a missing comma. A
// byte order mark is left out. Names that are no UTF-8, and control characters in them, are mended
// (base/text.h): then all readers of JSON take the trace.
//
// Either an object with the member "traceEvents", or an array of events. Compressed with gzip or
// not. Holds one event at a time.
//
// The pieces, one after the other, are the file. Of a file that is cut off (as by Ctrl-C) what
// follows the last whole event, or the last whole member after the events, is left out.
class TraceScanner {
 public:
  enum class Piece {
    kOther,  // anything but an event
    kEvent,  // one event: an object
    kLast,   // no text: after the last event, before what closes the list
    kEnd,    // no text: the end of the file
  };

  // Errors: as GzipReader.
  static Result<TraceScanner> open(const std::filesystem::path& path);

  // Errors: corrupt, when it is no such trace, or no JSON; as GzipReader.
  Result<Piece> next();
  std::string_view text() const { return text_; }  // until the next call of next()

  // The object's other members so far, as written; long ones are not kept.
  const std::map<std::string, std::string, std::less<>>& members() const { return members_; }
  bool saw_events() const { return events_ > 0; }
  // After kEnd: whether the file was cut off, and what closes it as far as it was given out.
  bool cut_off() const { return cut_off_; }
  const Utf8Mender& mender() const { return mender_; }
  std::string closing() const;

 private:
  enum class State { kStart, kMembers, kEvents, kAfter, kDone };

  explicit TraceScanner(GzipReader reader) : reader_(std::move(reader)) {}
  Result<bool> fill();  // more text behind what is there; false at the end
  Result<bool> skip_space();
  Result<std::size_t> value();  // the size of the value at at_; 0: the file ends within it
  Result<Piece> start();
  Result<Piece> member();
  Result<Piece> event();
  Piece give(Piece piece);  // [given_, at_)
  Piece end_here();
  tl::unexpected<Error> no_trace(std::string_view why) const;

  GzipReader reader_;
  Utf8Mender mender_{true};
  std::string read_;  // as it is in the file
  std::string buffer_;
  std::size_t given_ = 0;  // what lies before is given out
  std::size_t at_ = 0;
  bool at_end_ = false;
  std::string_view text_;
  State state_ = State::kStart;
  std::size_t ready_ = 0;  // size of the event at at_, once its separator is given out
  bool reported_last_ = false;
  bool in_object_ = false;
  bool list_open_ = false;
  bool object_open_ = false;
  bool cut_off_ = false;
  std::size_t events_ = 0;
  std::size_t members_seen_ = 0;  // of the object
  std::map<std::string, std::string, std::less<>> members_;
};

}  // namespace jouleprof::importers
