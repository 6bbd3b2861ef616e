// The spool as a tracer's sink: ends the trace in order, and adds the problems of layers and of the
// spool to the status.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "recording/spool/spool_writer.h"
#include "spans/layers/layers.h"

namespace jouleprof::inject {

class SpoolSink final : public model::ActivitySink {
 public:
  explicit SpoolSink(std::unique_ptr<spool::SpoolWriter> writer) : writer_(std::move(writer)) {}
  ~SpoolSink() override { writer_->close(); }

  void define(std::uint32_t id, const model::TracedDevice& v) override { writer_->define(id, v); }
  void define(std::uint32_t id, const model::KernelClass& v) override { writer_->define(id, v); }
  void define(std::uint32_t id, const model::Layer& v) override { writer_->define(id, v); }
  void define(std::uint32_t id, const model::Range& v) override { writer_->define(id, v); }
  void define(std::uint32_t id, const model::Scope& v) override { writer_->define(id, v); }
  void add(const model::ActivityChunk& chunk) override { writer_->add(chunk); }
  void status(const model::TraceStatus& status) override {
    model::TraceStatus reported = status;
    for (const std::string& more : {layers::problem(), writer_->problem()}) {
      if (more.empty()) continue;
      if (!reported.problem.empty()) reported.problem += "; ";
      reported.problem += more;
    }
    writer_->status(reported);
  }

 private:
  std::unique_ptr<spool::SpoolWriter> writer_;
};

}  // namespace jouleprof::inject
