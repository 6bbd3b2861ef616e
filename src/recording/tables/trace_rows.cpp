#include <string_view>
#include <utility>

#include "recording/spool/trace_check.h"
#include "recording/tables/record_columns.h"
#include "recording/tables/table_rows.h"

namespace jouleprof::recording {
namespace {

// The tables of one file's traces.
class TraceReader {
 public:
  TraceReader(SQLite::Database& db, Inspection& inspection) : db_(db), inspection_(inspection) {}

  std::vector<model::Trace> read() {
    read_heads();
    read_of_each("trace_status", [](model::Trace& t) -> auto& { return t.status; });
    read_of_each("trace_position", [](model::Trace& t) -> auto& { return t.position.emplace(); });
    read_parts("traced_device", &model::Trace::devices);
    read_parts("kernel_class", &model::Trace::classes);
    read_parts("layer", &model::Trace::layers);
    read_parts("activity_range", &model::Trace::ranges);
    read_parts("scope", &model::Trace::scopes);
    read_chunks();
    return std::move(traces_);
  }

 private:
  void read_heads() {
    for (Rows row(db_, inspection_, "trace"); row.next();) {
      const auto id = static_cast<std::int64_t>(traces_.size());
      row.integer(id, id);
      model::TracedProcess& head = traces_.emplace_back();
      fields(head, RowReader(row));
      if (head.bin < Duration{}) row.complain("has bins of no length");
    }
    checks_.resize(traces_.size());
  }

  // A table with one row for each trace.
  template <class RecordOf>
  void read_of_each(std::string_view table, RecordOf record_of) {
    for (Rows row(db_, inspection_, table); row.next();) {
      if (model::Trace* trace = trace_of(row)) {
        auto& record = record_of(*trace);
        fields(record, RowReader(row));
      }
    }
  }

  // The trace that a row belongs to; nullptr after a complaint.
  model::Trace* trace_of(Rows& row) {
    at_ = row.id();
    if (at_ < traces_.size()) return &traces_[at_];
    row.complain("refers to nothing");
    return nullptr;
  }

  template <class Item>
  void read_parts(std::string_view table, std::vector<Item> model::Trace::*list) {
    for (Rows row(db_, inspection_, table); row.next();) {
      model::Trace* trace = trace_of(row);
      const std::uint32_t number = row.id();
      Item part;
      fields(part, RowReader(row));
      if (trace == nullptr || !inspection_.good()) return;
      if (const auto problem = checks_[at_].define(number, part); !problem.empty()) {
        return row.complain(problem);
      }
      (trace->*list).push_back(std::move(part));
    }
  }

  void read_chunks() {
    for (Rows row(db_, inspection_, "activity_chunk"); row.next();) {
      model::Trace* trace = trace_of(row);
      model::ActivityChunk chunk;
      fields(chunk, RowReader(row));
      if (trace == nullptr || !inspection_.good()) return;
      if (const auto problem = checks_[at_].add(chunk, trace->bin); !problem.empty()) {
        return row.complain(problem);
      }
      trace->chunks.push_back(std::move(chunk));
    }
  }

  SQLite::Database& db_;
  Inspection& inspection_;
  std::vector<model::Trace> traces_;
  std::vector<spool::TraceCheck> checks_;
  std::uint32_t at_ = 0;  // the trace of the row in hand
};

}  // namespace

void TraceRows::append(std::uint32_t trace, const model::Trace& more) {
  if (trace >= counts_.size()) counts_.resize(std::size_t{trace} + 1);
  const model::TracedProcess& head = more;
  store(trace_, head, trace);
  const auto store_all = [trace](Insert& insert, const auto& parts, std::uint32_t& number) {
    for (const auto& part : parts) store(insert, part, trace, number++);
  };
  Counts& n = counts_[trace];
  store_all(device_, more.devices, n.devices);
  store_all(class_, more.classes, n.classes);
  store_all(layer_, more.layers, n.layers);
  store_all(range_, more.ranges, n.ranges);
  store_all(scope_, more.scopes, n.scopes);
  for (const auto& chunk : more.chunks) store(chunk_, chunk, trace);
  store(status_, more.status, trace);
  if (more.position) store(position_, *more.position, trace);
}

std::vector<model::Trace> read_traces(SQLite::Database& db, Inspection& inspection) {
  return TraceReader(db, inspection).read();
}

}  // namespace jouleprof::recording
