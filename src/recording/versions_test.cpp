// Files of older versions, and what a new field takes.
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "recording/recording_fixture.h"
#include "recording/tables/packed.h"
#include "recording/tables/record_columns.h"

namespace jouleprof::recording {
namespace {

constexpr auto kVersion7 = JOULEPROF_SOURCE_DIR "/tests/fixtures/recordings/version_7.jprof";
constexpr auto kVersion8 = JOULEPROF_SOURCE_DIR "/tests/fixtures/recordings/version_8.jprof";

std::vector<std::string> rows_of(const std::string& query, const std::string& file = kVersion7) {
  SQLite::Database db("file:" + file + "?immutable=1", SQLite::OPEN_READONLY | SQLite::OPEN_URI);
  std::vector<std::string> rows;
  for (SQLite::Statement row(db, query); row.executeStep();) {
    std::string text;
    for (int i = 0; i < row.getColumnCount(); ++i) {
      const auto column = row.getColumn(i);
      text += column.isNull() ? "|-" : "|" + column.getString();
    }
    rows.push_back(text);
  }
  return rows;
}

template <class T>
std::string cell(const T& value) {
  return fmt::format("|{}", value);
}
std::string cell(HostTime t) { return cell(t.time_since_epoch().count()); }
std::string index(std::uint32_t value) { return value == model::kNone ? "|-" : cell(value); }
std::string size(std::uint64_t value) { return value == 0 ? "|-" : cell(value); }
std::string word(std::string_view text) { return text.empty() ? "|-" : cell(text); }

template <class Part>
std::vector<std::string> cells_of(const std::vector<model::Trace>& traces,
                                  std::vector<Part> model::Trace::*list,
                                  std::string (*cells)(const Part&)) {
  std::vector<std::string> rows;
  for (std::size_t trace = 0; trace < traces.size(); ++trace) {
    std::size_t number = 0;
    for (const Part& part : traces[trace].*list) {
      rows.push_back(cell(trace) + cell(number++) + cells(part));
    }
  }
  return rows;
}

// Written by version 0.1 of the tool, with every kind of record and chunk.
TEST(Versions, EveryRecordOfVersion7IsRead) {
  const auto read = read_recording(kVersion7);
  ASSERT_TRUE(read) << read.error().message;
  const auto& traces = read->traces;
  ASSERT_EQ(traces.size(), 12U);
  std::vector<std::string> heads;
  for (const auto& t : traces) {
    const auto& s = t.status;
    heads.push_back(cell(t.pid) + cell(t.program) + cell(t.bin.count()) + cell(s.activities) +
                    cell(s.dropped) + cell(s.late) + cell(s.graph_launches) +
                    cell(s.graph_expanded) + word(s.problem) + cell(int{s.ended}) +
                    cell(t.position->start) + cell(t.position->file) + cell(t.position->bytes));
    EXPECT_EQ(t.rank, model::Rank{});
  }
  EXPECT_EQ(heads, rows_of("SELECT pid, program, bin_nanoseconds, activities, dropped, late, "
                           "graph_launches, graph_expanded, problem, ended, start_nanoseconds, "
                           "file, bytes FROM trace JOIN trace_status USING (id) "
                           "JOIN trace_position USING (id) ORDER BY id"));
  EXPECT_EQ(cells_of<model::TracedDevice>(
                traces, &model::Trace::devices,
                [](const auto& d) { return cell(d.ordinal) + word(d.uuid) + cell(d.name); }),
            rows_of("SELECT * FROM traced_device ORDER BY trace"));
  EXPECT_EQ(cells_of<model::KernelClass>(
                traces, &model::Trace::classes,
                [](const auto& c) {
                  constexpr std::array kKinds{"kernel", "memcpy", "memset", "graph"};
                  std::string cells = cell(kKinds[static_cast<std::size_t>(c.kind)]) + cell(c.name);
                  for (const auto n : c.grid) cells += size(n);
                  for (const auto n : c.block) cells += size(n);
                  return cells + size(c.bytes);
                }),
            rows_of("SELECT * FROM kernel_class ORDER BY trace"));
  EXPECT_EQ(cells_of<model::Layer>(traces, &model::Trace::layers,
                                   [](const auto& l) {
                                     return cell(l.name) + cell(l.type) + index(l.parent) +
                                            cell(l.shapes) + cell(l.parameters) +
                                            (l.macs ? fmt::format("|{:.9f}", *l.macs) : "|-") +
                                            cell(int{l.compiled});
                                   }),
            rows_of("SELECT trace, number, name, type, parent, shapes, parameters, "
                    "iif(macs IS NULL, NULL, printf('%.9f', macs)), compiled FROM layer "
                    "ORDER BY trace"));
  EXPECT_EQ(cells_of<model::Range>(traces, &model::Trace::ranges,
                                   [](const auto& r) { return cell(r.name) + index(r.parent); }),
            rows_of("SELECT * FROM activity_range ORDER BY trace"));
  EXPECT_EQ(
      cells_of<model::Scope>(traces, &model::Trace::scopes,
                             [](const auto& s) {
                               constexpr std::array kPhases{"", "forward", "backward", "optimizer"};
                               return index(s.layer) + index(s.range) +
                                      word(kPhases[static_cast<std::size_t>(s.phase)]);
                             }),
      rows_of("SELECT * FROM scope ORDER BY trace"));
}

TEST(Versions, EveryChunkOfVersion7IsReadWithItsNewKind) {
  const auto read = read_recording(kVersion7);
  ASSERT_TRUE(read) << read.error().message;
  using enum model::ChunkKind;
  const std::map<std::string, model::ChunkKind> kinds{
      {"bins", kBins},
      {"scopes", kScopes},
      {"events", kEvents},
      {"layers", kLayers},
      {"wide_bins", kWideBins},
      {"replay", kReplay},
      {"phases", kPhases},
      {"beside_bins", kOverlappedBins},
      {"wide_beside_bins", kWideOverlappedBins},
      {"beside_scopes", kOverlappedScopes},
  };
  SQLite::Database db(std::string("file:") + kVersion7 + "?immutable=1",
                      SQLite::OPEN_READONLY | SQLite::OPEN_URI);
  SQLite::Statement row(db, "SELECT * FROM activity_chunk ORDER BY trace");
  std::set<std::string> found;
  for (const auto& trace : read->traces) {
    for (const auto& chunk : trace.chunks) {
      ASSERT_TRUE(row.executeStep());
      found.insert(row.getColumn(1).getString());
      EXPECT_EQ(chunk.kind, kinds.at(row.getColumn(1).getString()));
      EXPECT_EQ(index(chunk.device),
                row.getColumn(2).isNull() ? "|-" : "|" + row.getColumn(2).getString());
      EXPECT_EQ(chunk.begin.time_since_epoch().count(), row.getColumn(3).getInt64());
      EXPECT_EQ(chunk.end.time_since_epoch().count(), row.getColumn(4).getInt64());
      EXPECT_EQ(chunk.bytes, unpack(row.getColumn(5).getString()));
    }
  }
  EXPECT_FALSE(row.executeStep());
  EXPECT_EQ(found.size(), kinds.size());
}

TEST(Versions, AFileOfVersion7WrittenAgainIsTheSameRecording) {
  const TempTree tree;
  const auto read = read_recording(kVersion7).value();
  ASSERT_TRUE(write_recording(tree / "x.jprof", read));
  expect_equal(read_recording(tree / "x.jprof").value(), read);
  SQLite::Database db((tree / "x.jprof").string());
  EXPECT_EQ(
      db.execAndGet("SELECT count(*) FROM activity_chunk WHERE kind LIKE '%beside%'").getInt(), 0);
  EXPECT_GT(
      db.execAndGet("SELECT count(*) FROM activity_chunk WHERE kind LIKE '%overlapped%'").getInt(),
      0);
}

// Written by the last version of the tool before version 9, from a random recording.
TEST(Versions, EveryRankAndDomainOfVersion8IsRead) {
  const auto read = read_recording(kVersion8);
  ASSERT_TRUE(read) << read.error().message;
  const auto number = [](const auto& n) { return n ? cell(*n) : "|-"; };
  const auto cells_of_rank = [&](const model::Rank& r) {
    return number(r.global) + number(r.local) + number(r.world_size) + cell(r.launcher) +
           cell(r.job) + cell(r.step);
  };
  const std::string rank = "rank, local_rank, world_size, launcher, job, step FROM ";
  EXPECT_EQ(std::vector{cell(read->run.boot_id) + cells_of_rank(read->run.rank)},
            rows_of("SELECT boot_id, " + rank + "identity", kVersion8));
  std::vector<std::string> ranks;
  for (const auto& trace : read->traces) ranks.push_back(cells_of_rank(trace.rank));
  EXPECT_EQ(ranks, rows_of("SELECT " + rank + "trace ORDER BY id", kVersion8));
  EXPECT_EQ(ranks.size(), 2U);

  std::vector<std::string> domains;
  for (const auto& d : read->domains) {
    domains.push_back(cell(d.device) + cell(d.name) + word(d.uuid) + word(d.unavailable_reason));
    EXPECT_TRUE(d.known_levels.empty());
  }
  EXPECT_EQ(domains,
            rows_of("SELECT device, name, uuid, unavailable_reason FROM domain", kVersion8));
  EXPECT_EQ(domains.size(), 4U);
  const TempTree tree;
  ASSERT_TRUE(write_recording(tree / "x.jprof", *read));
  expect_equal(read_recording(tree / "x.jprof").value(), *read);
}

// A recording keeps what the tables of its version have room for.
TEST(Versions, EveryOlderVersionIsRead) {
  for (std::int32_t version = 5; version < kSchemaVersion; ++version) {
    const TempTree tree;
    model::Recording recording = RandomRecording(8).make();
    ASSERT_TRUE(write_recording(tree / "x.jprof", recording));
    make_older(tree / "x.jprof", version);
    drop_newer(recording, version);
    const auto read = read_recording(tree / "x.jprof");
    ASSERT_TRUE(read) << read.error().message;
    expect_equal(*read, recording);
  }
}

// A record that got a field in a version to come.
struct Grown {
  std::uint32_t first = 1;
  std::uint32_t later = 2;
};
void fields(model::Either<Grown> auto& g, auto&& field) {
  field("first", g.first);
  field("later", model::nullable(g.later, 0U), {.since = 9});
}

TEST(Versions, AFieldIsAColumnFromItsVersionOn) {
  const Grown grown;
  std::string older;
  std::string newer;
  fields(grown, ColumnList(older, 8));
  fields(grown, ColumnList(newer, 9));
  EXPECT_EQ(older, ", first INTEGER NOT NULL");
  EXPECT_EQ(newer, ", first INTEGER NOT NULL, later INTEGER");

  SQLite::Database db(":memory:", SQLite::OPEN_READWRITE);
  db.exec(
      "CREATE TABLE old(first); INSERT INTO old VALUES (7); "
      "CREATE TABLE new(first, later); INSERT INTO new VALUES (7, 8)");
  Inspection inspection{.bytes_left = 1000, .problem = {}};
  for (const std::int32_t version : {8, 9}) {
    Rows row(db, inspection, version == 8 ? "old" : "new");
    ASSERT_TRUE(row.next());
    Grown read;
    fields(read, RowReader(row, version));
    EXPECT_EQ(read.first, 7U);
    EXPECT_EQ(read.later, version == 8 ? 2U : 8U);
  }
  EXPECT_EQ(inspection.problem, "");
}

}  // namespace
}  // namespace jouleprof::recording
