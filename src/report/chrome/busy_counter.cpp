#include "report/chrome/busy_counter.h"

#include <algorithm>
#include <utility>

namespace jouleprof::report {

void BusyCounter::add(HostTime begin, Duration length, std::uint64_t busy) {
  if (length >= step_) {
    write_step();
    return put(begin, begin + length, static_cast<double>(busy));
  }
  const HostTime first = origin_ + (begin - origin_) / step_ * step_;
  const HostTime next = first + step_;
  const double later = std::max(seconds(begin + length - next) / seconds(length), 0.0);
  add(first, static_cast<double>(busy) * (1 - later));
  if (later > 0) add(next, static_cast<double>(busy) * later);
}

void BusyCounter::finish() {
  write_step();
  if (end_) write(*end_, 0);
}

void BusyCounter::add(HostTime step, double busy) {
  if (step != begin_) write_step();
  begin_ = step;
  busy_ += busy;
}

void BusyCounter::write_step() {
  if (begin_) put(*begin_, *begin_ + step_, std::exchange(busy_, 0));
  begin_.reset();
}

void BusyCounter::put(HostTime begin, HostTime end, double busy) {
  if (end_ && begin > *end_) write(*end_, 0);
  write(begin, busy * 1e-9 / seconds(end - begin));
  end_ = end;
}

void BusyCounter::write(HostTime t, double share) {
  sink_(
      R"--({{"ph": "C", "name": "busy (%)", "pid": {}, "tid": 0, "ts": {}, "args": {{"busy": {:.4g}}}}})--",
      pid_, chrome_time(t - origin_), 100 * share);
}

}  // namespace jouleprof::report
