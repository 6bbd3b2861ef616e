#include "apps/cli/control/sweep_work.h"

#include <memory>
#include <optional>

#include "apps/cli/bench/bench_workload.h"
#include "apps/cli/measuring.h"
#include "apps/cli/terminal/output.h"
#include "meters/all/open_meters.h"
#include "session/run/session.h"
#include "session/sweep/output_tap.h"

namespace jouleprof::cli {
namespace {

constexpr Duration kSettle = std::chrono::milliseconds{500};

meters::MeterOptions meter_options(const model::SweepPlan& plan) {
  meters::MeterOptions options;
  options.demand.shortest_window = std::chrono::seconds{1};
  // Clocks show a steady state, and limits the time of a change.
  if (!plan.bench.empty() || plan.observe) {
    options.demand.state_period = std::chrono::milliseconds{250};
  }
  return options;
}

void read_bench(const BenchResult& bench, SweepWorkDone& done) {
  const auto document = bench.read();
  if (!document || document->cases.empty()) {
    done.failure = document ? "the workload measured nothing" : document.error().message;
    return;
  }
  const auto& measured = document->cases.front();
  done.report.bench = session::BenchWork{measured.window, measured.iterations};
  if (!measured.steady) done.remark = "not steady: " + measured.not_steady;
}

}  // namespace

void SweepWork::remove_recording() const {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(recording_.string() + suffix, ignored);
  }
}

Result<SweepWorkDone> SweepWork::run(const model::SweepPlan& plan) {
  auto meters = meters::open_meters(meter_options(plan));
  if (!meters) return forward_error(meters);
  remove_recording();
  auto destination = Destination::file(recording_, true);
  if (!destination) return forward_error(destination);
  session::SessionOptions options;
  options.command = plan.command;
  std::optional<BenchResult> bench;
  if (!plan.bench.empty()) {
    const auto file = bench.emplace().path();
    if (!file) return forward_error(file);
    options.command.emplace_back("--result");
    options.command.push_back(file->string());
  }
  options.tool_version = JOULEPROF_VERSION;
  options.devices = plan.devices;
  options.idle_before = kSettle;
  options.idle_after = Duration{};
  std::unique_ptr<session::OutputTap> tap;
  if (!bench) {
    auto opened = session::OutputTap::open(plan.throughput);
    if (!opened) return forward_error(opened);
    tap = std::move(*opened);
  }
  auto result = session::run(options, std::move(meters->meters), &destination->sink());
  SweepWorkDone done;
  if (!result) return forward_error(result);
  if (tap) {
    auto printed = tap->finish();
    if (!printed) return forward_error(printed);
    done.report.printed = std::move(printed->numbers);
    done.report.losses = std::move(printed->losses);
  }
  if (result->start_error) return tl::unexpected(*result->start_error);
  done.exit_status = result->exit_status.value_or(kNotStarted);
  if (bench) read_bench(*bench, done);
  return done;
}

}  // namespace jouleprof::cli
