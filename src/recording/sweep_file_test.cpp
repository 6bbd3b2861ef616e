#include "recording/sweep_file.h"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::recording {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

model::SweepPlan plan() {
  model::SweepPlan plan;
  plan.command = {"python", "train.py", "--name", "a \"b\""};
  plan.knob = "power_limit_watts";
  plan.settings = {700, 500.5, 200};
  plan.reference = 700;
  plan.found = 650;
  plan.devices = {"GPU-1"};
  plan.window = "step";
  plan.bench = "deit-b";
  plan.observe = true;
  plan.max_slowdown = 0.05;
  plan.seed = 4'000'000'000;
  return plan;
}

model::SweepRun run(unsigned number) {
  model::SweepRun run;
  run.number = number;
  run.block = 2;
  run.setting = 500.5;
  run.started_unix_ns = 1'795'392'000'123'456'789;
  run.wall_seconds = 12.25;
  run.seconds = 0.1;
  run.joules = 1.0 / 3;
  run.exit_status = 0;
  run.limited_by_heat = 0;
  run.memory_megahertz = 2619;
  run.loss = 0.25;
  run.simulated = true;
  run.unranked = "reverted";
  run.remark = "not steady";
  return run;
}

TEST(SweepFile, KeepsPlanAndRunsExactly) {
  const TempTree tree;
  const auto path = tree / "sweep.jprof";
  {
    auto file = SweepFile::create(path, plan(), false);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(run(1), {}));
  }
  auto file = SweepFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(file->append(run(2), {}));
  const auto record = read_sweep(path);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->plan, plan());
  EXPECT_EQ(record->runs, (std::vector{run(1), run(2)}));
  EXPECT_TRUE(is_sweep_file(path));
  EXPECT_FALSE(file->append(run(2), {}));  // a number is given once
}

// A rollback journal that a killed writer left has to be played back.
TEST(SweepFile, IsReadAfterItsWriterWasKilled) {
  const TempTree tree;
  const auto killed = tree / "killed.jprof";
  {
    auto file = SweepFile::create(tree / "sweep.jprof", plan(), false);
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE(file->append(run(1), {}));
    SQLite::Database db((tree / "sweep.jprof").string(), SQLite::OPEN_READWRITE);
    db.exec("PRAGMA cache_size = 1; BEGIN; INSERT INTO run VALUES (2, '', zeroblob(1000000))");
    fs::copy(tree / "sweep.jprof", killed);
    fs::copy(tree / "sweep.jprof-journal", tree / "killed.jprof-journal");
  }
  const auto record = read_sweep(killed);
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->runs, std::vector{run(1)});
  auto file = SweepFile::open(killed);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_TRUE(file->append(run(2), {}));
}

TEST(SweepFile, KeepsTheBytesOfARunsRecording) {
  const TempTree tree;
  const auto path = tree / "sweep.jprof";
  const std::string bytes = std::string(100'000, 'x') + '\0' + "end";
  std::ofstream(tree / "run.jprof", std::ios::binary) << bytes;
  auto file = SweepFile::create(path, plan(), false);
  ASSERT_TRUE(file->append(run(1), tree / "run.jprof"));
  ASSERT_TRUE(file->append(run(2), {}));
  ASSERT_TRUE(extract_run(path, 1, tree / "out.jprof"));
  EXPECT_EQ(*read_file(tree / "out.jprof"), bytes);
  EXPECT_EQ(extract_run(path, 2, tree / "out.jprof").error().code, Errc::kNotFound);
  EXPECT_EQ(extract_run(path, 3, tree / "out.jprof").error().code, Errc::kNotFound);
}

TEST(SweepFile, DoesNotReplaceAFileUnasked) {
  const TempTree tree;
  const auto path = tree / "sweep.jprof";
  ASSERT_TRUE(SweepFile::create(path, plan(), false));
  EXPECT_THAT(SweepFile::create(path, plan(), false).error().message, HasSubstr("--resume"));
  EXPECT_TRUE(SweepFile::create(path, plan(), true));
}

TEST(SweepFile, RefusesOtherFiles) {
  const TempTree tree;
  EXPECT_EQ(read_sweep(tree / "none").error().code, Errc::kNotFound);
  std::ofstream(tree / "text")
      << "not a database, but long enough to have a header of its own ..."
         "................................................................";
  EXPECT_FALSE(is_sweep_file(tree / "text"));
  const auto text = read_sweep(tree / "text");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Errc::kUnsupported);
  EXPECT_THAT(text.error().message, HasSubstr("text is not a sweep; jouleprof sweep writes one"));
  const auto folder = read_sweep(tree.root());
  ASSERT_FALSE(folder);
  EXPECT_THAT(folder.error().message, HasSubstr("is a folder, not a sweep"));
}

TEST(SweepFile, NamesDamageThatSqliteDoesNotUnderstand) {
  const TempTree tree;
  ASSERT_TRUE(SweepFile::create(tree / "x", plan(), false));
  std::fstream file(tree / "x", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(47);  // the last byte of the schema's format, which is 4
  file.put('\x09');
  file.close();
  const auto read = read_sweep(tree / "x");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("the file is damaged"));
}

TEST(SweepFile, ADamagedNameInAMessageOfSqliteStaysOnOneLine) {
  const TempTree tree;
  ASSERT_TRUE(SweepFile::create(tree / "x", plan(), false));
  std::string bytes = *read_file(tree / "x");
  // The table and its statement in the schema: "tablesweepsweep\2CREATE TABLE sweep".
  const auto at = bytes.find("sweepsweep");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 2] = '\n';
  std::ofstream(tree / "x", std::ios::binary) << bytes;
  const auto read = read_sweep(tree / "x");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kCorrupt);
  EXPECT_THAT(read.error().message, HasSubstr("(sw ep)"));
}

}  // namespace
}  // namespace jouleprof::recording
