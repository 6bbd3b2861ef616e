#include "recording/left_over.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "recording/spool/folder_lock.h"
#include "recording/spool/spool_reader.h"
#include "recording/spool/trace_sink.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;

// One sink a trace: those of the recording, then those that are new.
class Rest final : public spool::SpoolConsumer {
 public:
  explicit Rest(std::vector<model::Trace>&& traces) {
    for (auto& trace : traces) sinks.emplace_back().trace = std::move(trace);
  }
  model::ActivitySink& process(const spool::SpoolProcess& process) override {
    model::Trace& trace = sinks.emplace_back().trace;
    static_cast<model::TracedProcess&>(trace) = process;
    return sinks.back();
  }
  void warn(std::string text) override { warnings.push_back(std::move(text)); }

  std::uint64_t activities() const {
    std::uint64_t sum = 0;
    for (const auto& sink : sinks) sum += sink.trace.status.activities;
    return sum;
  }

  std::deque<spool::TraceSink> sinks;  // which stay where they are
  std::vector<std::string> warnings;
};

fs::path find_folder(const fs::path& file, const fs::path& noted) {
  std::error_code err;
  if (fs::is_directory(noted, err)) return noted;
  const fs::path overlapped = fs::absolute(file, err).parent_path() / noted.filename();
  return fs::is_directory(overlapped, err) ? overlapped : fs::path();
}

HostTime last_word(const model::Recording& recording) {
  HostTime last = recording.run.work_begin.value_or(HostTime{});
  for (const auto& point : recording.clock_points) last = std::max(last, point.host);
  return last;
}

}  // namespace

void take_left_over(const fs::path& file, model::Recording& recording) {
  if (recording.run.trace_folder.empty()) return;
  const auto warn = [&recording, at = last_word(recording)](std::string text) {
    recording.warnings.push_back({at, std::move(text)});
  };
  const fs::path folder = find_folder(file, recording.run.trace_folder);
  if (folder.empty()) {
    return warn(fmt::format(
        "the end of the trace is missing: the folder {} does not exist; put it back, or "
        "next to the recording",
        recording.run.trace_folder));
  }
  const auto lock = spool::FolderLock::of_visitor(folder);
  if (lock.busy()) return;
  Rest rest(std::move(recording.traces));
  const std::uint64_t before = rest.activities();
  spool::SpoolReader reader(folder);
  for (auto& sink : rest.sinks) reader.resume(model::Trace(sink.trace), sink);
  const auto polled = reader.poll(rest);
  recording.traces.clear();
  for (auto& sink : rest.sinks) recording.traces.push_back(std::move(sink.trace));
  for (auto& text : rest.warnings) warn(std::move(text));
  if (!polled) {
    warn(fmt::format("the end of the trace cannot be read: {}", polled.error().message));
  } else if (*polled) {
    warn(
        fmt::format("the tool was cut off before the programs ended: their later records ({} "
                    "launches) are read from {}; keep that folder next to the recording",
                    rest.activities() - before, folder.string()));
  }
}

}  // namespace jouleprof::recording
