// The fields of records, one list for each. The tables of a recording, their writer and reader
// (recording/tables/schema.h), the frames of the spool (recording/spool/frame.h), the
// messages between programs and services (field_json.h) and the random records of the tests are
// made from these lists.
//
// A new field takes two edits: the member of the record, and one line in its list here:
//
//   field("registers", c.registers);
//
// Names are the recording's column names.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "model/activity/activity.h"
#include "model/device/sensor.h"
#include "model/domain.h"
#include "model/process/process.h"
#include "model/profile.h"
#include "model/recording.h"

namespace jouleprof::model {

struct FieldTraits {
  std::string_view check = {};  // constraint of the column, in SQL
};

// A value that is absent (SQL NULL) where it is `absent`.
template <class T>
struct Nullable {
  T& value;
  std::remove_const_t<T> absent;
};
template <class T>
Nullable<T> nullable(T& value, std::remove_const_t<T> absent = {}) {
  return {value, std::move(absent)};
}

// Bytes that the recording compresses.
template <class T>
struct Packed {
  T& bytes;
};
template <class T>
Packed(T&) -> Packed<T>;

// The words for the values of an enumeration, by number; an empty one is no value.
inline std::span<const std::string_view> words_of(ActivityKind) {
  static constexpr std::string_view kWords[]{"kernel", "memcpy", "memset", "graph"};
  return kWords;
}
inline std::span<const std::string_view> words_of(Phase) {
  static constexpr std::string_view kWords[]{"", "forward", "backward", "optimizer"};
  return kWords;
}
inline std::span<const std::string_view> words_of(ChunkKind) {
  static constexpr std::string_view kWords[]{"",
                                             "bins",
                                             "scopes",
                                             "events",
                                             "layers",
                                             "wide_bins",
                                             "replay",
                                             "phases",
                                             "overlapped_bins",
                                             "wide_overlapped_bins",
                                             "overlapped_scopes",
                                             "collectives",
                                             "serving"};
  return kWords;
}

// The value that a word stands for; absent for any other text.
template <class Enum>
std::optional<Enum> parse_word(std::string_view word) {
  const auto words = words_of(Enum{});
  const auto found = std::ranges::find(words, word);
  if (word.empty() || found == words.end()) return std::nullopt;
  return static_cast<Enum>(found - words.begin());
}

// A record to read from or to write to.
template <class Record, class T>
concept Either = std::same_as<std::remove_const_t<Record>, T>;

void fields(Either<TracedDevice> auto& d, auto&& field) {
  field("ordinal", d.ordinal);
  field("uuid", nullable(d.uuid));
  field("name", d.name);
}

void fields(Either<KernelClass> auto& c, auto&& field) {
  field("kind", c.kind);
  field("name", c.name);
  field("grid_x", nullable(c.grid[0]));
  field("grid_y", nullable(c.grid[1]));
  field("grid_z", nullable(c.grid[2]));
  field("block_x", nullable(c.block[0]));
  field("block_y", nullable(c.block[1]));
  field("block_z", nullable(c.block[2]));
  field("size_bytes", nullable(c.bytes));
}

void fields(Either<Layer> auto& l, auto&& field) {
  field("name", l.name);
  field("type", l.type);
  field("parent", nullable(l.parent, kNone));
  field("shapes", l.shapes);
  field("parameters", l.parameters);
  field("macs", l.macs);
  field("compiled", l.compiled);
}

void fields(Either<Range> auto& r, auto&& field) {
  field("name", r.name);
  field("parent", nullable(r.parent, kNone));
}

void fields(Either<Scope> auto& s, auto&& field) {
  field("layer", nullable(s.layer, kNone));
  field("activity_range", nullable(s.range, kNone));
  field("phase", nullable(s.phase));
}

void fields(Either<ActivityChunk> auto& c, auto&& field) {
  field("kind", c.kind);
  field("traced_device", nullable(c.device, kNone));
  field("begin_nanoseconds", c.begin);
  field("end_nanoseconds", c.end, {.check = "end_nanoseconds >= begin_nanoseconds"});
  field("entries", Packed{c.bytes});
}

void fields(Either<TraceStatus> auto& s, auto&& field) {
  field("activities", s.activities);
  field("dropped", s.dropped);
  field("late", s.late);
  field("graph_launches", s.graph_launches);
  field("graph_expanded", s.graph_expanded);
  field("problem", nullable(s.problem));
  field("ended", s.ended);
  field("memsets_left_out", s.memsets_left_out);
}

void fields(Either<SpoolPosition> auto& p, auto&& field) {
  field("start_nanoseconds", p.start);
  field("file", p.file);
  field("bytes", p.bytes);
}

void fields(Either<Rank> auto& r, auto&& field) {
  field("rank", r.global);
  field("local_rank", r.local);
  field("world_size", r.world_size);
  field("launcher", nullable(r.launcher));
  field("job", nullable(r.job));
  field("step", nullable(r.step));
}

void fields(Either<TracedProcess> auto& p, auto&& field) {
  field("pid", p.pid);
  field("program", p.program);
  field("bin_nanoseconds", p.bin);
  fields(p.rank, field);
}

// A phase in the one word that every output uses.
// "forward", "backward", "optimizer"; empty for none of them.
inline std::string_view phase_name(Phase phase) {
  return words_of(phase)[static_cast<std::size_t>(phase)];
}

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
