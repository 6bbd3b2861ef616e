#include "meters/estimate/load_model.h"

#include <array>
#include <cstdint>

#include "base/text.h"

namespace jouleprof::meters::estimate {

Result<CpuTime> parse_cpu_time(std::string_view proc_stat, long ticks_per_second) {
  // man 5 proc: user nice system idle iowait irq softirq steal guest guest_nice. Guests are in user
  // and nice already.
  constexpr std::array<std::size_t, 5> kBusyFields{1, 2, 3, 6, 7};
  const auto fields = split_blanks(proc_stat.substr(0, proc_stat.find('\n')));
  if (fields.size() <= kBusyFields.back() || fields[0] != "cpu") {
    return fail(Errc::kCorrupt, "/proc/stat does not begin with the CPU times");
  }
  std::int64_t ticks = 0;
  for (const std::size_t i : kBusyFields) {
    const auto value = parse_integer(fields[i]);
    if (!value || *value < 0) {
      return fail(Errc::kCorrupt, "/proc/stat holds a CPU time that is no number");
    }
    ticks += *value;
  }
  return CpuTime{Duration{ticks * (std::chrono::nanoseconds::period::den / ticks_per_second)}};
}

Power default_tdp_per_cpu(std::string_view vendor, std::string_view model_name) {
  if (model_name.find("EPYC") != std::string_view::npos) return Power::watts(2.2);
  // x86 kernels name a vendor, ARM kernels do not.
  if (vendor.empty()) return Power::watts(2.5);
  return Power::watts(4.0);
}

}  // namespace jouleprof::meters::estimate
