#include "recording/tables/table_rows.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "model/activity/activity_codec.h"
#include "recording/recording_fixture.h"
#include "recording/tables/schema.h"

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

using model::Window;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr HostTime at(int second) { return HostTime{seconds{second}}; }

// Writes `windows` in several batches and reads them back.
std::vector<Window> written(const std::vector<std::vector<Window>>& batches) {
  const TempTree tree;
  Writer writer = Writer::create(tree / "x.jprof").value();
  for (const auto& batch : batches) {
    EXPECT_TRUE(writer.append(batch));
    EXPECT_TRUE(writer.commit());
  }
  EXPECT_TRUE(writer.finish());
  auto read = read_recording(tree / "x.jprof");
  EXPECT_TRUE(read) << read.error().message;
  return read->windows;
}

TEST(WindowRows, ComeBackByTheirBeginsWithAllThatIsKnown) {
  const Window inner{"step", at(2), at(3), 10, 11, true};
  const Window outer{"epoch", at(1), at(9), 10, 10, false};
  const Window again{"step", at(4), at(5), 10, 11, true};
  const Window other_thread{"step", at(4), at(4), 10, 12, true};
  const Window other_process{"step", at(6), at(7), 13, 13, true};
  EXPECT_THAT(written({{inner, again, other_thread}, {}, {outer, other_process}}),
              ElementsAre(outer, inner, again, other_thread, other_process));
}

TEST(WindowRows, WhatCannotBeIsLeftOutAndTheRestStays) {
  const Window good{"", at(1), at(2), 1, 1, false};
  const Window backwards{"", at(2), at(1), 1, 1, false};
  const Window endless{"", at(1), HostTime::max(), 1, 1, false};
  const Window ancient{"", HostTime::min(), at(1), 1, 1, false};
  const Window too_long{
      "", HostTime{Duration{-kLargestInteger}}, HostTime{Duration{kLargestInteger}}, 1, 1, false};
  EXPECT_THAT(written({{backwards, endless, ancient, too_long, good}}), ElementsAre(good));
}

TEST(WindowRows, ALongNameIsCutWhereACharacterBegins) {
  std::string name(kLongestWindowName - 1, 'x');
  const auto read = written({{{name + "é and more", at(1), at(2), 1, 1, false},
                              {name + "ef", at(3), at(4), 1, 1, false}}});
  ASSERT_THAT(read, SizeIs(2));
  EXPECT_EQ(read[0].name, name);
  EXPECT_EQ(read[1].name, name + "e");
}

TEST(WindowRows, EachMayHaveANameOfItsOwn) {
  std::vector<Window> windows;
  for (int i = 0; i < 60'000; ++i) {
    windows.push_back({"step " + std::to_string(i), at(i), at(i + 1), 1, 1, false});
  }
  windows.push_back({"step 0", at(70'000), at(70'001), 1, 1, false});
  EXPECT_EQ(written({windows}), windows);
}

TEST(WindowRows, AMillionTakeLittle) {
  const TempTree tree;
  Writer writer = Writer::create(tree / "x.jprof").value();
  std::vector<Window> windows;
  constexpr int kCount = 100'000;
  for (int i = 0; i < kCount; ++i) {
    const HostTime begin = at(1'000'000) + Duration{i * 10'000'000LL};
    windows.push_back({"step", begin, begin + Duration{9'000'000}, 1, 1 + i % 2, false});
  }
  ASSERT_TRUE(writer.append(windows));
  ASSERT_TRUE(writer.finish());
  EXPECT_LT(std::filesystem::file_size(tree / "x.jprof"), 28U * kCount);
}

}  // namespace

}  // namespace jouleprof::recording
