// The traced process's end of the spool: appends records to files that the tool reads.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/activity/activity.h"
#include "recording/spool/frame.h"

namespace jouleprof::spool {

// Writes PID-STARTNS-NNNN.spool in one folder, each file up to `segment_bytes`. Each call appends
// one frame with one write(2). Writing throws nothing and raises no signal. A chunk that cannot be
// written is counted and dropped; definitions and the status are kept in memory (up to 4 MB) and
// written when there is room again.
//
// It runs in the traced program. If the program closes its descriptor, the writer opens the file
// again; if the file or its folder is removed, writing ends for good. A forked child writes nothing
// through an inherited writer; it opens its own.
//
// Thread safety: none, as ActivitySink says.
class SpoolWriter final : public model::ActivitySink {
 public:
  static constexpr std::size_t kSegmentBytes = std::size_t{16} << 20;

  // The process's tracing begins now. Errors, those of the folder: not_found, permission_denied,
  // unavailable.
  static Result<std::unique_ptr<SpoolWriter>> open(const std::filesystem::path& folder,
                                                   const model::TracedProcess& process,
                                                   std::size_t segment_bytes = kSegmentBytes);
  // Leaves the trace open-ended; close() ends it.
  ~SpoolWriter() override;
  SpoolWriter(const SpoolWriter&) = delete;
  SpoolWriter& operator=(const SpoolWriter&) = delete;

  void define(std::uint32_t id, const model::TracedDevice& device) override;
  void define(std::uint32_t id, const model::KernelClass& kernel_class) override;
  void define(std::uint32_t id, const model::Layer& layer) override;
  void define(std::uint32_t id, const model::Range& range) override;
  void define(std::uint32_t id, const model::Scope& scope) override;
  void add(const model::ActivityChunk& chunk) override;
  void status(const model::TraceStatus& status) override;

  // Ends the trace in order. Later calls do nothing.
  void close();

  // Chunks and definitions that could not be written.
  std::uint64_t lost() const { return lost_; }
  // Why writing failed last; empty: it has not failed.
  const std::string& problem() const { return problem_; }

 private:
  SpoolWriter() = default;

  template <class Record>
  void define_as(std::uint32_t id, const Record& record);
  template <class Fill>
  void frame(FrameType type, bool keep, Fill&& fill) noexcept;
  bool write_out(std::string_view bytes);
  bool is_ours(int fd, struct stat& now) const;
  bool begin_segment();
  bool failed(std::string_view what, int err);
  std::filesystem::path segment_path(std::uint32_t segment) const;

  std::filesystem::path folder_;
  pid_t owner_ = 0;
  model::TracedProcess process_;
  HostTime start_{};
  std::size_t segment_bytes_ = kSegmentBytes;

  int fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  std::uint32_t segment_ = 0;
  std::size_t size_ = 0;  // of the segment, whole frames
  bool ended_ = false;

  std::string payload_;
  std::string frame_;
  std::string kept_;  // whole frames that could not be written yet
  std::uint64_t lost_ = 0;
  std::string problem_;
};

}  // namespace jouleprof::spool
