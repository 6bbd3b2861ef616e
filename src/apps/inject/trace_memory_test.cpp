// A traced program in which memory runs out for the trace alone: at each of a thousand allocations
// of ours. Its status and its output must be what they are without a trace.
#include "tests/support/sanitizers.h"

// The thread sanitizer has an allocator of its own, which leaves no place for this one.
#ifndef JOULEPROF_THREAD_SANITIZER
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/inject/trace.h"
#include "recording/spool/spool_reader.h"
#include "spans/cupti/cupti_fixture.h"
#include "spans/cupti/tracer.h"
#include "spans/scopes/range_stack.h"
#include "spans/scopes/scopes.h"

namespace {

// Of the program and the driver, whose allocations succeed. The tracer's thread begins as ours.
thread_local bool is_theirs = false;
std::atomic<bool> is_counting = false;
std::atomic<long> allocations = 0;
std::atomic<long> first_failure = LONG_MAX;
std::atomic<bool> goes_on_failing = false;

void* allocate(std::size_t size, std::size_t alignment) {
  if (is_counting && !is_theirs) {
    const long n = allocations.fetch_add(1) + 1;
    if (n == first_failure || (goes_on_failing && n > first_failure)) throw std::bad_alloc();
  }
  size = (size + alignment - 1) / alignment * alignment;
  if (void* made = std::aligned_alloc(alignment, size)) return made;
  throw std::bad_alloc();
}

struct Theirs {
  explicit Theirs(bool now = true) { is_theirs = now; }
  Theirs(const Theirs&) = delete;
  Theirs& operator=(const Theirs&) = delete;
  ~Theirs() { is_theirs = before; }
  const bool before = is_theirs;
};

}  // namespace

void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<std::size_t>(alignment));
}
// Of std::stable_sort, which does without.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return std::malloc(size); }
void operator delete(void* at, const std::nothrow_t&) noexcept { std::free(at); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete(void* at, std::size_t) noexcept { std::free(at); }
void operator delete(void* at, std::align_val_t) noexcept { std::free(at); }
void operator delete(void* at, std::size_t, std::align_val_t) noexcept { std::free(at); }

namespace jouleprof::inject {
namespace {

namespace fs = std::filesystem;
using cupti::FakeCupti;

constexpr int kStatus = 3;
constexpr std::string_view kOutput = "loss 0.500000 after 30 steps\n";
constexpr Duration kPatience = std::chrono::seconds{10};

// The driver's own allocations succeed.
cupti::CuptiApi driver() {
  static const cupti::CuptiApi* real = nullptr;
  real = new cupti::CuptiApi(FakeCupti::api());
  cupti::CuptiApi api = *real;
  api.enable = [](auto... a) { return (Theirs(), real->enable(a...)); };
  api.disable = [](auto... a) { return (Theirs(), real->disable(a...)); };
  api.flush_all = [](auto... a) { return (Theirs(), real->flush_all(a...)); };
  api.subscribe = [](auto... a) { return (Theirs(), real->subscribe(a...)); };
  api.enable_callback = [](auto... a) { return (Theirs(), real->enable_callback(a...)); };
  return api;
}

class Program {
 public:
  // Returns its exit status.
  int run(const fs::path& folder, int output) {
    is_theirs = true;
    api_ = driver();
    is_counting = true;
    begin_trace(folder);
    double loss = 16;
    for (std::uint32_t step = 0; step != 30; ++step) {
      train(step);
      if (step < 5) loss /= 2;
      if (step == 15) flush_trace();
    }
    end_trace();
    is_counting = false;
    const std::string text = std::string("loss ") + std::to_string(loss) + " after 30 steps\n";
    return ::write(output, text.data(), text.size()) > 0 ? kStatus : 1;
  }

 private:
  // As begin() does, with a driver of the test's.
  void begin_trace(const fs::path& folder) {
    const Theirs ours(false);
    ::jouleprof::inject::begin(folder.c_str(), "layers");
    try {
      model::TracedProcess header;
      header.pid = ::getpid();
      auto writer = spool::SpoolWriter::open(folder, header);
      if (!writer) return;
      cupti::Tracer::Options options;
      options.period = std::chrono::milliseconds{1};
      tracer_ = new cupti::Tracer(std::make_unique<SpoolSink>(std::move(*writer)), options);
      tracer_->start_cupti([this]() -> Result<cupti::CuptiApi> { return api_; }, true);
    } catch (...) {  // no trace
    }
  }

  void train(std::uint32_t step) {
    const std::string name =
        "a step with a name that needs memory of its own " + std::to_string(step);
    {
      const Theirs ours(false);
      scopes::push_range(nullptr, name);
    }
    if (driver_.callback != nullptr) {
      const Theirs ours(false);
      driver_.launch(abi::cupti::DriverCall::kLaunchKernel, step + 1);
    }
    abi::cupti::ActivityKernel k{};
    k.kind = abi::cupti::ActivityKind::kConcurrentKernel;
    k.start = begin_ + step * 1'000'000;
    k.end = k.start + 400'000;
    k.name = kernels_[step % kernels_.size()].c_str();
    k.grid[0] = k.grid[1] = k.grid[2] = 1;
    k.block[0] = k.block[1] = k.block[2] = 1;
    k.correlation_id = step + 1;
    driver_.record(k, FakeCupti::size_of(k.kind));
    if (driver_.requested != nullptr && step % 3 == 0) driver_.deliver();
    const Theirs ours(false);
    scopes::pop_range(nullptr);
  }

  void flush_trace() {
    const Theirs ours(false);
    ::jouleprof::inject::flush();
    if (tracer_ != nullptr) tracer_->flush(kPatience);
  }
  void end_trace() {
    const Theirs ours(false);
    ::jouleprof::inject::end(false);
    if (tracer_ != nullptr) tracer_->end(kPatience, false);
  }

  FakeCupti driver_;
  cupti::CuptiApi api_;
  cupti::Tracer* tracer_ = nullptr;  // never destroyed, as in a program
  const std::vector<std::string> kernels_{
      "gemm", "a kernel whose name is longer than a short string", "softmax"};
  const std::uint64_t begin_ =
      static_cast<std::uint64_t>(RealClock::now().time_since_epoch().count()) - 1'000'000'000;
};

struct Ended {
  int status = 0;
  std::string output;
  long allocations = 0;
};

// The program in a process of its own, with the `first`-th allocation of ours failing.
Ended run_program(const fs::path& folder, long first, bool for_ever) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    first_failure = first;
    goes_on_failing = for_ever;
    const int status = (new Program)->run(folder, ends[1]);
    const long made = allocations;
    const ssize_t written = ::write(ends[1], &made, sizeof made);
    ::_exit(written == sizeof made ? status : 1);
  }
  ::close(ends[1]);
  Ended ended;
  char buffer[256];
  for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
    ended.output.append(buffer, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  ::waitpid(child, &ended.status, 0);
  if (ended.output.size() > sizeof ended.allocations) {
    const std::size_t text = ended.output.size() - sizeof ended.allocations;
    std::memcpy(&ended.allocations, ended.output.data() + text, sizeof ended.allocations);
    ended.output.resize(text);
  }
  return ended;
}

struct Problems : spool::SpoolConsumer {
  std::vector<std::unique_ptr<spool::TraceSink>> sinks;
  model::ActivitySink& process(const spool::SpoolProcess&) override {
    return *sinks.emplace_back(std::make_unique<spool::TraceSink>());
  }
  void warn(std::string) override {}
};

bool says_that_memory_ran_out(const fs::path& folder) {
  Problems all;
  spool::SpoolReader reader(folder);
  EXPECT_TRUE(reader.poll(all));
  for (const auto& sink : all.sinks) {
    if (sink->trace.status.problem.find("memory ran out") != std::string::npos) return true;
  }
  return false;
}

fs::path empty_folder() {
  const fs::path folder = fs::path(::testing::TempDir()) / "inject_memory";
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

TEST(TraceMemory, TheProgramIsUnchangedWhereverItRunsOut) {
  const Ended whole = run_program(empty_folder(), LONG_MAX, false);
  ASSERT_TRUE(WIFEXITED(whole.status) && WEXITSTATUS(whole.status) == kStatus);
  ASSERT_EQ(whole.output, kOutput);
  ASSERT_GT(whole.allocations, 100);
  constexpr int kPoints = 1000;
  int hits = 0;
  int said = 0;
  for (int i = 0; i != kPoints; ++i) {
    const bool for_ever = i % 2 == 1;
    const long first = 1 + whole.allocations * (i / 2) / (kPoints / 2);
    const auto folder = empty_folder();
    const Ended ended = run_program(folder, first, for_ever);
    hits += ended.allocations >= first;
    ASSERT_TRUE(WIFEXITED(ended.status)) << "signal " << WTERMSIG(ended.status) << " at " << first
                                         << (for_ever ? " and all that follow" : "");
    ASSERT_EQ(WEXITSTATUS(ended.status), kStatus) << first;
    ASSERT_EQ(ended.output, kOutput) << first;
    said += says_that_memory_ran_out(folder);
  }
  EXPECT_GT(hits, kPoints * 9 / 10);
  EXPECT_GT(said, 0);
  RecordProperty("said", said);
}

}  // namespace
}  // namespace jouleprof::inject

#endif
