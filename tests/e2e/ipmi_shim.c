// A machine with a BMC at /dev/ipmi0: preload it into the tool.
//
// IPMI_SHIM_SCRIPT names a file with a line for each question; the last one stands for all that
// follow: "answer HEX" (the completion code first), "late HEX" (which comes only as the next
// question is asked), "none", "error ERRNO". Questions are appended to IPMI_SHIM_LOG, as hex:
// function, command, data.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MOST 8

struct reply {
  long id;
  unsigned length;
  unsigned char data[64];
};

static int ends[2] = {-1, -1};  // the device: readable while a reply waits
static struct reply waiting[MOST], late;
static int first, count, has_late;
static unsigned questions;

static int open_device(void) {
  if (ends[0] < 0 && pipe2(ends, O_CLOEXEC) != 0) return -1;
  return fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
}

static int is_device(const char* path) { return strcmp(path, "/dev/ipmi0") == 0; }

#define OPEN(name)                                                \
  int name(const char* path, int flags, ...) {                    \
    va_list more;                                                 \
    va_start(more, flags);                                        \
    const int mode = va_arg(more, int);                           \
    va_end(more);                                                 \
    if (is_device(path)) return open_device();                    \
    int (*real)(const char*, int, ...) = dlsym(RTLD_NEXT, #name); \
    return real(path, flags, mode);                               \
  }
OPEN(open)
OPEN(open64)

static void line_of(unsigned question, char* line, int size) {
  FILE* script = fopen(getenv("IPMI_SHIM_SCRIPT"), "r");
  *line = 0;
  for (unsigned i = 0; script != NULL && i <= question; ++i) {
    if (fgets(line, size, script) == NULL) break;
  }
  if (script != NULL) fclose(script);
}

static void push(const struct reply* reply) {
  waiting[(first + count++) % MOST] = *reply;
  if (write(ends[1], "", 1) != 1) abort();
}

static struct reply parse(const char* hex, long id) {
  struct reply reply = {.id = id, .length = 0};
  unsigned byte;
  for (int used; sscanf(hex, " %2x%n", &byte, &used) == 1; hex += used) {
    reply.data[reply.length++] = (unsigned char)byte;
  }
  return reply;
}

static int ask(const struct ipmi_req* request) {
  FILE* log = fopen(getenv("IPMI_SHIM_LOG"), "a");
  if (log != NULL) {
    fprintf(log, "%02x %02x", request->msg.netfn, request->msg.cmd);
    for (unsigned i = 0; i != request->msg.data_len; ++i) {
      fprintf(log, " %02x", request->msg.data[i]);
    }
    fprintf(log, "\n");
    fclose(log);
  }
  const struct ipmi_system_interface_addr* to = (const void*)request->addr;
  if (to->addr_type != IPMI_SYSTEM_INTERFACE_ADDR_TYPE || to->channel != IPMI_BMC_CHANNEL) {
    errno = EINVAL;
    return -1;
  }
  char line[512];
  line_of(questions++, line, sizeof line);
  if (has_late) push(&late);
  has_late = 0;
  int number;
  if (strncmp(line, "answer ", 7) == 0) {
    const struct reply reply = parse(line + 7, request->msgid);
    push(&reply);
  } else if (strncmp(line, "late ", 5) == 0) {
    late = parse(line + 5, request->msgid);
    has_late = 1;
  } else if (sscanf(line, "error %d", &number) == 1) {
    errno = number;
    return -1;
  }
  return 0;
}

static int take(struct ipmi_recv* out) {
  char byte;
  if (count == 0 || read(ends[0], &byte, 1) != 1) {
    errno = EAGAIN;
    return -1;
  }
  const struct reply reply = waiting[first];
  first = (first + 1) % MOST;
  --count;
  out->recv_type = IPMI_RESPONSE_RECV_TYPE;
  out->msgid = reply.id;
  out->msg.netfn = 0x2d;
  out->msg.cmd = 2;
  if (reply.length < out->msg.data_len) out->msg.data_len = (unsigned short)reply.length;
  memcpy(out->msg.data, reply.data, out->msg.data_len);
  return 0;
}

int ioctl(int fd, unsigned long request, ...) {
  va_list more;
  va_start(more, request);
  void* argument = va_arg(more, void*);
  va_end(more);
  if (request == IPMICTL_SEND_COMMAND) return ask(argument);
  if (request == IPMICTL_RECEIVE_MSG_TRUNC) return take(argument);
  int (*real)(int, unsigned long, ...) = dlsym(RTLD_NEXT, "ioctl");
  return real(fd, request, argument);
}
