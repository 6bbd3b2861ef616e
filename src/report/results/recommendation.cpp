#include "report/results/recommendation.h"

namespace jouleprof::report {

double saved_joules_per_day(const analysis::Recommendation& advice, const DailyUse& daily) {
  const auto& reference = advice.points[advice.reference].mean;
  const double works = daily.hours * 3600 / reference.seconds;
  return works * (reference.joules - advice.points[advice.best].mean.joules);
}

}  // namespace jouleprof::report
