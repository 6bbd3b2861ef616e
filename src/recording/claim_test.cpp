#include "recording/claim.h"

#include <gmock/gmock.h>

#include "base/file.h"
#include "recording/recording_fixture.h"

namespace jouleprof::recording {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Claim, ExcludesAnotherOfTheSameName) {
  const TempTree tree({{"x.jprof", "old"}});
  {
    const auto first = Claim::take(tree / "x.jprof", true);
    ASSERT_TRUE(first) << first.error().message;
    EXPECT_TRUE(first->replaces());
    // As another process would: a lock belongs to the open file.
    const auto second = Claim::take(tree / "x.jprof", true);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::kInvalidArgument);
    EXPECT_THAT(second.error().message, HasSubstr("another jouleprof is writing it"));
  }
  EXPECT_TRUE(Claim::take(tree / "x.jprof", true));
  EXPECT_EQ(read_file(tree / "x.jprof"), "old");
  EXPECT_THAT(list_folder(tree / ".").value(), ElementsAre("x.jprof"));
}

TEST(Claim, IsTheWritersUntilItCloses) {
  const TempTree tree;
  auto writer = Writer::create(tree / "x.jprof");
  ASSERT_TRUE(writer);
  EXPECT_FALSE(Writer::create(tree / "x.jprof", {.overwrite = true}));
  ASSERT_TRUE(writer->finish());
  EXPECT_TRUE(Writer::create(tree / "x.jprof", {.overwrite = true}));
}

TEST(Claim, OldSideFilesDoNotBelongToANewFile) {
  const TempTree tree;
  ASSERT_TRUE(write_recording(tree / "x.jprof", RandomRecording(1).make()));
  std::ofstream(tree / "x.jprof-wal") << "of a writer that was killed";
  const auto recording = RandomRecording(2).make();
  ASSERT_TRUE(write_recording(tree / "x.jprof", recording, {.overwrite = true}));
  EXPECT_THAT(list_folder(tree / ".").value(), ElementsAre("x.jprof"));
  const auto read = read_recording(tree / "x.jprof");
  ASSERT_TRUE(read) << read.error().message;
  expect_equal(*read, recording);
}

TEST(WriteRecording, AFailureKeepsTheOldFile) {
  const TempTree tree;
  ASSERT_TRUE(write_recording(tree / "x.jprof", RandomRecording(1).make()));
  const auto before = read_file(tree / "x.jprof");
  auto damaged = RandomRecording(2).make();
  damaged.readings.powers.push_back({model::SensorId{4'000'000}, HostTime{}, Power::watts(1)});
  EXPECT_FALSE(write_recording(tree / "x.jprof", damaged, {.overwrite = true}));
  EXPECT_EQ(read_file(tree / "x.jprof"), before);
  EXPECT_THAT(list_folder(tree / ".").value(), ElementsAre("x.jprof"));
}

}  // namespace
}  // namespace jouleprof::recording
