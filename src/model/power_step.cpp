#include "model/power_step.h"

#include <fmt/format.h>

#include <algorithm>

namespace jouleprof::model {

std::string counter_members(const PowerStep& step) {
  std::string out = fmt::format(R"("watts": {:.6g})", step.power.watts());
  if (step.error) {
    out += fmt::format(R"(, "low": {:.6g}, "high": {:.6g})",
                       std::max((step.power - *step.error).watts(), 0.0),
                       (step.power + *step.error).watts());
  }
  return out;
}

}  // namespace jouleprof::model
