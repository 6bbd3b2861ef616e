#include "recording/tables/reading_rows.h"

#include <optional>
#include <string_view>

namespace jouleprof::recording {
namespace {

std::optional<Errc> parse_errc(std::string_view text) {
  for (int code = 0; code <= static_cast<int>(Errc::kInternal); ++code) {
    if (to_string(Errc{code}) == text) return Errc{code};
  }
  return std::nullopt;
}

constexpr auto kAt = [](const auto& reading) { return reading.at; };

}  // namespace

model::Readings read_readings(SQLite::Database& db, Inspection& inspection, const Ids& sensors) {
  model::Readings out;
  for (Rows row(db, inspection, "counter_reading"); row.next();) {
    const auto sensor = row.reference<model::SensorId>(sensors);
    const HostTime before = row.host_time();
    const HostTime after = row.host_time();
    if (after < before) row.complain("is before it began");
    out.counters.push_back({sensor, before, after, row.energy()});
  }
  for (Rows row(db, inspection, "power_reading"); row.next();) {
    out.powers.push_back({row.reference<model::SensorId>(sensors), row.host_time(), row.power()});
  }
  for (Rows row(db, inspection, "gauge_reading"); row.next();) {
    out.gauges.push_back({row.reference<model::SensorId>(sensors), row.host_time(), row.number()});
  }
  for (Rows row(db, inspection, "read_failure"); row.next();) {
    out.failures.push_back({row.reference<model::SensorId>(sensors),
                            row.host_time(),
                            {row.named(&parse_errc), row.text()}});
  }
  sort_by_time(out.counters, [](const auto& r) { return r.before; });
  sort_by_time(out.powers, kAt);
  sort_by_time(out.gauges, kAt);
  sort_by_time(out.failures, kAt);
  return out;
}

model::ProcessReadings read_process_readings(SQLite::Database& db, Inspection& inspection,
                                             const Ids& processes, const Ids& domains) {
  model::ProcessReadings out;
  for (Rows row(db, inspection, "process_reading"); row.next();) {
    out.processes.push_back({row.reference<model::ProcessId>(processes), row.host_time(),
                             row.duration(), row.duration(), row.maybe(&Rows::bytes),
                             row.maybe(&Rows::bytes), row.maybe(&Rows::bytes)});
  }
  for (Rows row(db, inspection, "gpu_process_reading"); row.next();) {
    out.gpu_processes.push_back({row.reference<model::ProcessId>(processes),
                                 row.reference<model::DomainId>(domains), row.host_time(),
                                 row.maybe(&Rows::number), row.maybe(&Rows::bytes)});
  }
  for (Rows row(db, inspection, "machine_reading"); row.next();) {
    out.machine.push_back({row.host_time(), row.duration(), row.duration(), row.bytes()});
  }
  sort_by_time(out.processes, kAt);
  sort_by_time(out.gpu_processes, kAt);
  sort_by_time(out.machine, kAt);
  return out;
}

}  // namespace jouleprof::recording
