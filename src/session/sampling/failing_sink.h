// A sink whose disk becomes full, for tests.
#pragma once

#include <atomic>

#include "session/sampling/sink.h"

namespace jouleprof::session {

class FailingSink final : public Sink {
 public:
  // The commit after so many good ones fails, and everything after it.
  explicit FailingSink(int good_commits) : good_(good_commits) {}
  int commits() const { return commits_; }

  Result<void> set_run(const model::RunInfo&) override { return now(); }
  Result<void> add(const ClockPoint&) override { return now(); }
  Result<void> add(const model::Domain&) override { return now(); }
  Result<void> add(const model::Sensor&) override { return now(); }
  Result<void> add(const model::Process&) override { return now(); }
  Result<void> add(const model::IdleSpan&) override { return now(); }
  Result<void> add(const model::Warning&) override { return now(); }
  Result<void> set_overhead(const model::Overhead&) override { return now(); }
  Result<void> append(const model::Readings&) override { return now(); }
  Result<void> append(const model::ProcessReadings&) override { return now(); }
  Result<void> append(const std::vector<model::Window>&) override { return now(); }
  Result<void> append(std::uint32_t, const model::Trace&) override { return now(); }
  Result<void> commit() override {
    if (commits_ == good_) full_ = true;
    if (!full_) ++commits_;
    return now();
  }
  Result<void> finish() override { return now(); }

 private:
  Result<void> now() const {
    if (full_) return fail(Errc::kUnavailable, "disk full");
    return {};
  }
  int good_;
  std::atomic<int> commits_{0};
  std::atomic<bool> full_{false};
};

}  // namespace jouleprof::session
