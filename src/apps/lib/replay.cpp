// Isolated re-runs on request; libjouleprof_inject.so, which recorded the launches, makes them.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "jouleprof/jouleprof.h"

namespace {

constexpr double kMostSeconds = 30;  // for all re-runs

using ReplayNow = int(double each, double all, char* said, size_t size);

// Of the library that CUDA has loaded into this process; nullptr: none has.
ReplayNow* replay_now() {
  const char* path = std::getenv("CUDA_INJECTION64_PATH");
  void* library = path != nullptr ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  return library != nullptr ? reinterpret_cast<ReplayNow*>(dlsym(library, "jouleprof_replay_now"))
                            : nullptr;
}

}  // namespace

jouleprof_status jouleprof_replay(double seconds, char* said, size_t said_size) {
  ReplayNow* now = replay_now();
  if (now == nullptr) {
    if (said != nullptr && said_size > 0) {
      std::snprintf(said, said_size,
                    "no launches are recorded: run the program under `jouleprof run --kernels "
                    "--replay`");
    }
    return JOULEPROF_UNAVAILABLE;
  }
  return now(seconds, kMostSeconds, said, said_size) == 0 ? JOULEPROF_OK : JOULEPROF_UNAVAILABLE;
}
