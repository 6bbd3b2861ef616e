/* The C interface from C. */
#include <jouleprof/jouleprof.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char error[256];
  jouleprof_report* report = NULL;
  if (strlen(jouleprof_version()) == 0) return 1;
  if (jouleprof_report_open("/no/such/file.jprof", &report, error, sizeof error) !=
      JOULEPROF_NOT_FOUND) {
    return 2;
  }
  puts(error);
  char first[256];
  strcpy(first, error);
  /* NULL handles are harmless. */
  jouleprof_window window = jouleprof_window_begin(0);
  jouleprof_window_end(NULL, &window);
  const jouleprof_window ended = window;
  while (jouleprof_now() == ended.end_nanoseconds) {
  }
  jouleprof_window_end(NULL, &window); /* has ended already */
  if (window.end_nanoseconds != ended.end_nanoseconds) return 5;
  jouleprof_window_end(NULL, NULL);
  window = jouleprof_monitor_begin(NULL, 0);
  jouleprof_window_cancel(NULL, &window);
  jouleprof_window_cancel(NULL, NULL);
  jouleprof_report_close(NULL);
  jouleprof_monitor_close(NULL);
  jouleprof_free(NULL);
  /* And so is a second close. */
  jouleprof_monitor* monitor = NULL;
  if (jouleprof_monitor_open(NULL, &monitor, error, sizeof error) == JOULEPROF_OK) {
    jouleprof_monitor_close(monitor);
    jouleprof_monitor_close(monitor);
  }
  if (jouleprof_report_seconds(NULL) != 0 || jouleprof_report_domain_count(NULL) != 0 ||
      jouleprof_report_domain(NULL, 0, NULL) != JOULEPROF_INVALID_ARGUMENT ||
      strlen(jouleprof_report_json(NULL)) != 0 || jouleprof_monitor_domain_count(NULL) != 0 ||
      jouleprof_monitor_domain(NULL, 0, NULL) != JOULEPROF_INVALID_ARGUMENT ||
      strlen(jouleprof_monitor_source(NULL)) != 0 || jouleprof_monitor_name(NULL, "x") != 0 ||
      jouleprof_monitor_open(NULL, NULL, NULL, 0) != JOULEPROF_INVALID_ARGUMENT ||
      jouleprof_window_add(NULL, &window) != JOULEPROF_INVALID_ARGUMENT ||
      jouleprof_window_energy(NULL, &window, 0, NULL, NULL, 0) != JOULEPROF_INVALID_ARGUMENT ||
      jouleprof_monitor_total(NULL, 0, 0, NULL, NULL, NULL, 0) != JOULEPROF_INVALID_ARGUMENT ||
      jouleprof_monitor_snapshot(NULL, NULL, NULL, 0) != JOULEPROF_INVALID_ARGUMENT ||
      jouleprof_monitor_warnings(NULL, NULL, NULL, 0) != JOULEPROF_INVALID_ARGUMENT ||
      jouleprof_energy_sum(NULL, 1, 0, NULL) != JOULEPROF_INVALID_ARGUMENT) {
    return 4;
  }
  return report == NULL && strstr(first, "/no/such/file.jprof") != NULL ? 0 : 3;
}
