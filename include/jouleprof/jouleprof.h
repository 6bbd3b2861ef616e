/* jouleprof's C interface: stable, for any language.
 *
 * Every function may be called from any thread; one object from one thread at a time. Functions
 * that can fail return a status and write a message into `error` (of `error_size` bytes, always
 * ended by a NUL; either may be 0). No exception leaves a function. A NULL handle is harmless:
 * status functions return JOULEPROF_INVALID_ARGUMENT, others 0 or "", and those that close do
 * nothing. A second close of a handle does nothing either, as long as no other object was opened in
 * between; any other use of a closed handle is an error of the program.
 */
#ifndef JOULEPROF_JOULEPROF_H_
#define JOULEPROF_JOULEPROF_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define JOULEPROF_API __attribute__((visibility("default")))
#else
#define JOULEPROF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call. The values follow jouleprof::Errc. */
typedef enum jouleprof_status {
  JOULEPROF_OK = 0,
  JOULEPROF_NOT_FOUND = 1,
  JOULEPROF_PERMISSION_DENIED = 2,
  JOULEPROF_UNSUPPORTED = 3,
  JOULEPROF_UNAVAILABLE = 4,
  JOULEPROF_CORRUPT = 5,
  JOULEPROF_INVALID_ARGUMENT = 6,
  JOULEPROF_TIMEOUT = 7,
  JOULEPROF_INTERNAL = 8
} jouleprof_status;

typedef enum jouleprof_provenance {
  JOULEPROF_MEASURED = 0,
  JOULEPROF_ESTIMATED = 1,
  JOULEPROF_SIMULATED = 2,
  JOULEPROF_UNAVAILABLE_FIGURE = 3 /* the energy fields mean nothing */
} jouleprof_provenance;

/* "measured", "ESTIMATED", "SIMULATED" or "unavailable": to be printed with each energy. */
JOULEPROF_API const char* jouleprof_provenance_word(jouleprof_provenance provenance);

/* The energy of one domain of a recording. Texts live as long as the report. */
typedef struct jouleprof_domain_energy {
  const char* domain; /* "gpu", "cpu", "dram", ... */
  const char* device; /* "gpu0" */
  const char* name;   /* "NVIDIA H100 80GB HBM3" */
  const char* reason; /* why there is no energy; "" otherwise */
  jouleprof_provenance provenance;
  int64_t energy_microjoules;
  int64_t error_microjoules;         /* half of the 95 % interval */
  int64_t repeatability_microjoules; /* the same, without what is common to one device */
} jouleprof_domain_energy;

typedef struct jouleprof_report jouleprof_report;

/* The library's version, "0.1.0". */
JOULEPROF_API const char* jouleprof_version(void);

/* Reads and analyses a *.jprof file. */
JOULEPROF_API jouleprof_status jouleprof_report_open(const char* path, jouleprof_report** report,
                                                     char* error, size_t error_size);
JOULEPROF_API void jouleprof_report_close(jouleprof_report* report);

JOULEPROF_API double jouleprof_report_seconds(const jouleprof_report* report);
JOULEPROF_API size_t jouleprof_report_domain_count(const jouleprof_report* report);
/* JOULEPROF_INVALID_ARGUMENT when there is no domain `index`. */
JOULEPROF_API jouleprof_status jouleprof_report_domain(const jouleprof_report* report, size_t index,
                                                       jouleprof_domain_energy* domain);
/* The object that `jouleprof report --json` prints; lives as long as the report. */
JOULEPROF_API const char* jouleprof_report_json(const jouleprof_report* report);
/* The object that `jouleprof report --by BY --json` prints; lives as long as the report. `by`:
 * "kernel", "layer", "range" or "phase". NULL, with the reason in `error`, for another word and
 * where nothing was traced. */
JOULEPROF_API const char* jouleprof_report_activity_json(jouleprof_report* report, const char* by,
                                                         char* error, size_t error_size);

/* ---- Windows: the energy of an interval of this program's own run ----
 *
 * A monitor samples in a thread of its own. A window is two timestamps; its energy is found from
 * the monitor's timeline when it is asked for. jouleprof_window_begin and jouleprof_window_end make
 * no system call beyond the clock's (vDSO), no allocation after a thread's first window, and take
 * no lock unless a thread ends more than 4096 windows before the monitor's thread runs.
 *
 * All functions below may be called from any thread at the same time, except
 * jouleprof_monitor_close. After a fork the child's copy of a monitor measures nothing: energies
 * are JOULEPROF_UNAVAILABLE, and the child opens one of its own.
 */

typedef struct jouleprof_monitor jouleprof_monitor;

/* Zero everything, then set `size` to sizeof(jouleprof_monitor_options). */
typedef struct jouleprof_monitor_options {
  size_t size;
  /* Words as `jouleprof run --devices` takes them, separated by commas: "gpu0,cpu", "GPU-4f...".
   * NULL: all that this process can see (CUDA_VISIBLE_DEVICES is honoured). */
  const char* devices;
  /* Record into this *.jprof file too, readings and windows. NULL: not. */
  const char* log;
  int overwrite; /* whether `log` may exist */
  /* The shortest window whose energy matters; below 5 s sensors are read more often, which costs up
   * to 3 % of one core on some GPUs. 0: 50 ms. */
  int64_t shortest_window_nanoseconds;
  /* For how long after its begin a window is resolved in full detail; older begins are known to one
   * second. 0: 10 minutes. */
  int64_t history_nanoseconds;
  /* Sample here even when the program runs under `jouleprof run`, and even if a service shares its
   * sensors. 0: use the timeline of the run, so that the windows land in its recording; or the
   * sensors of the service. */
  int own_sampler;
  /* Instead of `devices`: `gpu_index_count` GPUs as CUDA counts them under CUDA_VISIBLE_DEVICES,
   * with the processors and their memory unless `gpus_only`. NULL: not used. */
  const int* gpu_indices;
  size_t gpu_index_count;
  int gpus_only;
} jouleprof_monitor_options;

/* Errors: JOULEPROF_INVALID_ARGUMENT (unknown device or GPU, `log` exists), JOULEPROF_UNAVAILABLE
 * (nothing at all can be measured or estimated here), and the file's. */
JOULEPROF_API jouleprof_status jouleprof_monitor_open(const jouleprof_monitor_options* options,
                                                      jouleprof_monitor** monitor, char* error,
                                                      size_t error_size);
/* Ends the sampling and finishes the log. */
JOULEPROF_API void jouleprof_monitor_close(jouleprof_monitor* monitor);

/* What a monitor gives energies of. Texts live as long as the monitor. */
typedef struct jouleprof_domain {
  const char* domain; /* "gpu", "cpu", "dram", ... */
  const char* device; /* "gpu0", "package-0" */
  const char* name;   /* "NVIDIA H100 80GB HBM3" */
  const char* uuid;   /* "GPU-..."; "" where there is none */
  const char* reason; /* why there will be no energy of it; "" otherwise */
  /* Of a whole GPU that this process can see: its place among them, as CUDA counts under
   * CUDA_VISIBLE_DEVICES. Otherwise -1. */
  int visible_index;
  int gpu_index; /* of a GPU: its place on the machine, as nvidia-smi counts. Otherwise -1. */
} jouleprof_domain;

JOULEPROF_API size_t jouleprof_monitor_domain_count(const jouleprof_monitor* monitor);
/* JOULEPROF_INVALID_ARGUMENT when there is no domain `index`. */
JOULEPROF_API jouleprof_status jouleprof_monitor_domain(const jouleprof_monitor* monitor,
                                                        size_t index, jouleprof_domain* domain);
/* Whose sampler this was when the monitor was opened: "own", "run" (`jouleprof run` around this
 * program) or "service" (a service that shares its sensors). */
JOULEPROF_API const char* jouleprof_monitor_source(const jouleprof_monitor* monitor);

/* A number for a window's name, the same for the same text; 0 is the empty name. Takes a lock: call
 * it once, keep the number. */
JOULEPROF_API uint32_t jouleprof_monitor_name(jouleprof_monitor* monitor, const char* name);

/* On CLOCK_MONOTONIC. */
typedef struct jouleprof_window {
  int64_t begin_nanoseconds;
  int64_t end_nanoseconds; /* 0 while it is open */
  uint32_t name;
  uint32_t flags; /* JOULEPROF_WINDOW_... */
} jouleprof_window;

/* The edges are the GPU's own, mapped to this clock; otherwise they are the caller's. */
#define JOULEPROF_WINDOW_DEVICE_TIME 1u
/* jouleprof_monitor_begin has begun it. */
#define JOULEPROF_WINDOW_LISTED 2u

JOULEPROF_API int64_t jouleprof_now(void); /* CLOCK_MONOTONIC in nanoseconds */
JOULEPROF_API jouleprof_window jouleprof_window_begin(uint32_t name);
/* The same, and the monitor lists the window until it is ended, added or cancelled: if the program
 * ends before, the recording names it. Costs about 20 ns more. */
JOULEPROF_API jouleprof_window jouleprof_monitor_begin(jouleprof_monitor* monitor, uint32_t name);
/* Forgets a window that has begun: it is in no total and no recording, also if it is ended later.
 * Of a window that has ended already: nothing. */
JOULEPROF_API void jouleprof_window_cancel(jouleprof_monitor* monitor, jouleprof_window* window);
/* Of a window that has ended already, has not begun or was cancelled: nothing. */
JOULEPROF_API void jouleprof_window_end(jouleprof_monitor* monitor, jouleprof_window* window);
/* Hands in a window whose edges were found otherwise, once: it is not for one that
 * jouleprof_window_end has ended. JOULEPROF_INVALID_ARGUMENT when it ends before it begins, is
 * still open, or has not begun. */
JOULEPROF_API jouleprof_status jouleprof_window_add(jouleprof_monitor* monitor,
                                                    const jouleprof_window* window);

/* An energy in one domain. */
typedef struct jouleprof_energy {
  jouleprof_provenance provenance;   /* JOULEPROF_UNAVAILABLE_FIGURE: see `reason` */
  int64_t energy_microjoules;        /* meaningless when unavailable, as the next two */
  int64_t error_microjoules;         /* half of the 95 % interval */
  int64_t repeatability_microjoules; /* the same, without what is common to one device */
  char sensor[96];
  char method[32];
  char reason[192];
} jouleprof_energy;

/* The sum of `count` energies, of those that are available: `sum` is unavailable when none is, and
 * has the weakest provenance of its parts (simulated, estimated, measured). The errors add
 * linearly, as if all sensors erred to the same side; with `independent` the repeatabilities add in
 * quadrature, and the gain errors linearly. `sum`'s texts are empty. */
JOULEPROF_API jouleprof_status jouleprof_energy_sum(const jouleprof_energy* parts, size_t count,
                                                    int independent, jouleprof_energy* sum);

/* The energy of a closed window in every domain: `energies` has room for as many as there are
 * domains. Waits, for `timeout_nanoseconds` at most (negative: 5 s), until the sensors have
 * reported the window's end: about 0.15 s after it. Reported energies never change: a second call
 * gives the same, and the parts of a window sum to the whole exactly. Errors:
 * JOULEPROF_INVALID_ARGUMENT (still open, not begun, or ends before it begins),
 * JOULEPROF_UNAVAILABLE (after a fork). A domain without an energy has its reason in `reason`. */
JOULEPROF_API jouleprof_status jouleprof_window_energy(jouleprof_monitor* monitor,
                                                       const jouleprof_window* window,
                                                       int64_t timeout_nanoseconds,
                                                       jouleprof_energy* energies, char* error,
                                                       size_t error_size);

/* All windows of one name so far. */
typedef struct jouleprof_total {
  uint64_t count;
  int64_t nanoseconds;     /* their lengths together */
  uint64_t resolved_count; /* those whose energy is in `energies`: nearly all but the last 5 s' */
} jouleprof_total;

/* The energies of all windows of one name together, with windows that overlap counted each for
 * itself. Keeps no window, so millions of them cost no memory; windows with pauses shorter than
 * 0.1 s between them are resolved as one without its pauses, as in a report. Waits, for
 * `timeout_nanoseconds` at most (negative: 10 s), until all windows ended so far are resolved.
 * Errors: as jouleprof_window_energy's; JOULEPROF_NOT_FOUND for a name without a window. */
JOULEPROF_API jouleprof_status jouleprof_monitor_total(jouleprof_monitor* monitor, uint32_t name,
                                                       int64_t timeout_nanoseconds,
                                                       jouleprof_total* total,
                                                       jouleprof_energy* energies, char* error,
                                                       size_t error_size);

/* What is known now: the object `jouleprof.snapshot/2` of docs/json.md as text, with every domain:
 * its power, its energy since the monitor was opened with interval and provenance, clocks,
 * temperature, utilisation, the age of the newest reading, the reason where a figure is absent.
 * `*json` is to be freed with jouleprof_free.
 * Errors: JOULEPROF_UNAVAILABLE (after a fork), JOULEPROF_TIMEOUT. */
JOULEPROF_API jouleprof_status jouleprof_monitor_snapshot(jouleprof_monitor* monitor, char** json,
                                                          char* error, size_t error_size);

/* What the reader of the monitor's figures should know (a sensor that does not answer, a clock that
 * was set, ...): one line each, in the order in which they came. Under `jouleprof run` its report
 * has them, and there are none here. `*text` is to be freed with jouleprof_free. */
JOULEPROF_API jouleprof_status jouleprof_monitor_warnings(jouleprof_monitor* monitor, char** text,
                                                          char* error, size_t error_size);

/* Re-runs the kernels of this process in isolation now, and not when it ends: of a program that
 * goes on, under `jouleprof run --kernels --replay`. Each for `seconds` at most (0: as --replay has
 * it), all within half a minute. Returns when they have ended, with all memory as it was. The
 * calling thread has no work under way on the GPU; other threads' calls of CUDA wait meanwhile.
 * `said`, if not NULL, receives what was re-run and what was not, and why. Errors:
 * JOULEPROF_UNAVAILABLE: nothing was re-run, such as where the program runs without
 * --replay, or where the GPU has no room for a copy of the memory. */
JOULEPROF_API jouleprof_status jouleprof_replay(double seconds, char* said, size_t said_size);

/* Frees a text of the two functions above jouleprof_replay; NULL is allowed. */
JOULEPROF_API void jouleprof_free(void* text);

#ifdef __cplusplus
}
#endif

#endif /* JOULEPROF_JOULEPROF_H_ */
