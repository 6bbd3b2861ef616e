// Processes that are killed before they sent the records of their last launches.
#include <gmock/gmock.h>

#include "analysis/analysed_test.h"
#include "analysis/synthetic_run_test.h"
#include "model/activity/activity_codec.h"

namespace jouleprof::analysis {
namespace {

using namespace simulated;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kKilled = 20;  // the second process; its last records are of a second before

template <class Entry>
std::string only(const model::ActivityChunk& chunk, std::uint32_t kernel) {
  model::ActivityDecoder decoder(chunk.bytes);
  model::ActivityEncoder encoder;
  for (Entry e; decoder.next(e);) {
    bool keep = e.kernel_class == kernel;
    if constexpr (std::is_same_v<Entry, model::BinEntry>) {
      const HostTime begin = chunk.begin + e.bin * std::chrono::milliseconds{1};
      keep = keep && (kernel == 0 || begin < at(kKilled - 1));
    }
    if (keep) encoder.add(e);
  }
  return encoder.take();
}

// Kernel 0 of one process, and kernel 1 of another one, in turn; work ends as the second is killed.
struct Killed {
  Killed() {
    SyntheticRun run;
    run.kernels = {{250, 20e-6, 1e-6}, {500, 20e-6, 1e-6}};
    run.seconds = kKilled - 1;
    made = synthesise(run);
    auto& recording = made.recording;
    const model::Trace both = recording.traces[0];
    recording.traces.push_back(both);
    for (std::uint32_t t = 0; t < 2; ++t) {
      auto& trace = recording.traces[t];
      trace.pid = static_cast<pid_t>(7 + t);
      trace.program = t == 0 ? "lives" : "killed";
      trace.status.ended = t == 0;
      trace.position = model::SpoolPosition{at(0), 0, 0};
      std::erase_if(trace.chunks,
                    [&](const auto& chunk) { return t == 1 && chunk.begin >= at(kKilled - 1); });
      for (auto& chunk : trace.chunks) {
        if (t == 1) chunk.end = std::min(chunk.end, at(kKilled - 1));
        if (model::is_bins(chunk.kind)) chunk.bytes = only<model::BinEntry>(chunk, t);
        if (chunk.kind == model::ChunkKind::kScopes) {
          chunk.bytes = only<model::ScopeEntry>(chunk, t);
        }
      }
      model::Process& process = recording.processes.emplace_back();
      process.id = model::ProcessId{t};
      process.pid = trace.pid;
      process.end = t == 0 ? at(kKilled + 2) : at(kKilled);
      process.in_tree = true;
    }
  }
  Synthesised made;
};

const model::ActivityRow& row_of(const model::ActivityProfile& p, const std::string& name) {
  for (const auto& row : p.by_kernel) {
    if (row.name == name) return row;
  }
  ADD_FAILURE() << name;
  return p.by_kernel.front();
}

TEST(LostEnd, WhatAKilledProcessRanLastIsNamedAndNotSpreadOverOthers) {
  Killed killed;
  const auto p = only_activity(killed.made.recording);
  expect_conserved(p);
  const auto& lives = row_of(p, "kernel 0");
  EXPECT_NEAR(lives.energy->energy.joules(), killed.made.joules[0], 0.02 * killed.made.joules[0]);
  // About a twentieth of what the second one ran has no record.
  const double lost = killed.made.joules[1] - row_of(p, "kernel 1").energy->energy.joules();
  EXPECT_GT(lost, 0.02 * killed.made.joules[1]);
  EXPECT_NEAR(p.lost.joules(), lost, 0.25 * lost + 2);
  EXPECT_NEAR(p.unattributed.joules(), lost, 0.25 * lost + 5);
  EXPECT_THAT(p.warnings, Contains(HasSubstr("killed (pid 8) ended without closing its trace")));
  EXPECT_THAT(p.warnings, Contains(HasSubstr("its last 1.00 s is not known")));
  EXPECT_TRUE(p.resolved.empty());
}

TEST(LostEnd, AProcessThatLivesOrClosedItsTraceLostNothing) {
  for (const bool lives : {true, false}) {
    Killed killed;
    auto& recording = killed.made.recording;
    if (lives) recording.processes[1].end.reset();
    if (!lives) recording.traces[1].status.ended = true;
    const auto p = only_activity(recording);
    expect_conserved(p);
    EXPECT_EQ(p.lost, Energy{});
    EXPECT_THAT(p.warnings, Not(Contains(HasSubstr("without closing its trace"))));
  }
}

TEST(LostEnd, OfAPartOnlyWhatLiesInIt) {
  Killed killed;
  auto& run = killed.made.recording.run;
  run.work_begin = at(0);
  run.work_end = at(kKilled + 1);
  const auto p = only_activity(killed.made.recording, {{}, std::chrono::seconds{15}});
  expect_conserved(p);
  EXPECT_EQ(p.lost, Energy{});
  EXPECT_THAT(p.warnings, Not(Contains(HasSubstr("without closing its trace"))));
}

}  // namespace
}  // namespace jouleprof::analysis
