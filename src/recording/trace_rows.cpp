#include "recording/trace_rows.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "model/phase_name.h"
#include "recording/packed.h"
#include "recording/spool/trace_check.h"

namespace jouleprof::recording {
namespace {

constexpr std::array<std::string_view, 4> kKinds{"kernel", "memcpy", "memset", "graph"};
// From 1 on.
constexpr std::array<std::string_view, 10> kChunks{
    "bins",   "scopes", "events",      "layers",           "wide_bins",
    "replay", "phases", "beside_bins", "wide_beside_bins", "beside_scopes"};

template <typename Enum, int First, std::size_t N>
std::optional<Enum> parse(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i + First);
  }
  return std::nullopt;
}

std::optional<model::ActivityKind> parse_kind(std::string_view text) {
  return parse<model::ActivityKind, 0>(kKinds, text);
}
std::optional<model::ChunkKind> parse_chunk(std::string_view text) {
  return parse<model::ChunkKind, 1>(kChunks, text);
}

template <typename Number>
std::optional<Number> unless_zero(Number value) {
  return value == 0 ? std::nullopt : std::optional(value);
}
std::optional<std::uint32_t> unless_none(std::uint32_t index) {
  return index == model::kNone ? std::nullopt : std::optional(index);
}

// The tables of one file's traces.
class TraceReader {
 public:
  TraceReader(SQLite::Database& db, Inspection& inspection, std::int32_t version)
      : db_(db), inspection_(inspection), version_(version) {}

  std::vector<model::Trace> read() {
    read_traces();
    if (version_ >= 4) read_positions();
    read_parts("traced_device", &model::Trace::devices, &TraceReader::device);
    read_parts("kernel_class", &model::Trace::classes, &TraceReader::kernel_class);
    read_parts("layer", &model::Trace::layers, &TraceReader::layer);
    read_parts("activity_range", &model::Trace::ranges, &TraceReader::range);
    read_parts("scope", &model::Trace::scopes, &TraceReader::scope);
    read_chunks();
    return std::move(traces_);
  }

 private:
  void read_traces() {
    for (Rows row(db_, inspection_, "trace"); row.next();) {
      row.integer(static_cast<std::int64_t>(traces_.size()),
                  static_cast<std::int64_t>(traces_.size()));
      model::Trace trace;
      trace.pid = row.small_integer();
      trace.program = row.text();
      trace.bin = Duration{row.integer(0)};
      traces_.push_back(std::move(trace));
    }
    checks_.resize(traces_.size());
    for (Rows row(db_, inspection_, "trace_status"); row.next();) {
      model::Trace* trace = trace_of(row);
      model::TraceStatus status;
      for (auto* count : {&status.activities, &status.dropped, &status.late, &status.graph_launches,
                          &status.graph_expanded}) {
        *count = row.bytes();
      }
      status.problem = row.maybe(&Rows::text).value_or("");
      status.ended = row.flag();
      if (trace != nullptr) trace->status = std::move(status);
    }
  }

  void read_positions() {
    for (Rows row(db_, inspection_, "trace_position"); row.next();) {
      model::Trace* trace = trace_of(row);
      const HostTime start = row.host_time();
      const std::uint32_t file = row.id();
      const std::uint64_t bytes = row.bytes();
      if (trace != nullptr) trace->position = {start, file, bytes};
    }
  }

  // The trace that a row belongs to; nullptr after a complaint.
  model::Trace* trace_of(Rows& row) {
    at_ = row.id();
    if (at_ < traces_.size()) return &traces_[at_];
    row.complain("refers to nothing");
    return nullptr;
  }

  template <class Part>
  void read_parts(std::string_view table, std::vector<Part> model::Trace::*list,
                  Part (*part_of)(Rows&)) {
    for (Rows row(db_, inspection_, table); row.next();) {
      model::Trace* trace = trace_of(row);
      const std::uint32_t number = row.id();
      Part part = part_of(row);
      if (trace == nullptr || !inspection_.good()) return;
      if (const auto problem = checks_[at_].define(number, part); !problem.empty()) {
        return row.complain(problem);
      }
      (trace->*list).push_back(std::move(part));
    }
  }

  static std::uint32_t index(Rows& row) { return row.maybe(&Rows::id).value_or(model::kNone); }
  static std::uint32_t size(Rows& row) { return row.maybe(&Rows::id).value_or(0); }

  static model::TracedDevice device(Rows& row) {
    return {row.id(), row.maybe(&Rows::text).value_or(""), row.text()};
  }

  static model::KernelClass kernel_class(Rows& row) {
    model::KernelClass c;
    c.kind = row.named(&parse_kind);
    c.name = row.text();
    for (auto& n : c.grid) n = size(row);
    for (auto& n : c.block) n = size(row);
    c.bytes = row.maybe(&Rows::bytes).value_or(0);
    return c;
  }

  static model::Layer layer(Rows& row) {
    model::Layer l;
    l.name = row.text();
    l.type = row.text();
    l.parent = index(row);
    l.shapes = row.text();
    l.parameters = row.bytes();
    l.macs = row.maybe(&Rows::number);
    l.compiled = row.flag();
    return l;
  }

  static model::Range range(Rows& row) { return {row.text(), index(row)}; }

  static model::Scope scope(Rows& row) {
    model::Scope s;
    s.layer = index(row);
    s.range = index(row);
    if (const auto text = row.maybe(&Rows::text)) {
      const auto phase = model::parse_phase(*text);
      if (!phase) row.complain("has an unknown value");
      s.phase = phase.value_or(model::Phase::kNone);
    }
    return s;
  }

  void read_chunks() {
    for (Rows row(db_, inspection_, "activity_chunk"); row.next();) {
      model::Trace* trace = trace_of(row);
      model::ActivityChunk chunk;
      chunk.kind = row.named(&parse_chunk);
      chunk.device = index(row);
      chunk.begin = row.host_time();
      chunk.end = row.host_time();
      chunk.bytes = row.blob();
      if (trace == nullptr || !inspection_.good()) return;
      if (version_ >= 5) {
        auto entries = unpack(chunk.bytes);
        if (!entries) return row.complain("has entries that can't be unpacked");
        chunk.bytes = std::move(*entries);
      }
      if (const auto problem = checks_[at_].add(chunk, trace->bin); !problem.empty()) {
        return row.complain(problem);
      }
      trace->chunks.push_back(std::move(chunk));
    }
  }

  SQLite::Database& db_;
  Inspection& inspection_;
  std::int32_t version_;
  std::vector<model::Trace> traces_;
  std::vector<spool::TraceCheck> checks_;
  std::uint32_t at_ = 0;  // the trace of the row in hand
};

}  // namespace

void TraceRows::append(std::uint32_t trace, const model::Trace& more) {
  if (trace >= counts_.size()) counts_.resize(std::size_t{trace} + 1);
  Counts& n = counts_[trace];
  trace_(trace, more.pid, more.program, more.bin);
  for (const auto& d : more.devices) {
    device_(trace, n.devices++, d.ordinal, d.uuid.empty() ? std::nullopt : std::optional(d.uuid),
            d.name);
  }
  for (const auto& c : more.classes) {
    class_(trace, n.classes++, kKinds.at(static_cast<std::size_t>(c.kind)), c.name,
           unless_zero(c.grid[0]), unless_zero(c.grid[1]), unless_zero(c.grid[2]),
           unless_zero(c.block[0]), unless_zero(c.block[1]), unless_zero(c.block[2]),
           unless_zero(c.bytes));
  }
  for (const auto& l : more.layers) {
    layer_(trace, n.layers++, l.name, l.type, unless_none(l.parent), l.shapes, l.parameters, l.macs,
           l.compiled);
  }
  for (const auto& r : more.ranges) range_(trace, n.ranges++, r.name, unless_none(r.parent));
  for (const auto& s : more.scopes) {
    const std::string_view phase = model::phase_name(s.phase);
    scope_(trace, n.scopes++, unless_none(s.layer), unless_none(s.range),
           phase.empty() ? std::nullopt : std::optional(phase));
  }
  for (const auto& c : more.chunks) {
    const std::string entries = pack(c.bytes);
    chunk_(trace, kChunks.at(static_cast<std::size_t>(c.kind) - 1), unless_none(c.device), c.begin,
           c.end, Blob{entries});
  }
  const model::TraceStatus& s = more.status;
  status_(trace, s.activities, s.dropped, s.late, s.graph_launches, s.graph_expanded,
          s.problem.empty() ? std::nullopt : std::optional(s.problem), s.ended);
  if (more.position) {
    position_(trace, more.position->start, more.position->file, more.position->bytes);
  }
}

std::vector<model::Trace> read_traces(SQLite::Database& db, Inspection& inspection,
                                      std::int32_t version) {
  return TraceReader(db, inspection, version).read();
}

}  // namespace jouleprof::recording
