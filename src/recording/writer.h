// Writes a *.jprof file while things happen. FORMAT.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/recording.h"
#include "recording/batch.h"
#include "recording/claim.h"

namespace jouleprof::recording {

struct WriterOptions {
  bool overwrite = false;  // replace an existing file
};

// What takes a recording while it is made. The contract of each call is Writer's. Called from one
// thread at a time, not always the same one.
class Sink {
 public:
  virtual ~Sink() = default;

  virtual Result<void> append(const Batch& batch) = 0;
  virtual Result<void> commit() = 0;
  virtual Result<void> finish() = 0;
  // Why the file takes no more, where the sink goes on without it.
  virtual std::optional<Error> trouble() const { return std::nullopt; }
};

// One recording being written. Whatever was appended is in the file at the latest one commit()
// later: killing the process at any moment loses only what came after the last commit, and the file
// stays a valid recording that says it is incomplete.
//
// After an error (disk full, ...) the file keeps what it had, and later calls return the same error
// at once, so a caller may go on measuring and report it at the end.
//
// While a Writer is open, its process must not open and close the file by other means than
// read_recording(): closing any descriptor of a file drops all locks that the process holds on it.
//
// Nothing waits for the disk: what is committed survives this process, not the machine. A commit
// costs about 0.05 ms of CPU time. A call may wait up to two seconds where another program writes
// the file.
//
// Thread safety: none.
class Writer final : public Sink {
 public:
  // Creates the file. One that is overwritten stays until the new one is whole. Errors:
  // invalid_argument when it exists and may not be overwritten, or another process writes it;
  // not_found or permission_denied for its folder, unavailable when the disk is full.
  static Result<Writer> create(const std::filesystem::path& path,
                               const WriterOptions& options = {});
  // Creates the file under a name that was claimed before, and is until the file is closed.
  static Result<Writer> create(Claim claim);

  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  // Commits what it can; leaves the recording incomplete. One failed or not yet closed may leave
  // "-wal" and "-shm" files, which belong to it.
  ~Writer() override;

  // Describe. An id that was already described is replaced. A sensor's domain must come first.
  Result<void> set_run(const model::RunInfo& run);
  Result<void> add(const ClockPoint& point);
  Result<void> add(const model::Domain& domain);
  Result<void> add(const model::Sensor& sensor);
  Result<void> add(const model::Process& process);
  Result<void> add(const model::IdleSpan& span);
  Result<void> add(const model::Warning& warning);
  Result<void> add(const model::ImportedWindow& window);
  Result<void> set_overhead(const model::Overhead& overhead);

  // Append. What a reading refers to must have been described before. A power beyond a gigawatt or
  // a gauge that is no finite number is kept as a ReadFailure: no such thing was measured.
  Result<void> append(const model::Readings& readings);
  Result<void> append(const model::ProcessReadings& readings);
  // In any order. One that ends before it begins is left out; a name's first 256 bytes are kept.
  Result<void> append(const std::vector<model::Window>& windows);

  // More of trace number `trace` (Recording::traces): its lists are added to those that are there,
  // its pid, program, bin and status replace them. Numbers count up from zero. What a trace names
  // must be in an earlier part or in this one, as spool::TraceCheck has it; else reading it fails.
  Result<void> append(std::uint32_t trace, const model::Trace& more);

  // What earlier runs know of the traces' kernels. What a file may not hold is left out.
  Result<void> append(const std::vector<model::RememberedKernel>& kernels);

  // All of a batch, each part as above.
  Result<void> append(const Batch& batch) override;

  // Makes everything so far readable by others and safe from the death of this process.
  Result<void> commit() override;

  // Marks the recording complete, leaves a single file without side files, and closes it. Waits up
  // to two seconds for other programs that have it open; then unavailable: the recording is
  // complete and readable, and its side files stay. Nothing can be written afterwards.
  Result<void> finish() override;

  // Closes the file, but leaves the recording incomplete.
  Result<void> close();

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Adds to a closed recording of this version what earlier runs know of its traces' kernels. Errors:
// of SQLite; then the recording is as before.
Result<void> add_remembered(const std::filesystem::path& path,
                            const std::vector<model::RememberedKernel>& kernels);

// Removes a recording that is of no use, with its side files.
void remove_recording(const std::filesystem::path& path);

// Adds all of a recording to one being written.
Result<void> append_recording(Writer& writer, const model::Recording& recording);

// Writes a whole recording at once (imports), complete or not as its `run` says. It is in its place
// when all is written: on error an old file stays. Errors as Writer's.
Result<void> write_recording(const std::filesystem::path& path, const model::Recording& recording,
                             const WriterOptions& options = {});

}  // namespace jouleprof::recording
