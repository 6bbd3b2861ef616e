// Joules of a region of a C++ program. Build: c++ -std=c++17 windows.cpp -ljouleprof
#include <chrono>
#include <cstdio>
#include <thread>

#include "jouleprof/jouleprof.hpp"

int main() {
  auto monitor = jouleprof::Monitor::open();
  if (!monitor) {
    std::fprintf(stderr, "%s\n", monitor.error().message.c_str());
    return 1;
  }
  jouleprof::Window window = monitor->window("work");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // the work
  const auto energies = monitor->energy(window.end());
  if (!energies) {
    std::fprintf(stderr, "%s\n", energies.error().message.c_str());
    return 1;
  }
  for (const auto& e : *energies) {
    if (e.energy) {
      std::printf("%s %s: %.3f J, 95 %% interval +-%.3f J, %s\n", e.domain.device.c_str(),
                  e.domain.domain.c_str(), e.energy->joules(), e.error.joules(),
                  jouleprof::provenance_word(e.provenance));
    } else {
      std::printf("%s %s: unavailable: %s\n", e.domain.device.c_str(), e.domain.domain.c_str(),
                  e.reason.c_str());
    }
  }
}
