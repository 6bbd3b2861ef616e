/* jouleprof's C interface: stable, for any language.
 *
 * Every function may be called from any thread; one object from one thread at a time. Functions
 * that can fail return a status and write a message into `error` (of `error_size` bytes, always
 * ended by a NUL; either may be 0).
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

/* What a call came to. The values follow jouleprof::Errc. */
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

#ifdef __cplusplus
}
#endif

#endif /* JOULEPROF_JOULEPROF_H_ */
