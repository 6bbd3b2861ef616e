// The recordings of a service: one file for each day, bounded in size and age.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "recording/writer.h"
#include "session/sampling/recording_sink.h"

namespace jouleprof::session {

struct DailyOptions {
  std::filesystem::path folder;                       // it is made where it is missing
  std::uint64_t most_bytes = std::uint64_t{4} << 30;  // of all recordings in the folder
  Duration longest = std::chrono::hours{24 * 30};     // from the begin of a recording's day
  std::function<ClockPoint()> now = [] { return ClockPoint::now(); };
  // Called with each error that ends a file, from the thread that writes.
  std::function<void(const Error&)> on_error;
  // Called once, after some time, with the bytes that a day takes at the rate so far.
  std::function<void(double bytes_a_day)> on_rate = {};
};

// Writes "2026-11-23.jprof" for what is read on that day (UTC); "2026-11-23-2.jprof", ... where
// such a file exists, and where one has reached a quarter of the bound. Each begins with the last
// reading of each sensor in the file before, so that no energy between them is lost. Files of
// these names are removed, the oldest first, until the rest fits the bounds; others are left alone.
// A file that cannot be written (a full disk) ends, and after a minute another is tried; one that
// was removed or moved is followed at once: no call but open() fails.
// Thread safety: as Sink's.
class DailyRecordings final : public Sink {
 public:
  // Errors: as recording::Writer::create's; permission_denied for a folder that cannot be made.
  static Result<std::unique_ptr<DailyRecordings>> open(DailyOptions options);

  Result<void> append(const Batch& batch) override;
  Result<void> commit() override;
  Result<void> finish() override;

  // After finish(): another file, for other devices. Errors: as open()'s.
  Result<void> reopen();

  const std::filesystem::path& path() const { return path_; }  // of the file being written

 private:
  explicit DailyRecordings(DailyOptions options) : options_(std::move(options)) {}
  Result<void> begin_file(const ClockPoint& now);
  Result<void> describe(const ClockPoint& now);
  void check(const Result<void>& written);
  void remove_old(const ClockPoint& now) const;
  void note_rate(HostTime now);

  const DailyOptions options_;
  ClockPoint opened_;  // when the service began
  std::filesystem::path path_;
  std::string day_;
  std::unique_ptr<recording::Writer> writer_;  // nullptr: the last file failed
  HostTime retry_{};
  bool has_rate_ = false;
  std::filesystem::path rated_path_;
  HostTime rated_from_{};
  std::uint64_t rated_bytes_ = 0;  // of the file then; 0: not yet
  // What a new file begins with:
  model::RunInfo run_;
  std::vector<model::Domain> domains_;
  std::vector<model::Sensor> sensors_;
  std::unordered_map<model::SensorId, model::CounterReading> counters_;
  std::unordered_map<model::SensorId, model::PowerReading> powers_;
};

}  // namespace jouleprof::session
