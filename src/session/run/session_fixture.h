// A session of a test: short pauses, fake meters, a recording in memory.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "session/run/session.h"
#include "session/sampling/recording_sink.h"
#include "session/sampling/sampling_fixture.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::session {

class SessionTest : public testing::Test {
 protected:
  SessionTest() {
    // A shell's background jobs ignore it, and so would a session then.
    std::signal(SIGINT, SIG_DFL);
    options.idle_before = std::chrono::milliseconds{20};
    options.idle_after = std::chrono::milliseconds{20};
    options.process_period = std::chrono::milliseconds{10};
    options.commit_period = std::chrono::milliseconds{10};
    options.snapshot_period = std::chrono::milliseconds{5};
    options.environment = [](const std::string&) { return std::nullopt; };
  }

  SessionResult shell(const std::string& script, Meters meters = {}) {
    options.command = {"/bin/sh", "-c", script};
    return measure(std::move(meters));
  }
  SessionResult measure(Meters meters = {}) {
    auto result = run(options, std::move(meters), &sink);
    EXPECT_TRUE(result) << result.error().message;
    return std::move(*result);
  }
  // Calls `then` once, when the file exists.
  void when_written(const std::string& file, std::function<void()> then) {
    options.on_snapshot = [this, file, then, done = false](const model::Snapshot&) mutable {
      if (done || !std::filesystem::exists(tree / file)) return;
      done = true;
      then();
    };
  }
  std::string path(const std::string& file) const { return (tree / file).string(); }
  const model::Process* process_named(const std::string& name) const {
    for (const auto& p : sink.recording.processes) {
      if (p.name == name) return &p;
    }
    return nullptr;
  }
  std::vector<std::string> warnings(const SessionResult& result) const {
    std::vector<std::string> texts;
    for (const auto& w : result.warnings) texts.push_back(w.text);
    return texts;
  }
  Duration recorded_cpu_time() const {
    std::map<model::ProcessId, Duration> last;
    for (const auto& r : sink.recording.process_readings.processes) {
      last[r.process] = r.cpu_time + r.unseen_children_cpu_time;
    }
    Duration sum{};
    for (const auto& [id, time] : last) sum += time;
    return sum;
  }

  SessionOptions options;
  MemorySink sink;
  TempTree tree;
};

}  // namespace jouleprof::session
