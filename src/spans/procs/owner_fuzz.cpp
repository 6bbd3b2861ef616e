// Texts of /proc/PID/cgroup, which a user who may make control groups chooses freely.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "spans/procs/owners.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto group = jouleprof::spans::parse_process_group(text);
  const auto& owner = group.owner;
  // An id is a label of a series: its size is bounded. A job's has the container's 12 digits at its
  // end; a unit's name is as long as systemd allows.
  if (owner.container.size() > 128 || owner.pod.size() > 36 || owner.job.size() > 128 + 13 ||
      owner.step.size() > 128 || owner.unit.size() > 255) {
    std::abort();
  }
  return 0;
}
