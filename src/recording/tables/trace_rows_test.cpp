#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <string>

#include "model/activity/activity_codec.h"
#include "recording/recording_fixture.h"
#include "recording/tables/table_rows.h"

namespace jouleprof::recording {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The n-th half of a trace's lists.
model::Trace half(const model::Trace& trace, bool second) {
  model::Trace part = trace;
  const auto cut = [second](auto& list) {
    const auto middle = list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2);
    second ? list.erase(list.begin(), middle) : list.erase(middle, list.end());
  };
  cut(part.devices);
  cut(part.classes);
  cut(part.layers);
  cut(part.ranges);
  cut(part.scopes);
  cut(part.chunks);
  return part;
}

TEST(TraceRows, ComeAsTheyHappenAndInTurns) {
  const TempTree tree;
  std::vector<model::Trace> traces;
  for (unsigned seed = 0; seed < 3; ++seed) traces.push_back(spool::RandomTrace(seed).make());
  Writer writer = Writer::create(tree / "x.jprof").value();
  for (const bool second : {false, true}) {
    for (std::uint32_t i = 0; i < traces.size(); ++i) {
      auto part = half(traces[i], second);
      if (!second) {
        part.chunks.clear();
        part.scopes.clear();
        part.status = {};
      } else {
        part.chunks = traces[i].chunks;
        part.scopes = traces[i].scopes;
      }
      ASSERT_TRUE(writer.append(i, part));
      ASSERT_TRUE(writer.commit());
      EXPECT_TRUE(read_recording(tree / "x.jprof"));
    }
  }
  ASSERT_TRUE(writer.finish());
  const auto read = read_recording(tree / "x.jprof");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->traces, traces);
}

TEST(TraceRows, AbsentIsNull) {
  const TempTree tree;
  model::Recording recording;
  auto& trace = recording.traces.emplace_back();
  trace.devices.emplace_back();
  trace.classes.emplace_back();
  trace.layers.emplace_back();
  trace.ranges.emplace_back();
  trace.scopes.emplace_back();
  trace.chunks.push_back({model::ChunkKind::kLayers, model::kNone, {}, {}, ""});
  ASSERT_TRUE(write_recording(tree / "x.jprof", recording));
  SQLite::Database db((tree / "x.jprof").string());
  for (const char* query :
       {"SELECT count(*) FROM traced_device WHERE uuid IS NULL",
        "SELECT count(*) FROM kernel_class WHERE grid_x IS NULL AND block_z IS NULL AND size_bytes "
        "IS NULL",
        "SELECT count(*) FROM layer WHERE parent IS NULL AND macs IS NULL",
        "SELECT count(*) FROM activity_range WHERE parent IS NULL",
        "SELECT count(*) FROM scope WHERE layer IS NULL AND activity_range IS NULL AND phase IS "
        "NULL",
        "SELECT count(*) FROM activity_chunk WHERE traced_device IS NULL",
        "SELECT count(*) FROM trace_status WHERE problem IS NULL"}) {
    EXPECT_EQ(db.execAndGet(query).getInt(), 1) << query;
  }
  EXPECT_EQ(read_recording(tree / "x.jprof")->traces, recording.traces);
}

TEST(TraceRows, AChunkThatNamesWhatIsNotThereIsDamage) {
  const TempTree tree;
  model::Recording recording;
  auto& trace = recording.traces.emplace_back();
  trace.devices.emplace_back();
  trace.classes.emplace_back();
  model::ActivityEncoder encoder;
  encoder.add(model::BinEntry{0, 0, 1, 1});
  encoder.add(model::BinEntry{0, 1, 1, 1});
  trace.chunks.push_back({model::ChunkKind::kBins, 0, {}, {}, encoder.take()});
  ASSERT_TRUE(write_recording(tree / "x.jprof", recording));
  const auto read = read_recording(tree / "x.jprof");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
  EXPECT_THAT(read.error().message,
              AllOf(HasSubstr("row 1 of activity_chunk"), HasSubstr("kernel signature")));
}

}  // namespace
}  // namespace jouleprof::recording
