#include "model/record_fields.h"

#include <gtest/gtest.h>

namespace jouleprof::model {
namespace {

struct Anything {
  template <class T>
  operator T() const {
    return T();
  }
};

// The members of an aggregate: as many values as it can be made of.
template <class T, class... Values>
constexpr std::size_t members() {
  if constexpr (requires { T{Values{}..., Anything{}}; }) {
    return members<T, Values..., Anything>();
  } else {
    return sizeof...(Values);
  }
}

template <class Record>
std::size_t listed() {
  std::size_t count = 0;
  Record record;
  fields(record, [&count](std::string_view, auto&&, FieldTraits = {}) { ++count; });
  return count;
}

// A member that is not in its record's list would be lost on its way into a recording.
TEST(ActivityFields, EveryMemberIsListed) {
  EXPECT_EQ(listed<TracedDevice>(), members<TracedDevice>());
  EXPECT_EQ(listed<KernelClass>(), members<KernelClass>() + 2 + 2);  // grid and block: three each
  EXPECT_EQ(listed<Layer>(), members<Layer>());
  EXPECT_EQ(listed<Range>(), members<Range>());
  EXPECT_EQ(listed<Scope>(), members<Scope>());
  EXPECT_EQ(listed<ActivityChunk>(), members<ActivityChunk>());
  EXPECT_EQ(listed<TraceStatus>(), members<TraceStatus>());
  EXPECT_EQ(listed<SpoolPosition>(), members<SpoolPosition>());
  EXPECT_EQ(listed<Rank>(), members<Rank>());
  EXPECT_EQ(listed<TracedProcess>(), members<TracedProcess>() - 1 + members<Rank>());
}

TEST(ActivityFields, EveryValueOfAnEnumerationHasAWord) {
  EXPECT_EQ(words_of(ActivityKind{}).size(), static_cast<std::size_t>(ActivityKind::kGraph) + 1);
  EXPECT_EQ(words_of(Phase{}).size(), static_cast<std::size_t>(Phase::kOptimizer) + 1);
  EXPECT_EQ(words_of(ChunkKind{}).size(), static_cast<std::size_t>(ChunkKind::kServing) + 1);
  for (std::uint8_t i = 1; i <= static_cast<int>(ChunkKind::kServing); ++i) {
    const auto kind = static_cast<ChunkKind>(i);
    EXPECT_EQ(parse_word<ChunkKind>(words_of(kind)[i]), kind);
  }
}

}  // namespace
}  // namespace jouleprof::model
