#include "session/machine/own_cost.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace jouleprof::session {
namespace {

Duration of(const timeval& t) {
  return std::chrono::seconds{t.tv_sec} + std::chrono::microseconds{t.tv_usec};
}

}  // namespace

Duration own_cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return of(usage.ru_utime) + of(usage.ru_stime);
}

std::uint64_t own_resident_bytes() {
  const auto text = read_file("/proc/self/statm");
  const auto fields = text ? split_blanks(*text) : std::vector<std::string_view>{};
  const auto pages = fields.size() > 1 ? parse_integer(fields[1]) : std::nullopt;
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return pages ? static_cast<std::uint64_t>(*pages) * page : 0;
}

}  // namespace jouleprof::session
