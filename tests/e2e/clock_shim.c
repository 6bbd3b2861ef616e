// A machine whose clocks jump: preload it into the tool, and set it as the tool's NVML library.
//
// When the file CLOCK_SHIM_FILE appears, CLOCK_REALTIME jumps by CLOCK_SHIM_STEP_SECONDS (the wall
// clock is set), and CLOCK_REALTIME and CLOCK_BOOTTIME by CLOCK_SHIM_SLEEP_SECONDS (the machine
// was suspended). CLOCK_MONOTONIC never jumps.
//
// The simulated board's power depends on the wall clock; a real board's does not change when its
// machine's clock is set or the machine sleeps. So the simulator reads the true clock, and the shim
// stamps its samples after the jump with the clock that jumped, as a driver does.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Of nvml.h.
struct sample {
  unsigned long long microseconds;
  unsigned long long value;
};
typedef int get_samples(void* device, int type, unsigned long long last_seen, int* value_type,
                        unsigned* count, struct sample* samples);
int nvmlInit_v2(void);
get_samples nvmlDeviceGetSamples;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_llong jumped_at;  // microseconds of the true wall clock; 0: not yet

static struct timespec true_clock(clockid_t id) {
  struct timespec now = {0, 0};
  syscall(SYS_clock_gettime, id, &now);
  return now;
}

static unsigned long long jump_moment(void) {
  const char* file = getenv("CLOCK_SHIM_FILE");
  if (jumped_at != 0 || file == NULL || access(file, F_OK) != 0) return jumped_at;
  pthread_mutex_lock(&mutex);
  if (jumped_at == 0) {
    const struct timespec now = true_clock(CLOCK_REALTIME);
    jumped_at = now.tv_sec * 1000000LL + now.tv_nsec / 1000;
  }
  pthread_mutex_unlock(&mutex);
  return jumped_at;
}

// By how much a clock has jumped, in nanoseconds.
static long long jump_of(clockid_t id) {
  const char* sleep = getenv("CLOCK_SHIM_SLEEP_SECONDS");
  const char* step = getenv("CLOCK_SHIM_STEP_SECONDS");
  double seconds = 0;
  if (id == CLOCK_REALTIME || id == CLOCK_BOOTTIME) seconds += sleep != NULL ? atof(sleep) : 0;
  if (id == CLOCK_REALTIME) seconds += step != NULL ? atof(step) : 0;
  return (long long)(seconds * 1e9);
}

static void* library_of(const void* address) {
  Dl_info found = {0};
  return dladdr(address, &found) != 0 ? found.dli_fbase : NULL;
}

int clock_gettime(clockid_t id, struct timespec* now) {
  if (syscall(SYS_clock_gettime, id, now) != 0) return -1;
  const long long jump = jump_of(id);
  if (jump == 0 || jump_moment() == 0) return 0;
  const int simulator = library_of(__builtin_return_address(0)) == library_of(nvmlInit_v2);
  if (simulator) return 0;
  const long long billion = 1000000000;
  const long long shown = now->tv_sec * billion + now->tv_nsec + jump;
  now->tv_sec = shown / billion;
  now->tv_nsec = shown % billion;
  return 0;
}

int nvmlDeviceGetSamples(void* device, int type, unsigned long long last_seen, int* value_type,
                         unsigned* count, struct sample* samples) {
  get_samples* simulated = (get_samples*)dlsym(RTLD_NEXT, "nvmlDeviceGetSamples");
  const int code = simulated(device, type, last_seen, value_type, count, samples);
  const unsigned long long moment = jump_moment();
  if (code != 0 || samples == NULL || moment == 0) return code;
  for (unsigned i = 0; i < *count; ++i) {
    if (samples[i].microseconds > moment) samples[i].microseconds += jump_of(CLOCK_REALTIME) / 1000;
  }
  return code;
}

// The command has the true clocks.
__attribute__((constructor)) static void only_in_the_tool(void) { unsetenv("LD_PRELOAD"); }
