#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "abi/nvml_abi.h"
#include "apps/inject/trace.h"
#include "base/process/dynlib.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "model/activity/activity_codec.h"
#include "spans/cupti/collector.h"
#include "spans/reruns/rerun_runner.h"

namespace jouleprof::inject::replay {
namespace {

using reruns::InPlace;
using reruns::Signature;

// Before and after all loops: the warm board, with what the program holds, at idle.
constexpr Duration kIdle = std::chrono::milliseconds{600};
constexpr Duration kBeyond = std::chrono::milliseconds{400};  // of the last loop, and of restoring
constexpr Duration kPatience = std::chrono::seconds{10};      // of a process that is stuck
constexpr double kMostWaiting = 5;  // seconds, for work that the program left behind
constexpr int kMostLooks = 60;      // of about a second, for a pause

constexpr unsigned long long kGpuIdle = 1;  // nvmlClocksEventReasonGpuIdle

// The SM clock of one GPU, through NVML.
class SmClock {
 public:
  // `uuid`: "GPU-...". Without NVML, or of a MIG instance, it reads 0.
  explicit SmClock(const std::string& uuid);

  // Hertz; 0: not known.
  double hertz() const;
  // The same while the GPU runs something, else 0.
  double busy_hertz() const;

 private:
  DynLib library_;  // stays loaded
  abi::Device device_ = nullptr;
  abi::fn::DeviceGetClockInfo* clock_ = nullptr;
  abi::fn::DeviceGetCurrentClocksEventReasons* reasons_ = nullptr;
};

SmClock::SmClock(const std::string& uuid) {
  auto library = DynLib::open("libnvidia-ml.so.1");
  if (!library) return;
  abi::fn::Init_v2* init = nullptr;
  abi::fn::DeviceGetHandleByUUID* by_uuid = nullptr;
  const bool complete = library->bind(init, "nvmlInit_v2") &&
                        library->bind(by_uuid, "nvmlDeviceGetHandleByUUID") &&
                        library->bind(clock_, "nvmlDeviceGetClockInfo");
  if (!library->bind(reasons_, "nvmlDeviceGetCurrentClocksEventReasons")) {
    library->bind(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  library_ = std::move(*library);
  if (!complete || init() != abi::Return::kSuccess) return;
  if (by_uuid(uuid.c_str(), &device_) != abi::Return::kSuccess) device_ = nullptr;
}

double SmClock::hertz() const {
  unsigned mhz = 0;
  if (device_ == nullptr || clock_(device_, abi::ClockType::kSm, &mhz) != abi::Return::kSuccess) {
    return 0;
  }
  return 1e6 * mhz;
}

double SmClock::busy_hertz() const {
  unsigned long long reasons = 0;
  if (device_ == nullptr || reasons_ == nullptr ||
      reasons_(device_, &reasons) != abi::Return::kSuccess || (reasons & kGpuIdle) != 0) {
    return 0;
  }
  return hertz();
}

struct State {
  reruns::DriverApi driver;
  std::unique_ptr<reruns::LaunchRecorder> recorder;
  pid_t process = 0;

  std::mutex mutex;                                         // guards what follows
  std::unordered_map<std::uint32_t, Signature> signatures;  // of kernels
  std::map<Signature, InPlace> in_place;
  std::map<std::uint32_t, SmClock> clocks;  // of the traced devices
  double clock_sum = 0;  // of the only one, while the program ran kernels: hertz x busy seconds
  double clock_weight = 0;
  std::condition_variable ended_changed;
  bool begun = false;  // in the end, or on request
  bool running = false;
  HostTime until{};            // re-runs that are under way then are stuck
  std::string said;            // of the last re-runs
  int answer = -1;             // as now() returns it
  int pauses = -1;             // looks since a request, -1: there is none
  std::uint64_t launches = 0;  // at the last look
  std::atomic<bool> stop{false};
  std::atomic<bool> stuck{false};
  std::atomic<bool> tallies{false};
  std::atomic<bool> asked{false};  // by the trace
  std::atomic<int> status{0};
};

State& state() {
  static NeverDestroyed<State> only;
  return *only;
}

double asked_seconds() {
  const char* text = std::getenv("JOULEPROF_REPLAY");
  const auto number = text != nullptr ? parse_number(text) : std::nullopt;
  return number && *number > 0 ? *number : 0;
}

constexpr cupti::Collector::Listener kListener{
    [](abi::cupti::DriverCall call, const abi::cupti::CallbackData& data) {
      state().recorder->on_call(call, data);
    },
    [](const abi::cupti::ModuleData& code) { state().recorder->on_unload(code); }};

// Work that the program launched and did not wait for is its own.
bool is_idle(const std::vector<reruns::RecordedKernel>& kernels, const reruns::DriverApi& driver) {
  // Of the default stream, which waits for most others; cuCtxSynchronize() might never return.
  const auto legacy = reinterpret_cast<abi::cuda::Stream>(std::uintptr_t{1});
  const HostTime begin = HostClock::now();
  for (const auto& kernel : kernels) {
    if (driver.set_context(kernel.context) != abi::cuda::kSuccess) return false;
    abi::cuda::Result result = abi::cuda::kSuccess;
    while ((result = driver.query_stream(legacy)) == abi::cuda::kNotReady) {
      if (seconds(HostClock::now() - begin) > kMostWaiting) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    if (result != abi::cuda::kSuccess) return false;
  }
  return true;
}

void announce(const reruns::Plan& plan, double most) {
  if (isatty(STDERR_FILENO) == 0) return;
  double share = 0;
  for (const auto& kernel : plan.kernels) share += kernel.in_place.busy / plan.busy;
  std::fputs(fmt::format("jouleprof: re-runs {} kernels ({:.1f} % of the kernels' time) in "
                         "isolation, for up to {:.0f} s\n",
                         plan.kernels.size(), 100 * share, most)
                 .c_str(),
             stderr);
}

reruns::RerunMarks marks(State& s) {
  reruns::RerunMarks out{[] { layers::replay_prepared(); },
                         [](double clock, double launches) {
                           layers::replayed_kernel({static_cast<std::uint64_t>(launches),
                                                    static_cast<std::uint64_t>(clock / 1e3)});
                         },
                         [&s] { return s.stop.load() || s.recorder->launches_of_others() > 0; },
                         {},
                         0,
                         set_risk};
  const std::scoped_lock lock(s.mutex);
  if (s.clocks.size() != 1) return out;  // which one a kernel's context is on is not known
  out.clock = [clock = &s.clocks.begin()->second] { return clock->hertz(); };
  if (s.clock_weight > 0) out.program_clock = s.clock_sum / s.clock_weight;
  return out;
}

// Ends the time of re-runs, whatever happens in it.
struct Time {
  Time(State& state, bool goes_on) : s(state), layers_active(layers::active()), ends(goes_on) {
    s.recorder->begin_reruns(goes_on);
    layers::begin_replay();
    inject::begin_reruns();
  }
  Time(const Time&) = delete;
  Time& operator=(const Time&) = delete;
  ~Time() {
    layers::replay_prepared();
    if (!ends) return;
    inject::end_reruns();
    s.tallies.store(true);
    if (layers_active) layers::end_replay();
    s.recorder->end_reruns();
  }

  State& s;
  bool layers_active;
  bool ends;
};

// What was not re-run, and why; empty: all was.
std::string rerun(State& s, const Limits& limits) {
  const auto kernels = s.recorder->kernels();
  if (kernels.empty()) return "no launch of a kernel was seen";
  if (!is_idle(kernels, s.driver)) {
    return "no kernel was re-run, because the GPU did not finish the program's work";
  }
  flush();
  reruns::Plan plan;
  {
    const std::scoped_lock lock(s.mutex);
    plan = reruns::plan(kernels, s.in_place, limits.goes_on);
  }
  if (plan.kernels.empty()) {
    const bool any_freed = std::ranges::any_of(
        plan.left_out, [](const auto& one) { return one.why == reruns::kMemoryFreed; });
    return fmt::format("no kernel was re-run: {}{}", reruns::described(plan.left_out),
                       any_freed ? ". Call jouleprof.replay() (jouleprof_replay() in C) before the "
                                   "program frees its memory"
                                 : "");
  }
  s.tallies.store(false);  // the end of Time sets it again
  announce(plan, limits.all);
  // Of the preparation and of what follows the loops, too.
  const HostTime end = HostClock::now() + duration_of(limits.all) - kIdle - kBeyond;
  reruns::RerunOutcome outcome;
  std::string changes;
  {
    const Time time(s, limits.goes_on);
    reruns::RerunRunner runner(s.driver, marks(s));
    changes = runner.save(plan, limits.goes_on);
    if (limits.goes_on && !changes.empty()) {
      return fmt::format(
          "no kernel was re-run, because the memory of the program could not be restored: {}",
          changes);
    }
    std::this_thread::sleep_for(kIdle);
    outcome = runner.run(plan, limits.each, end);
    if (limits.goes_on && !runner.restore_all() && outcome.broken.empty()) {
      outcome.broken = "the memory of the program could not be restored";
    }
    if (!s.stop.load() && outcome.broken.empty() && s.recorder->launches_of_others() == 0) {
      std::this_thread::sleep_for(kIdle);
    }
  }
  {
    const std::scoped_lock lock(s.mutex);
    s.answer = outcome.kernels > 0 ? 0 : -1;
    s.said = fmt::format("{} kernels were re-run, {:.1f} % of the kernels' time", outcome.kernels,
                         100 * outcome.share);
  }
  if (s.recorder->launches_of_others() > 0) {
    layers::add_problem("replay: ended early, because the program launched work meanwhile");
  }
  if (outcome.stuck) s.stuck.store(true);
  if (s.recorder->dropped() > 0) {
    layers::add_problem(
        fmt::format("replay: {} launches were not kept, for lack of room", s.recorder->dropped()));
  }
  if (limits.goes_on && !outcome.broken.empty()) {
    const std::string why = "the program cannot go on as it was: " + outcome.broken;
    layers::add_problem("replay: " + why);
    const std::scoped_lock lock(s.mutex);
    s.answer = -2;
    s.said = why;
  }
  if (!changes.empty()) {
    layers::add_problem(fmt::format("replay: re-runs changed memory of the program: {}", changes));
  }
  if (outcome.left_out.empty()) return {};
  return fmt::format("not re-run in isolation: {}", reruns::described(outcome.left_out));
}

void ended(State& s) {
  {
    const std::scoped_lock lock(s.mutex);
    s.running = false;
  }
  s.ended_changed.notify_all();
}

// Ends a request: in place of the file that made it stands its answer.
void answer(const std::filesystem::path& file, const std::string& said) {
  const auto done = file.string() + ".done";
  if (std::FILE* out = std::fopen((done + "~").c_str(), "w")) {
    std::fputs((said + "\n").c_str(), out);
    std::fclose(out);
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  std::filesystem::rename(done + "~", done, ignored);
}

bool is_python() { return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != nullptr; }

}  // namespace

bool wanted() noexcept {
  try {
    return state().asked.load() || asked_seconds() > 0;
  } catch (...) {
    return false;
  }
}

void begin_trace(bool asked) {
  State& s = state();
  s.asked.store(asked);
  const std::scoped_lock lock(s.mutex);
  if (s.recorder != nullptr) s.recorder->clear();
  s.signatures.clear();
  s.in_place.clear();
  s.clocks.clear();
  s.clock_sum = s.clock_weight = 0;
}

void start() noexcept {
  try {
    State& s = state();
    if (!wanted()) return cupti::Collector::listen(nullptr);
    if (s.recorder == nullptr) {
      if (!reruns::load_driver(s.driver)) return;
      s.recorder = std::make_unique<reruns::LaunchRecorder>(s.driver);
      s.process = getpid();
    }
    s.tallies.store(true);
    cupti::Collector::listen(&kListener);
  } catch (...) {  // no memory: no re-runs
  }
}

void at_exit() noexcept {
  if (state().recorder == nullptr || is_python()) return;
  std::atexit([] {
    if (!begin({asked_seconds()})) return;
    while (!wait(1)) {
    }
    leave_if_stuck(0);
  });
}

void seen(std::uint32_t id, const model::TracedDevice& device) {
  State& s = state();
  if (!s.tallies.load()) return;
  const std::scoped_lock lock(s.mutex);
  s.clocks.try_emplace(id, device.uuid);
}

void seen(std::uint32_t id, const model::KernelClass& kernel) {
  State& s = state();
  if (!s.tallies.load()) return;
  const std::scoped_lock lock(s.mutex);
  if (kernel.kind == model::ActivityKind::kKernel) {
    s.signatures[id] = {kernel.name, kernel.grid, kernel.block};
  } else if (kernel.kind == model::ActivityKind::kMemset) {
    s.signatures[id] = reruns::signature_of_memset(kernel.bytes);
  }
}

void seen(const model::ActivityChunk& chunk) {
  State& s = state();
  if (chunk.kind != model::ChunkKind::kScopes || !s.tallies.load()) return;
  const std::scoped_lock lock(s.mutex);
  double busy = 0;
  model::ActivityDecoder decoder(chunk.bytes);
  for (model::ScopeEntry e; decoder.next(e);) {
    const auto found = s.signatures.find(e.kernel_class);
    if (found == s.signatures.end()) continue;
    InPlace& did = s.in_place[found->second];
    did.busy += 1e-9 * static_cast<double>(e.busy_nanoseconds);
    did.launches += e.launches;
    busy += 1e-9 * static_cast<double>(e.busy_nanoseconds);
  }
  if (s.clocks.size() != 1) return;
  if (const double clock = s.clocks.begin()->second.busy_hertz(); clock > 0) {
    s.clock_sum += busy * clock;
    s.clock_weight += busy;
  }
}

bool begin(const Limits& asked) noexcept {
  State& s = state();
  try {
    if (s.recorder == nullptr || s.process != getpid()) return false;
    Limits limits = asked;
    if (limits.each <= 0) limits.each = asked_seconds();
    {
      const std::scoped_lock lock(s.mutex);
      if (s.running || (s.begun && !limits.goes_on)) return false;
      s.begun = s.running = true;
      s.until = HostClock::now() + duration_of(limits.all + limits.beyond);
      s.answer = -1;
      s.said.clear();
    }
    auto thread = start_thread(
        [&s, limits] {
          const std::string why = rerun(s, limits);
          if (!why.empty()) layers::add_problem("replay: " + why);
          if (!why.empty()) {
            const std::scoped_lock lock(s.mutex);
            s.said += (s.said.empty() ? "" : "; ") + why;
          }
          flush();
          ended(s);
        },
        [&s](const char* why) {
          layers::add_problem(std::string("replay: ended early: ") + why);
          ended(s);
        });
    if (thread) {
      thread->detach();
      return true;
    }
  } catch (...) {  // no memory: no re-runs
  }
  ended(s);
  return false;
}

bool wait(double seconds) noexcept {
  State& s = state();
  std::unique_lock lock(s.mutex);
  if (s.ended_changed.wait_for(lock, std::chrono::duration<double>(seconds),
                               [&] { return !s.running; })) {
    return true;
  }
  if (HostClock::now() < s.until) return false;
  s.answer = -2;
  s.said = "ended early, because a call of CUDA did not return";
  if (!s.stuck.exchange(true)) layers::add_problem("replay: " + s.said);
  return true;
}

int now(const Limits& limits, std::string& said) noexcept {
  State& s = state();
  try {
    Limits on_request = limits;
    on_request.goes_on = true;
    if (!begin(on_request)) {
      said = s.recorder == nullptr ? "no launches were recorded; run the program under `jouleprof "
                                     "run --kernels --replay`"
                                   : "re-runs are under way already";
      return -1;
    }
    while (!wait(1)) {
    }
    const std::scoped_lock lock(s.mutex);
    said = s.said;
    return s.answer;
  } catch (...) {  // no memory
    return -1;
  }
}

void look_for_request(const std::string& folder) noexcept {
  State& s = state();
  if (s.recorder == nullptr || s.process != getpid()) return;
  try {
    const auto file = std::filesystem::path(folder) / fmt::format("replay.{}", getpid());
    const std::uint64_t launches = s.recorder->launches();
    const bool pauses = std::exchange(s.launches, launches) == launches;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
      s.pauses = -1;
      return;
    }
    if (!pauses && ++s.pauses < kMostLooks) return;
    if (!pauses) {
      answer(file, "no kernel was re-run, because the program did not pause for a second");
      return;
    }
    Limits limits;
    limits.goes_on = true;
    if (!begin(limits)) return;
    auto waiting = start_thread(
        [&s, file] {
          while (!wait(1)) {
          }
          const std::scoped_lock lock(s.mutex);
          answer(file, s.said);
        },
        [](const char*) {});
    if (waiting) waiting->detach();
  } catch (...) {  // no memory: no re-runs
  }
}

void stop() noexcept { state().stop.store(true); }

void leave_if_stuck(int status) noexcept {
  State& s = state();
  if (!s.stuck.load()) return;
  s.status.store(status);
  // The first to run of what is left to run when the process exits.
  on_exit([](int final, void*) { state().status.store(final); }, nullptr);
  auto watching = start_thread(
      [&s] {
        std::this_thread::sleep_for(kPatience);
        end(true);
        std::fflush(nullptr);
        _exit(s.status.load());
      },
      [](const char*) {});
  if (watching) watching->detach();
}

}  // namespace jouleprof::inject::replay
