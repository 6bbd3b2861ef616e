// The tool's end of the spool: takes the records of traced processes while they write them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/process/descriptor.h"
#include "base/result.h"
#include "model/activity/activity.h"
#include "recording/spool/trace_check.h"

namespace jouleprof::spool {

// With the pid in the process's own namespace.
struct SpoolProcess : model::TracedProcess {
  HostTime start{};
};

// Receives what the reader finds.
class SpoolConsumer {
 public:
  virtual ~SpoolConsumer() = default;
  // For a new process: a sink that gets all of its records, in order and checked (trace_check.h).
  // It lives as long as the reader.
  virtual model::ActivitySink& process(const SpoolProcess& process) = 0;
  // Why something could not be taken, with the name of the file. Each once.
  virtual void warn(std::string text) = 0;
};

// Each poll takes the frames that are new in a folder. A frame that is not complete yet is left for
// the next poll. A file is finished when its process has begun another or has ended its trace. Of a
// damaged file the frames before the damage are taken, and the rest is left out.
//
// Thread safety: none.
class SpoolReader {
 public:
  explicit SpoolReader(std::filesystem::path folder);
  ~SpoolReader();
  SpoolReader(SpoolReader&&) noexcept;
  SpoolReader& operator=(SpoolReader&&) noexcept;

  // Before the first poll(): the process with the pid and position of `so_far` is not read up to
  // that position; its later records go to `sink`, which must outlive the reader.
  void resume(const model::Trace& so_far, model::ActivitySink& sink);

  // Takes what is new. Returns whether anything was. Errors: as the folder's.
  Result<bool> poll(SpoolConsumer& consumer);

  // How far this process was taken; absent where nothing was.
  std::optional<model::SpoolPosition> position(const SpoolProcess& process) const;

  // Removes the finished files that were taken to their end.
  void remove_taken();

  // Processes that have not ended their trace.
  std::vector<pid_t> open_processes() const;
  // Whether bytes could not be taken: after damage, or of a process cut off within a frame.
  bool left_over() const;
  bool damaged() const;

 private:
  struct Process;
  struct File;
  using Key = std::pair<std::int64_t, pid_t>;  // start first: in the order in which they began

  Result<void> find_files(SpoolConsumer& consumer);
  Result<void> find_skipped();
  bool read_process(Process& process, SpoolConsumer& consumer);

  std::filesystem::path folder_;
  std::map<Key, std::unique_ptr<Process>> processes_;
  std::set<std::string> passed_over_;  // names that are no spool's
  std::string buffer_;
};

// A sink that collects the records in a trace.
class TraceSink final : public model::ActivitySink {
 public:
  model::Trace trace;

  void define(std::uint32_t, const model::TracedDevice& d) override { trace.devices.push_back(d); }
  void define(std::uint32_t, const model::KernelClass& c) override { trace.classes.push_back(c); }
  void define(std::uint32_t, const model::Layer& l) override { trace.layers.push_back(l); }
  void define(std::uint32_t, const model::Range& r) override { trace.ranges.push_back(r); }
  void define(std::uint32_t, const model::Scope& s) override { trace.scopes.push_back(s); }
  void add(const model::ActivityChunk& c) override { trace.chunks.push_back(c); }
  void status(const model::TraceStatus& s) override { trace.status = s; }
};

// Shows whether a tool reads the spools of a folder.
// The tool holds it while it reads a folder; the kernel releases it when the tool dies. Where
// folders cannot be locked, no folder is busy.
//
// Thread safety: none.
class FolderLock {
 public:
  // The lock of the process that takes the records and removes the files.
  static FolderLock of_reader(const std::filesystem::path& folder);
  // The lock of a process that changes nothing. busy(): another process has the lock of a reader.
  static FolderLock of_visitor(const std::filesystem::path& folder);

  bool busy() const { return busy_; }

 private:
  static FolderLock take(const std::filesystem::path& folder, int how);

  Descriptor fd_;
  bool busy_ = false;
};

}  // namespace jouleprof::spool
