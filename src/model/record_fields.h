// The fields of records, one list for each, as model/activity/activity_fields.h has those of a
// trace. The tables of a recording, their writer and reader (recording/tables/record_columns.h),
// and the messages between programs and services (field_json.h) are made from them.
#pragma once

#include <optional>

#include "model/activity/activity_fields.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/process/process.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::model {

// The id under which a record is stored; ids of other records refer to these.
template <class T>
struct Own {
  T& value;
};
template <class T>
Own(T&) -> Own<T>;

// A reference to a record that may come later.
template <class T>
struct Later {
  T& value;
};
template <class T>
Later(T&) -> Later<T>;

// What is no column of the record's table: it has one of its own.
template <class T>
struct Elsewhere {
  T& value;
};
template <class T>
Elsewhere(T&) -> Elsewhere<T>;

void fields(Either<KnownLevel> auto& l, auto&& field) {
  field("power_watts", l.power, {.check = "power_watts > 0"});
  field("spread_watts", l.spread, {.check = "spread_watts >= 0"});
  field("temperature_celsius", l.temperature_celsius);
  field("observed_real_nanoseconds", l.observed);
}

void fields(Either<Domain> auto& d, auto&& field) {
  field("id", Own{d.id});
  field("kind", d.kind);
  field("device", d.device);
  field("name", d.name);
  field("uuid", nullable(d.uuid));
  field("parent", Later{d.parent});
  field("visible", d.visible);
  field("unavailable_reason", nullable(d.unavailable_reason));
  field("rest", Elsewhere{d.known_levels.rest});
  field("held", Elsewhere{d.known_levels.held});
}

void fields(Either<Sensor> auto& s, auto&& field) {
  field("id", Own{s.id});
  field("domain", s.domain);
  field("kind", s.kind);
  field("name", s.name);
  field("provenance", s.provenance);
  auto& t = s.traits;
  field("refresh_nanoseconds", t.refresh);
  field("window_nanoseconds", t.window);
  field("lag_nanoseconds", t.lag);
  field("rise_nanoseconds", t.rise);
  field("read_cost_nanoseconds", t.read_cost);
  field("wrap_microjoules", t.wrap);
  field("quantum_microjoules", t.quantum);
  field("gain_low_ratio", t.scale.gain_low, {.check = "gain_low_ratio BETWEEN -1000 AND 1000"});
  field("gain_high_ratio", t.scale.gain_high,
        {.check = "gain_high_ratio BETWEEN gain_low_ratio AND 1000"});
  field("offset_low_watts", t.scale.offset_low);
  field("offset_high_watts", t.scale.offset_high,
        {.check = "offset_high_watts >= offset_low_watts"});
  field("scale_source", nullable(t.scale.source));
  field("correction_ratio", t.correction, {.check = "correction_ratio BETWEEN 0.1 AND 10"});
}

void fields(Either<CounterReading> auto& r, auto&& field) {
  field("sensor", r.sensor);
  field("before_nanoseconds", r.before);
  field("after_nanoseconds", r.after, {.check = "after_nanoseconds >= before_nanoseconds"});
  field("total_microjoules", r.total);
}

void fields(Either<PowerReading> auto& r, auto&& field) {
  field("sensor", r.sensor);
  field("at_nanoseconds", r.at);
  field("power_watts", r.power);
}

void fields(Either<GaugeReading> auto& r, auto&& field) {
  field("sensor", r.sensor);
  field("at_nanoseconds", r.at);
  field("value", r.value);
}

void fields(Either<ReadFailure> auto& f, auto&& field) {
  field("sensor", f.sensor);
  field("at_nanoseconds", f.at);
  field("code", f.error.code);
  field("message", f.error.message);
}

void fields(Either<IdleSpan> auto& s, auto&& field) {
  field("begin_nanoseconds", s.begin);
  field("end_nanoseconds", s.end, {.check = "end_nanoseconds >= begin_nanoseconds"});
}

void fields(Either<Process> auto& p, auto&& field) {
  field("id", Own{p.id});
  field("pid", p.pid);
  field("own_pid", p.own_pid);
  field("parent_pid", p.parent_pid);
  field("name", p.name);
  field("command_line", p.command_line);
  field("start_nanoseconds", p.start);
  field("end_nanoseconds", p.end);
  field("in_tree", p.in_tree);
  fields(p.rank, field);
}

void fields(Either<ProcessReading> auto& r, auto&& field) {
  field("process", r.process);
  field("at_nanoseconds", r.at);
  field("cpu_time_nanoseconds", r.cpu_time);
  field("unseen_children_cpu_time_nanoseconds", r.unseen_children_cpu_time);
  field("pss_bytes", r.pss_bytes);
  field("uss_bytes", r.uss_bytes);
  field("rss_bytes", r.rss_bytes);
}

void fields(Either<GpuProcessReading> auto& r, auto&& field) {
  field("process", r.process);
  field("domain", r.domain);
  field("at_nanoseconds", r.at);
  field("sm_utilisation_ratio", r.compute_utilisation);
  field("memory_bytes", r.memory_bytes);
}

void fields(Either<MachineReading> auto& r, auto&& field) {
  field("at_nanoseconds", r.at);
  field("busy_cpu_time_nanoseconds", r.busy_cpu_time);
  field("total_cpu_time_nanoseconds", r.total_cpu_time);
  field("memory_used_bytes", r.memory_used_bytes);
}

void fields(Either<Warning> auto& w, auto&& field) {
  field("at_nanoseconds", w.at);
  field("text", w.text);
}

void fields(Either<ImportedWindow> auto& w, auto&& field) {
  field("name", w.name);
  field("begin_nanoseconds", w.begin);
  field("duration_nanoseconds", w.duration);
}

void fields(Either<ImportedWindow::DomainEnergy> auto& e, auto&& field) {
  field("domain", e.domain);
  field("energy_microjoules", e.energy);
}

void fields(Either<ImportedWindow::Label> auto& l, auto&& field) {
  field("name", l.name);
  field("value", l.value);
}

void fields(Either<Overhead> auto& o, auto&& field) {
  field("cpu_time_nanoseconds", o.cpu_time);
  field("wall_time_nanoseconds", o.wall_time);
  field("peak_memory_bytes", o.peak_memory_bytes);
}

void fields(Either<Measurement> auto& m, auto&& field) {
  field("energy_microjoules", m.energy);
  field("error_microjoules", m.error);
  field("repeatability_microjoules", m.repeatability);
  field("provenance", m.provenance);
  field("sensor", nullable(m.sensor));
  field("method", nullable(m.method));
  field("shift_ratio", nullable(m.shift));
  field("offset_microjoules", nullable(m.offset));
}

}  // namespace jouleprof::model
