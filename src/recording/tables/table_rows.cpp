#include "recording/tables/table_rows.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "recording/spool/trace_check.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {
namespace {

// A program that gives each window a name of its own must not make us remember them all; a series
// that is described twice does no harm.
constexpr std::size_t kMostKnownSeries = 50'000;

std::string shortened(const std::string& name) {
  if (name.size() <= kLongestWindowName) return name;
  std::size_t end = kLongestWindowName;
  const auto continues = [&](std::size_t i) {
    return (static_cast<unsigned char>(name[i]) & 0xC0) == 0x80;  // UTF-8
  };
  while (end > kLongestWindowName - 4 && continues(end)) --end;
  return name.substr(0, end);
}

bool storable(const model::Window& window) {
  return window.end >= window.begin &&
         window.begin.time_since_epoch().count() >= -kLargestInteger &&
         window.end.time_since_epoch().count() <= kLargestInteger &&
         window.end - window.begin <= Duration{kLargestInteger};
}

constexpr auto kAt = [](const auto& reading) { return reading.at; };

constexpr const char* kRest = "rest";
constexpr const char* kHeld = "held";

bool storable(const model::KnownLevel& level) {
  return level.power > Power{} && storable_power(level.power.watts()) && level.spread >= Power{} &&
         storable_power(level.spread.watts()) &&
         std::abs(level.observed.time_since_epoch().count()) <= kLargestInteger;
}

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

// Items of one time keep their order.
template <class T, class TimeOf>
void sort_by_time(std::vector<T>& items, TimeOf time_of) {
  const auto earlier = [&](const T& a, const T& b) { return time_of(a) < time_of(b); };
  if (!std::ranges::is_sorted(items, earlier)) {
    std::ranges::stable_sort(items, earlier);
  }
}

}  // namespace

std::int64_t WindowRows::series_of(const model::Window& window) {
  Series series{shortened(window.name), window.pid, window.thread, window.device_time,
                window.devices.list()};
  if (const auto found = known_.find(series); found != known_.end()) return found->second;
  if (known_.size() >= kMostKnownSeries) known_.clear();
  const std::int64_t id = next_++;
  series_(id, std::get<0>(series), window.pid, window.thread, window.device_time);
  for (const auto domain : std::get<4>(series)) device_(id, domain);
  known_.emplace(std::move(series), id);
  return id;
}

void WindowRows::append(const std::vector<model::Window>& windows) {
  for (const auto& window : windows) {
    if (!storable(window)) continue;
    window_(series_of(window), window.begin, window.end - window.begin);
  }
}

std::vector<model::Window> read_windows(SQLite::Database& db, Inspection& inspection,
                                        const Ids& domains) {
  std::unordered_map<std::uint32_t, model::Window> all_series;
  Ids ids;
  for (Rows row(db, inspection, "window_series"); row.next();) {
    const auto id = row.new_id<std::uint32_t>(ids);
    model::Window& series = all_series[id];
    series.name = row.text();
    if (series.name.size() > kLongestWindowName) row.complain("is too long");
    series.pid = row.small_integer();
    series.thread = row.small_integer();
    series.device_time = row.flag();
  }
  std::unordered_map<std::uint32_t, std::vector<model::DomainId>> devices;
  for (Rows row(db, inspection, "window_series_device"); row.next();) {
    const auto series = row.reference<std::uint32_t>(ids);
    devices[series].push_back(row.reference<model::DomainId>(domains));
  }
  for (auto& [series, some] : devices) all_series[series].devices = model::DeviceSet(some);
  std::vector<model::Window> windows;
  for (Rows row(db, inspection, "window"); row.next();) {
    const auto series = row.reference<std::uint32_t>(ids);
    const HostTime begin = row.host_time();
    const Duration length{row.integer(0)};
    if (begin > HostTime{} && length > Duration{kLargestInteger} - begin.time_since_epoch()) {
      row.complain("ends too late");
    }
    if (!inspection.good()) break;
    windows.push_back(all_series[series]);
    windows.back().begin = begin;
    windows.back().end = begin + length;
  }
  sort_by_time(windows, [](const auto& w) { return w.begin; });
  return windows;
}

model::Readings read_readings(SQLite::Database& db, Inspection& inspection, KnownIds& known) {
  model::Readings out{
      read_all<model::CounterReading>(db, inspection, "counter_reading", known),
      read_all<model::PowerReading>(db, inspection, "power_reading", known),
      read_all<model::GaugeReading>(db, inspection, "gauge_reading", known),
      read_all<model::ReadFailure>(db, inspection, "read_failure", known),
  };
  sort_by_time(out.counters, [](const auto& r) { return r.before; });
  sort_by_time(out.powers, kAt);
  sort_by_time(out.gauges, kAt);
  sort_by_time(out.failures, kAt);
  return out;
}

model::ProcessReadings read_process_readings(SQLite::Database& db, Inspection& inspection,
                                             KnownIds& known) {
  model::ProcessReadings out{
      read_all<model::ProcessReading>(db, inspection, "process_reading", known),
      read_all<model::GpuProcessReading>(db, inspection, "gpu_process_reading", known),
      read_all<model::MachineReading>(db, inspection, "machine_reading", known),
  };
  sort_by_time(out.processes, kAt);
  sort_by_time(out.gpu_processes, kAt);
  sort_by_time(out.machine, kAt);
  return out;
}

void LevelRows::replace(const model::Domain& domain) {
  forget_.bind(1, static_cast<std::int64_t>(domain.id));
  forget_.exec();
  forget_.reset();
  add(domain.id, kRest, domain.known_levels.rest);
  add(domain.id, kHeld, domain.known_levels.held);
}

void LevelRows::add(model::DomainId domain, const char* name,
                    const std::optional<model::KnownLevel>& level) {
  if (!level || !storable(*level)) return;
  store(insert_, *level, domain, std::string_view(name));
}

void read_levels(SQLite::Database& db, Inspection& inspection, const Ids& known,
                 std::vector<model::Domain>& domains) {
  for (Rows row(db, inspection, "board_level"); row.next();) {
    const auto id = row.reference<model::DomainId>(known);
    const std::string name = row.text();
    if (name != kRest && name != kHeld) row.complain("has an unknown value");
    const auto domain = std::ranges::find(domains, id, &model::Domain::id);
    if (domain == domains.end()) return;  // which is a problem by now
    auto& level = name == kRest ? domain->known_levels.rest : domain->known_levels.held;
    if (level) row.complain("is there twice");
    fields(level.emplace(), RowReader(row));
    if (const auto problem = problem_of(*level); !problem.empty()) row.complain(problem);
  }
}

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
