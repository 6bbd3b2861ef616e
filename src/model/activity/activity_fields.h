// The fields of the records of a traced process, one list for each record. The frames of the spool,
// the tables of the recording and the random records of the tests are all made from these lists.
//
// A new field takes two edits: the member in activity.h, and one line in its list here:
//
//   field("registers", c.registers);
//
// Names are the recording's column names. How a type is written: recording/spool/frame.h,
// recording/tables/record_columns.h.
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
  const auto found = std::find(words.begin(), words.end(), word);
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

}  // namespace jouleprof::model
