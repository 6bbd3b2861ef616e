// A file system that hangs: preload it into the tool. While the file HUNG_FOLDER_SWITCH exists,
// opening anything below HUNG_FOLDER does not return.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang(const char* path) {
  const char* folder = getenv("HUNG_FOLDER");
  const char* file = getenv("HUNG_FOLDER_SWITCH");
  if (folder == NULL || file == NULL || strncmp(path, folder, strlen(folder)) != 0) return;
  while (access(file, F_OK) == 0) usleep(20000);
}

#define OPEN(name, ...)                                                           \
  hang(path);                                                                     \
  va_list rest;                                                                   \
  va_start(rest, flags);                                                          \
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
  va_end(rest);                                                                   \
  return ((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__, mode)

#define EXPORT __attribute__((visibility("default")))

EXPORT int open(const char* path, int flags, ...) { OPEN(open, path, flags); }
EXPORT int open64(const char* path, int flags, ...) { OPEN(open64, path, flags); }
EXPORT int openat(int folder, const char* path, int flags, ...) {
  OPEN(openat, folder, path, flags);
}
EXPORT int openat64(int folder, const char* path, int flags, ...) {
  OPEN(openat64, folder, path, flags);
}
EXPORT void* opendir(const char* path) {
  hang(path);
  return ((void* (*)(const char*))dlsym(RTLD_NEXT, "opendir"))(path);
}
