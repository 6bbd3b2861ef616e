#include <filesystem>

#include "recording/sqlite_file.h"
#include "recording/writer.h"

namespace jouleprof::recording {
namespace {

Result<void> write_all(Writer& writer, const model::Recording& recording) {
  auto done = writer.set_run(recording.run);
  const auto add_all = [&](const auto& items) {
    for (const auto& item : items) {
      if (done) done = writer.add(item);
    }
  };
  add_all(recording.clock_points);
  add_all(recording.domains);
  add_all(recording.sensors);
  add_all(recording.idle_spans);
  add_all(recording.processes);
  add_all(recording.warnings);
  add_all(recording.imported_windows);
  if (done && recording.overhead) done = writer.set_overhead(*recording.overhead);
  if (done) done = writer.append(recording.readings);
  if (done) done = writer.append(recording.process_readings);
  if (done) done = writer.append(recording.windows);
  if (done) done = writer.append(recording.remembered);
  std::uint32_t trace = 0;
  for (const auto& whole : recording.traces) {
    if (done) done = writer.append(trace++, whole);
  }
  if (!done) return done;
  return recording.run.complete ? writer.finish() : writer.close();
}

}  // namespace

Result<void> write_recording(const std::filesystem::path& path, const model::Recording& recording,
                             const WriterOptions& options) {
  Result<void> done;
  {
    auto writer = Writer::create(path, options);
    if (!writer) return forward_error(writer);
    done = write_all(*writer, recording);
  }
  if (!done) {
    std::error_code ignored;
    remove_side_files(path);
    std::filesystem::remove(path, ignored);
  }
  return done;
}

}  // namespace jouleprof::recording
