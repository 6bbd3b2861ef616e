// A program that measures a part of its work with the library. It prints what it learnt as JSON,
// does its own work whatever the library answers, and ends with status 5. The first argument, if
// there is one, is the log that the library writes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "jouleprof/jouleprof.h"

enum { kMostDomains = 16, kStatus = 5 };

// Asks the system for nothing but the time.
static double work(double seconds) {
  const int64_t end = jouleprof_now() + (int64_t)(1e9 * seconds);
  double sum = 0;
  while (jouleprof_now() < end) sum += 1e-9;
  return sum;
}

static void print_energies(const char* key, const jouleprof_monitor* monitor,
                           jouleprof_status status, const jouleprof_energy* energies) {
  printf(", \"%s\": [", key);
  const char* comma = "";
  const size_t count = status == JOULEPROF_OK ? jouleprof_monitor_domain_count(monitor) : 0;
  for (size_t i = 0; i < count && i < kMostDomains; ++i) {
    jouleprof_domain domain;
    if (jouleprof_monitor_domain(monitor, i, &domain) != JOULEPROF_OK) continue;
    if (strcmp(domain.domain, "gpu") != 0) continue;
    if (energies[i].provenance == JOULEPROF_UNAVAILABLE_FIGURE) continue;
    printf("%s[%lld, %lld]", comma, (long long)energies[i].energy_microjoules,
           (long long)energies[i].error_microjoules);
    comma = ", ";
  }
  printf("]");
}

int main(int argc, char** argv) {
  void (*faults)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "jouleprof_faults");
  jouleprof_monitor_options options = {
      .size = sizeof options, .log = argc > 1 ? argv[1] : NULL, .overwrite = 1};
  jouleprof_monitor* monitor = NULL;
  jouleprof_energy window_energy[kMostDomains] = {0};
  jouleprof_energy total_energy[kMostDomains] = {0};
  jouleprof_total total = {0};
  char error[256] = "";
  char* snapshot = NULL;
  char* warnings = NULL;

  if (faults != NULL) faults(1);
  const jouleprof_status opened = jouleprof_monitor_open(&options, &monitor, error, sizeof error);
  const uint32_t name = jouleprof_monitor_name(monitor, "work");
  jouleprof_window window = jouleprof_window_begin(name);
  const double sum = work(0.3);
  jouleprof_window_end(monitor, &window);
  const jouleprof_status asked =
      jouleprof_window_energy(monitor, &window, -1, window_energy, error, sizeof error);
  const jouleprof_status totalled =
      jouleprof_monitor_total(monitor, name, -1, &total, total_energy, error, sizeof error);
  jouleprof_monitor_snapshot(monitor, &snapshot, error, sizeof error);
  jouleprof_monitor_warnings(monitor, &warnings, error, sizeof error);
  if (faults != NULL) faults(0);

  printf("{\"opened\": %d, \"sum\": %g, \"seconds\": %.9f", opened, sum,
         1e-9 * (double)(window.end_nanoseconds - window.begin_nanoseconds));
  print_energies("window", monitor, asked, window_energy);
  print_energies("total", monitor,
                 total.count == 1 && total.resolved_count == 1 ? totalled : JOULEPROF_TIMEOUT,
                 total_energy);
  printf("}\n");
  fflush(stdout);
  if (faults != NULL) faults(1);
  jouleprof_free(snapshot);
  jouleprof_free(warnings);
  jouleprof_monitor_close(monitor);
  if (faults != NULL) faults(0);
  return kStatus;
}
