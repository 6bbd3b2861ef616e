#include "analysis/live/machine_state.h"

#include <ctime>
#include <tuple>

namespace jouleprof::analysis {
namespace {

auto date_of(RealTime t) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(t.time_since_epoch()).count();
  std::tm local{};
  localtime_r(&seconds, &local);
  return std::tuple(local.tm_year, local.tm_yday);
}

}  // namespace

void follow_day(Day& day, RealTime now, const std::vector<DomainAccount>& accounts) {
  if (day.begin && date_of(*day.begin) == date_of(now)) return;
  day.begin = now;
  day.before.clear();
  for (const auto& account : accounts) day.before.push_back(account.total);
}

}  // namespace jouleprof::analysis
