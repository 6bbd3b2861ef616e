// The parts of a simulated machine with an AMD GPU:
//
//   jouleprof_hip_program board FILE IDLE BEGIN END KERNEL:WATTS:PERIOD:DUTY:PHASE ...
//
// writes the board's gpu_metrics table (1.4, of an MI300X) into FILE each millisecond until its
// standard input ends: the energy of IDLE watts, and of each kernel's from BEGIN to END (of the
// wall clock).
//
//   jouleprof_hip_program run BEGIN END KERNEL:WATTS:PERIOD:DUTY:PHASE ...
//
// is the program that runs those kernels, in launches of a millisecond, each in a ROCTX range of
// its name. It exits with 77 where it starts after BEGIN. It starts as a ROCm runtime does with
// rocprofiler-register: it loads ROCPROFILER_REGISTER_LIBRARY where that or ROCP_TOOL_LIBRARIES is
// set, and aborts where it cannot. Prints how often each was launched. A kernel runs while the wall
// clock less PHASE is within the first DUTY of a PERIOD (seconds).
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/text.h"

namespace {

using jouleprof::parse_number;
using jouleprof::split;

double wall() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

struct Kernel {
  std::string name;
  double watts = 0;
  double period = 1;
  double duty = 1;
  double phase = 0;

  // Seconds that it ran before t, from some fixed time on.
  double before(double t) const {
    const double periods = std::floor((t - phase) / period);
    const double within = t - phase - periods * period;
    return periods * duty * period + std::min(within, duty * period);
  }
};

std::vector<Kernel> kernels_of(char** words, int count) {
  std::vector<Kernel> all;
  for (int i = 0; i < count; ++i) {
    const auto parts = split(words[i], ':');
    if (parts.size() != 5) std::exit(2);
    const auto number = [&](std::size_t n) { return parse_number(parts[n]).value_or(0); };
    all.push_back({std::string(parts[0]), number(1), number(2), number(3), number(4)});
  }
  return all;
}

int be_board(const char* file, double idle, double begin, double end,
             const std::vector<Kernel>& kernels) {
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return 2;
  const double first = wall();
  std::array<unsigned char, 282> table{};
  const auto put = [&](std::size_t at, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i != width; ++i) {
      table.at(at + i) = static_cast<unsigned char>(value >> 8 * i);
    }
  };
  table.fill(0xff);
  put(0, table.size(), 2);
  put(2, 1, 1);
  put(3, 4, 1);
  double last_energy = 0;
  double last = first;
  while (true) {
    const double now = wall();
    double joules = 1000 + idle * (now - first);
    const double until = std::clamp(now, begin, end);
    for (const auto& k : kernels) joules += k.watts * (k.before(until) - k.before(begin));
    const double watts = now > last ? (joules - last_energy) / (now - last) : idle;
    put(10, static_cast<std::uint64_t>(std::clamp(watts, 0.0, 2000.0)), 2);
    put(24, static_cast<std::uint64_t>(joules * 65536), 8);
    put(32, static_cast<std::uint64_t>((now - first) * 1e9), 8);
    if (::pwrite(fd, table.data(), table.size(), 0) < 0) return 2;
    last = now;
    last_energy = joules;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (::poll(&input, 1, 1) > 0) return 0;
  }
}

struct Runtime {
  void* library = nullptr;
  template <typename F>
  F* function(const char* name) const {
    return library != nullptr ? reinterpret_cast<F*>(::dlsym(library, name)) : nullptr;
  }
};

// As rocprofiler-register does.
Runtime start_runtime() {
  Runtime runtime;
  const char* named = std::getenv("ROCPROFILER_REGISTER_LIBRARY");
  if (named == nullptr && std::getenv("ROCP_TOOL_LIBRARIES") == nullptr) return runtime;
  runtime.library =
      ::dlopen(named != nullptr ? named : "librocprofiler-sdk.so", RTLD_GLOBAL | RTLD_LAZY);
  auto* const start =
      runtime.function<int(const char*, std::uint64_t, std::uint64_t, void**, std::uint64_t)>(
          "rocprofiler_set_api_table");
  if (start == nullptr) std::abort();
  start("hip", 70000, 0, nullptr, 1);
  return runtime;
}

int run(double begin, double end, const std::vector<Kernel>& kernels) {
  if (wall() > begin) return 77;  // what is missing would be no fault of the tracer
  const Runtime runtime = start_runtime();
  auto* const launch = runtime.function<void(const char*, std::uint64_t, std::uint64_t, unsigned)>(
      "jouleprof_rocm_sim_launch");
  auto* const range = runtime.function<void(const char*)>("jouleprof_rocm_sim_range");
  auto* const stamp = runtime.function<std::uint64_t()>("jouleprof_rocm_sim_stamp");
  std::map<std::string, long> launches;
  double t = begin;
  while (t + 1e-3 <= end) {
    const double now = std::min(wall(), end);
    const double stamp_minus_wall =
        stamp != nullptr ? static_cast<double>(stamp() / 1000) / 1e6 - wall() : 0;
    for (; t + 1e-3 <= now; t += 1e-3) {
      for (const auto& k : kernels) {
        // The part of this millisecond: at the begin or the end of it, or all.
        const double busy = k.before(t + 1e-3) - k.before(t);
        if (busy < 1e-6) continue;
        const bool at_end = k.before(t + 1e-6) - k.before(t) < 0.5e-6;
        const double from = at_end ? t + 1e-3 - busy : t;
        ++launches[k.name];
        if (launch == nullptr) continue;
        range((k.name + "_range").c_str());
        const auto of = [&](double at) {
          return static_cast<std::uint64_t>((at + stamp_minus_wall) * 1e9);
        };
        launch(k.name.c_str(), of(from), of(from + busy),
               static_cast<unsigned>(launches.size()) % 2);
        range(nullptr);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  for (const auto& [name, count] : launches) std::printf("%s %ld\n", name.c_str(), count);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i) { return parse_number(argv[i]).value_or(0); };
  if (argc > 6 && std::strcmp(argv[1], "board") == 0) {
    return be_board(argv[2], number(3), number(4), number(5), kernels_of(argv + 6, argc - 6));
  }
  if (argc > 4 && std::strcmp(argv[1], "run") == 0) {
    return run(number(2), number(3), kernels_of(argv + 4, argc - 4));
  }
  return 2;
}
