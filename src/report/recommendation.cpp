#include "report/recommendation.h"

namespace jouleprof::report {

double saved_joules_per_day(const analysis::Recommendation& advice, const DailyUse& daily) {
  const auto& reference = *advice.points[advice.reference].point;
  const double works = daily.hours * 3600 / reference.mean_seconds();
  return works * (reference.mean_joules() - advice.points[advice.best].point->mean_joules());
}

}  // namespace jouleprof::report
