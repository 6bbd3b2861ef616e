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
  return report == NULL && strstr(error, "/no/such/file.jprof") != NULL ? 0 : 3;
}
