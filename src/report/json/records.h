// The columns of each kind of record that JSON, CSV, the Python package and the page have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "jouleprof/units.h"
#include "model/activity/activity_profile.h"
#include "model/profile.h"
#include "report/activity/activity.h"
#include "report/costs/costs.h"
#include "report/json/values.h"
#include "report/total.h"

namespace jouleprof::report {

// A kernel, layer, range or phase of the device `of`.
void columns(const ActivityLine& line, const model::ActivityProfile& of,
             const ActivityOptions& options, Columns& column);
// One of the processes that used a traced device.
void columns(const model::ActivityProcess& process, Columns& column);

// A domain of a profile.
void columns(const model::DomainProfile& domain, const model::Profile& of, Columns& column);
void columns(const model::PowerLevel& level, Columns& column);
void columns(const model::CommandEnergy& command, Columns& column);
void columns(const Total& total, const model::Profile& of, Columns& column);

void columns(const model::ProcessProfile& process, const model::Profile& of, Columns& column);
void columns(const model::ProcessShare& share, const model::Domain& in, Columns& column);

// The windows of one name, and their energy in one domain.
void columns(const model::WindowGroup& group, const model::Profile& of, Columns& column);
void columns(const model::WindowEnergy& energy, const model::WindowGroup& of,
             const model::Domain& in, Columns& column);

void columns(const model::Finding& finding, Columns& column);
void columns(const model::Overhead& overhead, Columns& column);
void columns(const PerUnit& per, Columns& column);
void columns(const Costs& costs, Columns& column);

// Rest, held and active energy with their intervals, and why one is absent. CSV has the energies at
// `place`, and the rest at `more`.
void columns(const model::EnergyLevels& levels, Columns& column, int place = 0, int more = 0);

// The object of a record, or null where it is absent; a list of records. `of`: what they are of.
template <class Record, class... Of>
Json record_json(const Record& record, const Of&... of) {
  Json object = Json::object();
  JsonColumns column(object);
  columns(record, of..., column);
  return object;
}
template <class Record, class... Of>
Json record_json(const std::optional<Record>& record, const Of&... of) {
  return record ? record_json(*record, of...) : Json(nullptr);
}
template <class Record, class... Of>
Json records_json(const std::vector<Record>& records, const Of&... of) {
  return list_json(records, [&](const Record& record) { return record_json(record, of...); });
}

// A column of these: the object of a record, or the list of several.
template <class Record, class... Of>
auto nested(const Record& record, const Of&... of) {
  return [&record, &of...] {
    if constexpr (requires { record.begin(); }) {
      return records_json(record, of...);
    } else {
      return record_json(record, of...);
    }
  };
}

// What is known of a kind of record without one.
struct RecordKind {
  std::string_view path;  // of its object in docs/json.md: "domains[]."
  std::string_view name;  // in the Python package and the page
  std::vector<ColumnDescription> columns;
};
template <class... Record>
RecordKind record_kind(std::string_view path, std::string_view name, const Record&... record) {
  DescribedColumns described;
  columns(record..., described);
  return {path, name, described.list()};
}

// The records of a run.
std::vector<RecordKind> record_kinds();
// The records of a job, of comparisons and recommendations, of a snapshot, and of parts of these;
// the Python package has no tables of them.
std::vector<RecordKind> job_kinds();
std::vector<RecordKind> result_kinds();
std::vector<RecordKind> snapshot_kinds();
std::vector<RecordKind> part_kinds();

}  // namespace jouleprof::report
