// Where a session puts what it records: what a recording::Writer does, as an interface.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/recording.h"

namespace jouleprof::session {

// The contract of each call is recording::Writer's. Called from one thread at a time, not always
// the same one.
class Sink {
 public:
  virtual ~Sink() = default;

  virtual Result<void> set_run(const model::RunInfo& run) = 0;
  virtual Result<void> add(const ClockPoint& point) = 0;
  virtual Result<void> add(const model::Domain& domain) = 0;
  virtual Result<void> add(const model::Sensor& sensor) = 0;
  virtual Result<void> add(const model::Process& process) = 0;
  virtual Result<void> add(const model::IdleSpan& span) = 0;
  virtual Result<void> add(const model::Warning& warning) = 0;
  virtual Result<void> set_overhead(const model::Overhead& overhead) = 0;
  virtual Result<void> append(const model::Readings& readings) = 0;
  virtual Result<void> append(const model::ProcessReadings& readings) = 0;
  virtual Result<void> append(const std::vector<model::Window>& windows) = 0;
  virtual Result<void> append(std::uint32_t trace, const model::Trace& more) = 0;
  virtual Result<void> commit() = 0;
  virtual Result<void> finish() = 0;
  // Why the file takes no more, where the sink goes on without it.
  virtual std::optional<Error> trouble() const { return std::nullopt; }
};

// A Writer (or anything with its functions) as a Sink. The writer must outlive it.
template <typename Writer>
class WriterSink final : public Sink {
 public:
  explicit WriterSink(Writer& writer) : writer_(writer) {}

  Result<void> set_run(const model::RunInfo& run) override { return writer_.set_run(run); }
  Result<void> add(const ClockPoint& point) override { return writer_.add(point); }
  Result<void> add(const model::Domain& domain) override { return writer_.add(domain); }
  Result<void> add(const model::Sensor& sensor) override { return writer_.add(sensor); }
  Result<void> add(const model::Process& process) override { return writer_.add(process); }
  Result<void> add(const model::IdleSpan& span) override { return writer_.add(span); }
  Result<void> add(const model::Warning& warning) override { return writer_.add(warning); }
  Result<void> set_overhead(const model::Overhead& overhead) override {
    return writer_.set_overhead(overhead);
  }
  Result<void> append(const model::Readings& readings) override { return writer_.append(readings); }
  Result<void> append(const model::ProcessReadings& readings) override {
    return writer_.append(readings);
  }
  Result<void> append(const std::vector<model::Window>& windows) override {
    return writer_.append(windows);
  }
  Result<void> append(std::uint32_t trace, const model::Trace& more) override {
    return writer_.append(trace, more);
  }
  Result<void> commit() override { return writer_.commit(); }
  Result<void> finish() override { return writer_.finish(); }

 private:
  Writer& writer_;
};

}  // namespace jouleprof::session
