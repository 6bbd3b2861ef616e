// Holds FORMAT.md and the files together.
#include <SQLiteCpp/Statement.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "base/file.h"
#include "base/text.h"
#include "recording/recording_fixture.h"
#include "recording/tables/schema.h"

namespace jouleprof::recording {
namespace {

std::string format_page() {
  return read_file(JOULEPROF_SOURCE_DIR "/src/recording/FORMAT.md").value();
}

// What lies between `begin` and `end`, each time.
std::vector<std::string> blocks(const std::string& text, std::string_view begin,
                                std::string_view end) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at)) {
    at += begin.size();
    const std::size_t stop = std::min(text.find(end, at), text.size());
    found.push_back(text.substr(at, stop - at));
    // The end may be the beginning of the next, as of a section's headline.
    at = begin == end ? stop + end.size() : stop;
  }
  return found;
}

TEST(Format, TheQueriesRunAndFindSomething) {
  const TempTree tree;
  model::Recording recording = RandomRecording(1).make();
  recording.run.command = {"python", "train.py"};
  recording.clock_points.push_back({HostTime{}, RealTime{std::chrono::hours{1}}, {}});
  ASSERT_TRUE(write_recording(tree / "x.jprof", recording));
  SQLite::Database db((tree / "x.jprof").string());
  const auto queries = blocks(format_page(), "```sql\n", "```");
  EXPECT_GE(queries.size(), 5U);
  for (const auto& query : queries) {
    SQLite::Statement statement(db, query);
    ASSERT_TRUE(statement.executeStep()) << query;
    if (query.find("AS command") != std::string::npos) {
      EXPECT_EQ(statement.getColumn(0).getString(), "python train.py");
    }
  }
}

TEST(Format, EveryTableAndColumnIsDescribedAndNoOther) {
  SQLite::Database db(":memory:", SQLite::OPEN_READWRITE);
  const std::string page = format_page();
  for (const Table& table : tables()) {
    db.exec(table.create_statement());
    const auto section = blocks(page, fmt::format("### `{}`", table.name), "\n#");
    ASSERT_EQ(section.size(), 1U) << table.name;
    std::vector<std::string> described;
    for (const auto line : split(section[0], '\n')) {
      if (line.starts_with("| `")) {
        for (auto& name : blocks(std::string(line.substr(0, line.find(" | "))), "`", "`")) {
          described.push_back(name);
        }
      }
    }
    std::vector<std::string> columns;
    SQLite::Statement info(db, fmt::format("PRAGMA table_info({})", table.name));
    while (info.executeStep()) columns.push_back(info.getColumn(1).getString());
    EXPECT_EQ(described, columns) << table.name;
  }
  EXPECT_EQ(blocks(page, "\n### `", "`").size(), tables().size());
}

TEST(Format, TheFileSaysWhatItIs) {
  const TempTree tree;
  ASSERT_TRUE(Writer::create(tree / "x.jprof")->finish());
  SQLite::Database db((tree / "x.jprof").string());
  const int id = db.execAndGet("PRAGMA application_id").getInt();
  EXPECT_EQ(id, kApplicationId);
  EXPECT_THAT(format_page(), testing::HasSubstr(fmt::format("{} (`0x{:X}`", id, id)));
  const int version = db.execAndGet("PRAGMA user_version").getInt();
  EXPECT_EQ(version, kSchemaVersion);
  EXPECT_THAT(format_page(),
              testing::HasSubstr(fmt::format("`PRAGMA user_version` | {}: ", version)));
}

}  // namespace
}  // namespace jouleprof::recording
