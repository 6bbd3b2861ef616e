// Linked into what is shipped, so that it also runs with the C library of RHEL 8 (glibc 2.28),
// although it is compiled with a newer one. The names that a newer glibc has at a newer version are
// defined here: they lead to the version that both have, or do without. x86-64 only.
// tools/check_portable fails on a name that is missing here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

// `name` is `target` of an old version. A jump, so that arguments, result and the caller's address
// (dlsym looks at it) remain.
#define LEADS_TO(name, target, version)                                                    \
  __asm__(".symver glibc_2_28_" #name ", " #target "@" version                             \
          "\n"                                                                             \
          ".text; .globl " #name "; .hidden " #name "; .type " #name ", @function\n" #name \
          ": jmp *glibc_2_28_" #name                                                       \
          "@GOTPCREL(%rip)\n"                                                              \
          ".size " #name ", . - " #name)
#define OLD(name) LEADS_TO(name, name, "GLIBC_2.2.5")

// libpthread and libdl became parts of libc (2.34).
OLD(pthread_create);
OLD(pthread_detach);
OLD(pthread_getspecific);
OLD(pthread_join);
OLD(pthread_key_create);
OLD(__pthread_key_create);
OLD(pthread_key_delete);
OLD(pthread_kill);
OLD(pthread_mutex_trylock);
OLD(pthread_mutexattr_destroy);
OLD(pthread_mutexattr_init);
OLD(pthread_mutexattr_settype);
OLD(pthread_once);
OLD(pthread_rwlock_destroy);
OLD(pthread_rwlock_init);
OLD(pthread_rwlock_rdlock);
OLD(pthread_rwlock_tryrdlock);
OLD(pthread_rwlock_trywrlock);
OLD(pthread_rwlock_unlock);
OLD(pthread_rwlock_wrlock);
OLD(pthread_setspecific);
OLD(pthread_sigmask);
LEADS_TO(pthread_getname_np, pthread_getname_np, "GLIBC_2.12");
LEADS_TO(pthread_setname_np, pthread_setname_np, "GLIBC_2.12");
LEADS_TO(pthread_condattr_setclock, pthread_condattr_setclock, "GLIBC_2.3.3");
OLD(sem_destroy);
OLD(sem_init);
OLD(sem_post);
OLD(sem_trywait);
OLD(sem_wait);
OLD(dladdr);
OLD(dlclose);
OLD(dlerror);
OLD(dlopen);
OLD(dlsym);

// libm sets errno no longer (2.29, 2.35); the figures are the same.
OLD(exp);
OLD(exp2);
OLD(hypot);
OLD(log);
OLD(log2);
OLD(pow);

// C23's prefix 0b (2.38).
LEADS_TO(__isoc23_strtol, strtol, "GLIBC_2.2.5");
LEADS_TO(__isoc23_strtoll, strtoll, "GLIBC_2.2.5");
LEADS_TO(__isoc23_strtoul, strtoul, "GLIBC_2.2.5");
LEADS_TO(__isoc23_strtoull, strtoull, "GLIBC_2.2.5");
LEADS_TO(__isoc23_sscanf, __isoc99_sscanf, "GLIBC_2.7");
LEADS_TO(__isoc23_fscanf, __isoc99_fscanf, "GLIBC_2.7");

#define HIDDEN __attribute__((visibility("hidden")))

// stat and its relatives were inline functions over these (2.33).
__asm__(".symver old_stat, __xstat@GLIBC_2.2.5");
__asm__(".symver old_lstat, __lxstat@GLIBC_2.2.5");
__asm__(".symver old_fstat, __fxstat@GLIBC_2.2.5");
__asm__(".symver old_fstatat, __fxstatat@GLIBC_2.4");
extern int old_stat(int version, const char* path, void* out);
extern int old_lstat(int version, const char* path, void* out);
extern int old_fstat(int version, int file, void* out);
extern int old_fstatat(int version, int folder, const char* path, void* out, int flags);
enum { kStatVersion = 1 };
HIDDEN int stat(const char* path, struct stat* out) { return old_stat(kStatVersion, path, out); }
HIDDEN int stat64(const char* path, struct stat64* out) {
  return old_stat(kStatVersion, path, out);
}
HIDDEN int lstat(const char* path, struct stat* out) { return old_lstat(kStatVersion, path, out); }
HIDDEN int lstat64(const char* path, struct stat64* out) {
  return old_lstat(kStatVersion, path, out);
}
HIDDEN int fstat(int file, struct stat* out) { return old_fstat(kStatVersion, file, out); }
HIDDEN int fstat64(int file, struct stat64* out) { return old_fstat(kStatVersion, file, out); }
HIDDEN int fstatat(int folder, const char* path, struct stat* out, int flags) {
  return old_fstatat(kStatVersion, folder, path, out, flags);
}
HIDDEN int fstatat64(int folder, const char* path, struct stat64* out, int flags) {
  return old_fstatat(kStatVersion, folder, path, out, flags);
}

// Says that there may be threads (2.32); libstdc++ then counts references atomically.
HIDDEN char __libc_single_threaded = 0;

// 2.36. libstdc++ seeds std::random_device with it.
HIDDEN uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value) {
    if (errno != EINTR) abort();
  }
  return value;
}

HIDDEN void arc4random_buf(void* out, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t n = getrandom((char*)out + done, size - done, 0);
    if (n > 0) done += (size_t)n;
    if (n < 0 && errno != EINTR) abort();
  }
}

// Waits until a time of any clock (2.30). Without them libstdc++ waits for the same moment of the
// wall clock, and looks at its own clock again afterwards.
__asm__(".symver old_sem_timedwait, sem_timedwait@GLIBC_2.2.5");
__asm__(".symver old_mutex_timedlock, pthread_mutex_timedlock@GLIBC_2.2.5");
__asm__(".symver old_timedrdlock, pthread_rwlock_timedrdlock@GLIBC_2.2.5");
__asm__(".symver old_timedwrlock, pthread_rwlock_timedwrlock@GLIBC_2.2.5");
extern int old_sem_timedwait(sem_t*, const struct timespec*);
extern int old_mutex_timedlock(pthread_mutex_t*, const struct timespec*);
extern int old_timedrdlock(pthread_rwlock_t*, const struct timespec*);
extern int old_timedwrlock(pthread_rwlock_t*, const struct timespec*);

static struct timespec on_wall_clock(clockid_t clock, const struct timespec* until) {
  struct timespec now;
  struct timespec wall;
  if (clock == CLOCK_REALTIME) return *until;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &wall);
  wall.tv_sec += until->tv_sec - now.tv_sec;
  wall.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (wall.tv_nsec < 0) {
    wall.tv_nsec += 1000000000;
    --wall.tv_sec;
  } else if (wall.tv_nsec >= 1000000000) {
    wall.tv_nsec -= 1000000000;
    ++wall.tv_sec;
  }
  if (wall.tv_sec < 0) wall.tv_sec = 0;
  return wall;
}

typedef int WaitFunction(void*, void*, clockid_t, const struct timespec*);
HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const struct timespec* until) {
  // A step of the wall clock changes how long it waits, so the C library's own is better.
  static void* own = NULL;
  static int looked = 0;
  if (!__atomic_load_n(&looked, __ATOMIC_ACQUIRE)) {
    __atomic_store_n(&own, dlsym(RTLD_DEFAULT, "pthread_cond_clockwait"), __ATOMIC_RELAXED);
    __atomic_store_n(&looked, 1, __ATOMIC_RELEASE);
  }
  void* const function = __atomic_load_n(&own, __ATOMIC_RELAXED);
  if (function != NULL) return ((WaitFunction*)function)(condition, mutex, clock, until);
  const struct timespec wall = on_wall_clock(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}
HIDDEN int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                   const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return old_mutex_timedlock(mutex, &wall);
}
HIDDEN int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                      const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return old_timedrdlock(lock, &wall);
}
HIDDEN int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                      const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return old_timedwrlock(lock, &wall);
}
HIDDEN int sem_clockwait(sem_t* semaphore, clockid_t clock, const struct timespec* until) {
  const struct timespec wall = on_wall_clock(clock, until);
  return old_sem_timedwait(semaphore, &wall);
}

// Where the unwinder finds the frames of the function at `address` (2.35).
struct Search {
  uintptr_t address;
  struct dl_find_object* found;
};
static int look_into(struct dl_phdr_info* object, size_t size, void* data) {
  struct Search* const search = data;
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;
  const void* frames = NULL;
  int inside = 0;
  (void)size;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &object->dlpi_phdr[i];
    const uintptr_t from = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = (const void*)from;
    if (part->p_type != PT_LOAD) continue;
    if (from < begin) begin = from;
    if (from + part->p_memsz > end) end = from + part->p_memsz;
    if (search->address >= from && search->address < from + part->p_memsz) inside = 1;
  }
  if (!inside || frames == NULL) return inside ? -1 : 0;
  search->found->dlfo_flags = 0;
  search->found->dlfo_map_start = (void*)begin;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_link_map = NULL;
  search->found->dlfo_eh_frame = (void*)frames;
  return 1;
}
HIDDEN int _dl_find_object(void* address, struct dl_find_object* found) {
  struct Search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}

#ifdef JOULEPROF_PROGRAM
// Before 2.34 the program itself ran its constructors.
typedef void Constructor(int, char**, char**);
extern Constructor* __preinit_array_start[] HIDDEN;
extern Constructor* __preinit_array_end[] HIDDEN;
extern Constructor* __init_array_start[] HIDDEN;
extern Constructor* __init_array_end[] HIDDEN;
extern void _init(void);
static void construct(int count, char** arguments, char** environment) {
  for (Constructor** each = __preinit_array_start; each != __preinit_array_end; ++each) {
    (*each)(count, arguments, environment);
  }
  _init();
  for (Constructor** each = __init_array_start; each != __init_array_end; ++each) {
    (*each)(count, arguments, environment);
  }
}
__asm__(".symver old_start, __libc_start_main@GLIBC_2.2.5");
typedef int Main(int, char**, char**);
extern int old_start(Main*, int, char**, Constructor*, void (*)(void), void (*)(void), void*);
HIDDEN int __libc_start_main(Main* program, int count, char** arguments, Constructor* init,
                             void (*end)(void), void (*end_of_loader)(void), void* stack) {
  (void)init;
  return old_start(program, count, arguments, construct, end, end_of_loader, stack);
}
#endif
