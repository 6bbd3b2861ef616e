// The tool's side of the spool: takes what traced processes wrote, while they write it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/activity_sink.h"
#include "recording/spool/trace_check.h"

namespace jouleprof::spool {

struct SpoolProcess {
  pid_t pid = 0;  // as the process sees itself
  HostTime start{};
  std::string program;
  Duration bin{};
};

// Where the reader's findings go.
class SpoolConsumer {
 public:
  virtual ~SpoolConsumer() = default;
  // A process that is new. Gets all that it tells, in order and checked (trace_check.h); lives as
  // long as the reader.
  virtual model::ActivitySink& process(const SpoolProcess& process) = 0;
  // Something could not be taken, in words that name the file. Each once.
  virtual void warn(std::string text) = 0;
};

// Reads a folder again and again, each time what is new. A frame that is not all there yet is left
// for the next time. A file is finished when its process has begun another or said that it ends. In
// a damaged file the sound frames before the damage count, and the rest of it is left out.
//
// Thread safety: none.
class SpoolReader {
 public:
  explicit SpoolReader(std::filesystem::path folder);
  ~SpoolReader();
  SpoolReader(SpoolReader&&) noexcept;
  SpoolReader& operator=(SpoolReader&&) noexcept;

  // Before the first poll(): what a process with the pid and position of `so_far` told up to there
  // is known; the rest of it goes to `sink`, which must outlive the reader.
  void resume(const model::Trace& so_far, model::ActivitySink& sink);

  // Takes what is new. Returns whether anything was. Errors: as the folder's.
  Result<bool> poll(SpoolConsumer& consumer);

  // How far this process was taken; none for one that has told nothing yet.
  std::optional<model::SpoolPosition> position(const SpoolProcess& process) const;

  // Removes the finished files that were taken to their end.
  void remove_taken();

  // Processes that have not said that they end.
  std::vector<pid_t> open_processes() const;
  // Whether bytes were seen that could not be taken: damage, or a process cut off within a frame.
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

}  // namespace jouleprof::spool
