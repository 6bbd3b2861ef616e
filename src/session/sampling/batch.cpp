#include "session/sampling/batch.h"

#include <iterator>
#include <utility>

namespace jouleprof::session {
namespace {

template <typename T>
void move_append(std::vector<T>& from, std::vector<T>& to) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

template <typename... T>
std::size_t bytes_of(const std::vector<T>&... lists) {
  return ((lists.size() * sizeof(T)) + ... + 0);
}

}  // namespace

bool Batch::empty() const {
  return !run && clock_points.empty() && domains.empty() && sensors.empty() && processes.empty() &&
         idle_spans.empty() && warnings.empty() && !overhead && readings.empty() &&
         process_readings.empty() && windows.empty() && traces.empty();
}

void Batch::append(Batch&& later) {
  if (later.run) run = std::move(later.run);
  if (later.overhead) overhead = later.overhead;
  move_append(later.clock_points, clock_points);
  move_append(later.domains, domains);
  move_append(later.sensors, sensors);
  move_append(later.processes, processes);
  move_append(later.idle_spans, idle_spans);
  move_append(later.warnings, warnings);
  move_append(later.readings.counters, readings.counters);
  move_append(later.readings.powers, readings.powers);
  move_append(later.readings.gauges, readings.gauges);
  move_append(later.readings.failures, readings.failures);
  move_append(later.process_readings.processes, process_readings.processes);
  move_append(later.process_readings.gpu_processes, process_readings.gpu_processes);
  move_append(later.process_readings.machine, process_readings.machine);
  move_append(later.windows, windows);
  move_append(later.traces, traces);
}

std::size_t Batch::series_bytes() const {
  return bytes_of(readings.counters, readings.powers, readings.gauges, readings.failures,
                  process_readings.processes, process_readings.gpu_processes,
                  process_readings.machine, windows);
}

void Batch::drop_series() {
  readings.clear();
  process_readings.clear();
  windows.clear();
}

}  // namespace jouleprof::session
