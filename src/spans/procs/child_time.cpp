#include "spans/procs/child_time.h"

#include <algorithm>

namespace jouleprof::spans {

void ChildTime::update(Duration children_total, Duration listed_gone) {
  Duration arrived = std::max(children_total - unseen_ - paid_, Duration{});
  const Duration old_debt = std::min(arrived, owed_);
  arrived -= old_debt;
  const Duration new_debt = std::min(arrived, listed_gone);
  arrived -= new_debt;
  paid_ += old_debt + new_debt;
  owed_ = listed_gone - new_debt;
  unseen_ += arrived;
}

}  // namespace jouleprof::spans
