// A tracer over a fabricated CUPTI: for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "spans/cupti/aggregate/aggregate_fixture.h"
#include "spans/cupti/cupti_fixture.h"
#include "spans/cupti/tracer.h"

namespace jouleprof::cupti {

// The records of the tracer, readable while it runs.
struct SharedSink : model::ActivitySink {
  explicit SharedSink(MemorySink& into) : all(into) {}
  MemorySink& all;
  void define(std::uint32_t id, const model::TracedDevice& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::KernelClass& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::Layer& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::Range& v) override { all.define(id, v); }
  void define(std::uint32_t id, const model::Scope& v) override { all.define(id, v); }
  void add(const model::ActivityChunk& v) override { all.add(v); }
  void status(const model::TraceStatus& v) override { all.status(v); }
};

inline std::uint64_t real_now() {
  return static_cast<std::uint64_t>(RealClock::now().time_since_epoch().count());
}

class TracerTest : public ::testing::Test {
 protected:
  FakeCupti cupti;
  MemorySink sink;
  Tracer* tracer = nullptr;  // never destroyed, as in a program
  std::uint64_t begin = real_now() - 1'000'000'000;

  void start(Tracer::Options options = {}) {
    options.period = std::chrono::seconds{100};  // only at a flush
    make(options);
    tracer->start_cupti([] { return Result<CuptiApi>(FakeCupti::api()); }, true);
  }
  void make(Tracer::Options options) {
    tracer = new Tracer(std::make_unique<SharedSink>(sink), options);
    // Never destroyed, and no leak.
    static auto& all = *new std::vector<Tracer*>;
    all.push_back(tracer);
  }
  void TearDown() override {
    if (tracer == nullptr) return;
    EXPECT_TRUE(tracer->end(std::chrono::seconds{10}, false));
  }

  abi::cupti::ActivityKernel kernel(const char* name, std::uint64_t start, std::uint64_t end,
                                    std::uint32_t correlation) const {
    abi::cupti::ActivityKernel k{};
    k.kind = abi::cupti::ActivityKind::kConcurrentKernel;
    k.start = begin + start;
    k.end = begin + end;
    k.name = name;
    k.grid[0] = 4;
    k.grid[1] = k.grid[2] = 1;
    k.block[0] = 128;
    k.block[1] = k.block[2] = 1;
    k.stream_id = 7;
    k.correlation_id = correlation;
    return k;
  }
  template <typename Record>
  void add(const Record& record) {
    cupti.record(record, FakeCupti::size_of(record.kind));
  }
};

}  // namespace jouleprof::cupti
