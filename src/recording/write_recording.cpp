#include <filesystem>

#include "base/new_file.h"
#include "recording/sqlite_file.h"
#include "recording/writer.h"

namespace jouleprof::recording {

void remove_recording(const std::filesystem::path& path) {
  std::error_code ignored;
  remove_side_files(path);
  std::filesystem::remove(path, ignored);
}

Result<void> append_recording(Writer& writer, const model::Recording& recording) {
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
  return done;
}

Result<void> write_recording(const std::filesystem::path& path, const model::Recording& recording,
                             const WriterOptions& options) {
  const auto claim = Claim::take(path, options.overwrite);
  if (!claim) return forward_error(claim);
  auto fresh = NewFile::next_to(claim->path());
  if (!fresh) return forward_error(fresh);
  {
    auto writer = Writer::create(fresh->path(), {.overwrite = true});
    if (!writer) {
      remove_side_files(fresh->path());
      return forward_error(writer);
    }
    auto done = append_recording(*writer, recording);
    if (done) done = recording.run.complete ? writer->finish() : writer->close();
    if (!done) {
      writer = tl::unexpected(done.error());  // closes it
      remove_side_files(fresh->path());
      return done;
    }
  }
  remove_side_files(claim->path());
  return fresh->take_place();
}

}  // namespace jouleprof::recording
