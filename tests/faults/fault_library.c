// Makes calls of the C library fail: preload it into the tool.
//
// JOULEPROF_FAULTS is a list of CALL:N:ERROR, separated by commas: the N-th such call from now on
// fails with this errno; "N+" also all that follow. The errno "short" writes half of the bytes,
// "hang" never returns. JOULEPROF_FAULT_LOG names a file that gets a line "CALL:N" for each fault
// that happened, and at the end one "calls CALL:N" with the number of such calls. Programs other
// than jouleprof, such as the measured command, are left alone. JOULEPROF_FAULT_PROGRAM names
// another program: its calls fail only while it has called jouleprof_faults(1), and not
// jouleprof_faults(0) since.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kMostFaults = 16, kShort = -1, kHang = -2 };

struct fault {
  char call[24];
  long first;
  int all;
  int error;
  atomic_long calls;
};

static struct fault faults[kMostFaults];
static int fault_count;
static atomic_int armed;
static char log_path[512];

static const struct {
  const char* name;
  int error;
} kErrors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO},       {"EINTR", EINTR},
               {"ENOMEM", ENOMEM}, {"EMFILE", EMFILE}, {"EAGAIN", EAGAIN},
               {"EACCES", EACCES}, {"short", kShort},  {"hang", kHang}};

__attribute__((constructor)) static void begin(void) {
  const char* text = getenv("JOULEPROF_FAULTS");
  const char* log = getenv("JOULEPROF_FAULT_LOG");
  const char* program = getenv("JOULEPROF_FAULT_PROGRAM");
  const char* expected = program != NULL ? program : "jouleprof";
  if (text == NULL || strcmp(program_invocation_short_name, expected) != 0) return;
  armed = program == NULL;
  if (log != NULL) snprintf(log_path, sizeof log_path, "%s", log);
  char error[16];
  for (int n = 0; fault_count < kMostFaults; text += n) {
    struct fault* f = &faults[fault_count];
    char all = 0;
    if (sscanf(text, "%23[^:]:%ld%c", f->call, &f->first, &all) < 3) break;
    f->all = all == '+';
    if (sscanf(text, "%*[^:]:%*[0-9+]:%15[a-zA-Z]%n", error, &n) < 1) break;
    for (size_t i = 0; i < sizeof kErrors / sizeof *kErrors; ++i) {
      if (strcmp(error, kErrors[i].name) == 0) f->error = kErrors[i].error;
    }
    ++fault_count;
    if (text[n] == ',') ++n;
  }
}

// Straight to the kernel: nothing here may call what it replaces.
static void note(const char* call, long n) {
  if (log_path[0] == 0) return;
  char line[64];
  const int size = snprintf(line, sizeof line, "%s:%ld\n", call, n);
  const long fd = syscall(SYS_openat, AT_FDCWD, log_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (fd < 0) return;
  syscall(SYS_write, fd, line, size);
  syscall(SYS_close, fd);
}

__attribute__((destructor)) static void end(void) {
  for (int i = 0; i < fault_count; ++i) {
    char name[40];
    snprintf(name, sizeof name, "calls %s", faults[i].call);
    note(name, faults[i].calls);
  }
}

#define EXPORT __attribute__((visibility("default")))

EXPORT void jouleprof_faults(int on) { armed = on; }

// 0, or the errno with which this call fails.
static int fails(const char* call) {
  if (!armed) return 0;
  for (int i = 0; i < fault_count; ++i) {
    struct fault* f = &faults[i];
    if (strcmp(f->call, call) != 0) continue;
    const long n = atomic_fetch_add(&f->calls, 1) + 1;
    if (n != f->first && !(f->all && n > f->first)) continue;
    note(call, n);
    while (f->error == kHang) pause();
    return f->error;
  }
  return 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPEN(name, ...)                                                  \
  const int failed = fails("open");                                      \
  if (failed > 0) return errno = failed, -1;                             \
  va_list rest;                                                          \
  va_start(rest, flags);                                                 \
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0; \
  va_end(rest);                                                          \
  return NEXT(name)(__VA_ARGS__, mode)

EXPORT int open(const char* path, int flags, ...) { OPEN(open, path, flags); }
EXPORT int open64(const char* path, int flags, ...) { OPEN(open64, path, flags); }
EXPORT int openat(int folder, const char* path, int flags, ...) {
  OPEN(openat, folder, path, flags);
}

// Disks fail, and stdout; pipes and sockets of one's own do not. What is said on stderr gets
// through: the tests read it.
static int can_fail(int fd) {
  struct stat info;
  return fd != 2 && (fd == 1 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)));
}

#define WRITE(name, ...)                                \
  const int failed = can_fail(fd) ? fails("write") : 0; \
  if (failed == kShort && n > 1) n /= 2;                \
  if (failed > 0) return errno = failed, -1;            \
  return NEXT(name)(__VA_ARGS__)

EXPORT ssize_t write(int fd, const void* p, size_t n) { WRITE(write, fd, p, n); }
EXPORT ssize_t pwrite(int fd, const void* p, size_t n, off_t at) { WRITE(pwrite, fd, p, n, at); }
EXPORT ssize_t pwrite64(int fd, const void* p, size_t n, off64_t at) {
  WRITE(pwrite64, fd, p, n, at);
}
EXPORT ssize_t writev(int fd, const struct iovec* v, int n) { WRITE(writev, fd, v, n); }

#define SIMPLE(type, name, failure, parameters, ...) \
  EXPORT type name parameters {                      \
    const int failed = fails(#name);                 \
    if (failed > 0) return errno = failed, failure;  \
    return NEXT(name)(__VA_ARGS__);                  \
  }

SIMPLE(int, fsync, -1, (int fd), fd)
SIMPLE(int, ftruncate, -1, (int fd, off_t size), fd, size)
SIMPLE(int, ftruncate64, -1, (int fd, off64_t size), fd, size)
SIMPLE(int, rename, -1, (const char* from, const char* to), from, to)
SIMPLE(pid_t, fork, -1, (void))
SIMPLE(int, pipe2, -1, (int ends[2], int flags), ends, flags)
SIMPLE(int, socket, -1, (int family, int type, int protocol), family, type, protocol)

EXPORT void* mmap(void* p, size_t n, int prot, int flags, int fd, off_t at) {
  const int failed = fails("mmap");
  if (failed > 0) return errno = failed, MAP_FAILED;
  return (void*)syscall(SYS_mmap, p, n, prot, flags, fd, at);
}
EXPORT void* mmap64(void* p, size_t n, int prot, int flags, int fd, off64_t at) {
  return mmap(p, n, prot, flags, fd, at);
}

EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* how, void* (*run)(void*),
                          void* with) {
  const int failed = fails("pthread_create");
  return failed > 0 ? failed : NEXT(pthread_create)(thread, how, run, with);
}

// glibc's own; dlsym() may itself need memory.
void* __libc_malloc(size_t size);
EXPORT void* malloc(size_t size) {
  const int failed = fault_count > 0 ? fails("malloc") : 0;
  if (failed > 0) return errno = failed, NULL;
  return __libc_malloc(size);
}
