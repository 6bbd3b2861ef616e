#include "apps/inject/trace.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/process/threads.h"
#include "base/text.h"
#include "spans/cupti/aggregate/activity_aggregator.h"
#include "spans/cupti/cupti_api.h"
#include "spans/procs/procfs.h"
#include "spans/rocm/rocm_work.h"
#include "spans/scopes/scopes.h"

namespace jouleprof::inject {
namespace {

constexpr Duration kPatience = std::chrono::seconds{10};
constexpr Duration kPatienceAtExit = std::chrono::seconds{5};

struct State {
  std::mutex mutex;  // guards what follows
  cupti::Tracer* tracer = nullptr;
  std::vector<cupti::Tracer*> all;  // that ever were: the driver may call them at any time
  bool kernels_wanted = false;
  std::vector<cupti::Tracer::Source> sources;
  bool at_exit = false;
};

// Threads launch work while the process exits.
State& state() {
  static NeverDestroyed<State> only;
  // Lock order: ours, then that of the scopes. pthread_atfork runs the handler registered last
  // first.
  static const int watches =
      (scopes::send_all_again(),
       pthread_atfork([] { state().mutex.lock(); }, [] { state().mutex.unlock(); },
                      [] {
                        // The parent's tracer has no thread here, and its spool is the parent's.
                        state().tracer = nullptr;
                        layers::set_active(false);
                        cupti::Tracer::forget_all();
                        state().mutex.unlock();
                      }));
  (void)watches;
  return *only;
}

bool wants(std::string_view what, std::string_view word) {
  for (const std::string_view part : split(what, ',')) {
    if (part == word) return true;
  }
  return false;
}

// Not under the state's lock: CUPTI may initialise CUDA, which calls start_kernels(), or wait for a
// thread that does.
void start_cupti(cupti::Tracer& tracer, bool whole_graphs) {
  replay::start();
  tracer.start_cupti(
      [] {
        const auto loaded = cupti::loaded_libraries();
        auto api = cupti::load_cupti(cupti::cupti_candidates(loaded));
        if (api) api->copies = !cupti::has_command_buffers(loaded, environment("XLA_FLAGS"));
        return api;
      },
      whole_graphs);
}

// Tracers are never destroyed, so that it may be used when the lock is gone.
cupti::Tracer* any_tracer() noexcept {
  try {
    State& s = state();
    const std::scoped_lock lock(s.mutex);
    return s.tracer;
  } catch (...) {  // no memory for a state: there is none
    return nullptr;
  }
}

// The tracer, if it wants kernels.
cupti::Tracer* kernel_tracer() {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  return s.kernels_wanted ? s.tracer : nullptr;
}

// Between rocprofiler_configure() and the end of the library, which calls both functions once.
struct Rocprofiler {
  rocm::RocprofilerApi api;
  rocm::RocmWork* work = nullptr;  // never destroyed
};

int initialize_rocprofiler(void*, void* data) noexcept {
  try {
    auto& rocprofiler = *static_cast<Rocprofiler*>(data);
    cupti::Tracer* const tracer = kernel_tracer();
    if (tracer == nullptr) return -1;
    const auto make = [&](model::ActivitySink& sink, std::function<void()> wake) {
      rocm::RocmOptions options;
      options.events = tracer->events();
      if (const char* root = std::getenv("JOULEPROF_ROOT")) options.root = root;
      auto work = rocm::RocmWork::start(rocprofiler.api, options, sink, std::move(wake));
      if (work) rocprofiler.work = static_cast<rocm::RocmWork*>(work->get());
      return work;
    };
    return tracer->start_work(make) ? 0 : -1;
  } catch (...) {  // no memory: no kernels
    return -1;
  }
}

void finalize_rocprofiler(void* data) noexcept {
  if (rocm::RocmWork* const work = static_cast<Rocprofiler*>(data)->work) work->close();
}

std::string& requests_in() {
  static NeverDestroyed<std::string> only;
  return *only;
}

bool make_tracer(const char* folder, const char* what) {
  State& s = state();
  const std::scoped_lock lock(s.mutex);
  if (s.tracer != nullptr) return true;
  if (folder == nullptr || *folder == '\0') return false;
  const std::string_view wanted = what != nullptr ? what : "kernels";
  cupti::Tracer::Options options;
  options.events = wants(wanted, "events");
  model::TracedProcess header;
  header.pid = getpid();
  header.program = program_invocation_short_name;
  header.rank = spans::rank_of();
  auto writer = spool::SpoolWriter::open(folder, header);
  if (!writer) return false;
  s.tracer = new cupti::Tracer(std::make_unique<SpoolSink>(std::move(*writer)), options);
  s.all.push_back(s.tracer);
  s.kernels_wanted = wants(wanted, "kernels");
  if (wants(wanted, "layers")) {
    s.tracer->add_source([](model::ActivitySink& sink) { layers::send(sink, HostClock::now()); });
    layers::set_active(true);
    layers::take_cpu_time(!s.kernels_wanted);
  } else {
    s.tracer->add_source(&layers::send_replays);
  }
  replay::begin_trace(wants(wanted, "replay"));
  if (replay::wanted()) {
    requests_in() = folder;
    s.tracer->add_source([](model::ActivitySink&) { replay::look_for_request(requests_in()); });
  }
  for (const auto source : s.sources) s.tracer->add_source(source);
  if (!s.at_exit) {
    s.at_exit = true;
    std::atexit([] { end(true); });
  }
  return true;
}

}  // namespace

bool begin(const char* folder, const char* what) noexcept {
  try {
    if (!make_tracer(folder, what)) return false;
    const char* injected = std::getenv("CUDA_INJECTION64_PATH");
    switch (cupti::driver_state()) {
      case cupti::DriverState::kAbsent:
        break;
      case cupti::DriverState::kLoaded:
        // CUDA calls InitializeInjection() when it starts, where the variable names this library.
        if (injected == nullptr || *injected == '\0') start_kernels();
        break;
      case cupti::DriverState::kInitialised:
        if (cupti::Tracer* tracer = kernel_tracer()) start_cupti(*tracer, false);
        break;
    }
    return true;
  } catch (...) {  // no memory: no trace
    return false;
  }
}

void start_kernels() noexcept {
  try {
    if (cupti::Tracer* tracer = kernel_tracer()) start_cupti(*tracer, true);
  } catch (...) {  // no memory: no kernels
  }
}

abi::rocprofiler::ConfigureResult* configure_rocprofiler(std::uint32_t version) noexcept {
  try {
    cupti::Tracer* const tracer = kernel_tracer();
    if (tracer == nullptr) return nullptr;
    auto api = rocm::RocprofilerApi::loaded(version);
    if (!api) {
      tracer->start_work([&](auto&, auto) -> Result<std::unique_ptr<cupti::WorkSource>> {
        return forward_error(api);
      });
      return nullptr;
    }
    static NeverDestroyed<Rocprofiler> rocprofiler;
    rocprofiler->api = *api;
    static abi::rocprofiler::ConfigureResult result{sizeof result, initialize_rocprofiler,
                                                    finalize_rocprofiler, &*rocprofiler};
    return &result;
  } catch (...) {  // no memory: no kernels
    return nullptr;
  }
}

void begin_reruns() noexcept {
  if (cupti::Tracer* tracer = any_tracer()) tracer->begin_reruns();
}

void end_reruns() noexcept {
  if (cupti::Tracer* tracer = any_tracer()) tracer->end_reruns();
}

void set_risk(bool active) noexcept {
  static thread_local cupti::Tracer* held = nullptr;  // the program may begin another trace
  if (active) held = any_tracer();
  if (held != nullptr) active ? held->begin_risk() : held->end_risk();
}

void flush() noexcept {
  if (cupti::Tracer* tracer = any_tracer()) tracer->flush(kPatience);
}

void end(bool exiting) noexcept {
  cupti::Tracer* tracer = any_tracer();
  if (tracer == nullptr) return;
  {
    State& s = state();
    const std::scoped_lock lock(s.mutex);
    if (std::exchange(s.tracer, nullptr) == nullptr) return;
  }
  layers::set_active(false);
  tracer->end(exiting ? kPatienceAtExit : kPatience, exiting);
}

void add_source(cupti::Tracer::Source source) noexcept {
  try {
    State& s = state();
    const std::scoped_lock lock(s.mutex);
    s.sources.push_back(source);
    if (s.tracer != nullptr) s.tracer->add_source(source);
  } catch (...) {  // no memory: the source is not called
  }
}

}  // namespace jouleprof::inject
