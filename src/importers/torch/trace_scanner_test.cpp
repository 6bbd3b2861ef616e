#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "importers/torch/example_torch_trace.h"
#include "importers/torch/torch_trace.h"
#include "tests/support/temp_tree.h"

namespace jouleprof::importers {
namespace {

TEST(TraceScanner, ThePiecesAreTheFile) {
  for (const std::string& text : std::vector<std::string>{
           trace_text(), "[]", " [ {} , {\"a\":1}\n]  \n", "{\"traceEvents\":[]}",
           "{\"a\":[1,{\"b\":2}] , \"traceEvents\" : [ {} ,5, {} ] ,\"z\":null}\n"}) {
    const TempTree tree{{"t", text}};
    auto scanner = TraceScanner::open(tree / "t");
    ASSERT_TRUE(scanner);
    std::string all;
    int last = 0;
    for (;;) {
      const auto piece = scanner->next();
      ASSERT_TRUE(piece) << piece.error().message;
      if (*piece == TraceScanner::Piece::kEnd) break;
      if (*piece == TraceScanner::Piece::kLast) ++last;
      all += scanner->text();
    }
    EXPECT_EQ(all, text);
    EXPECT_EQ(last, 1);
    EXPECT_FALSE(scanner->cut_off());
    EXPECT_EQ(scanner->closing(), "");
  }
}

TEST(TraceScanner, WhatIsNoJsonIsRefused) {
  for (const char* text :
       {"[{\"ts\": 12abc}]", "[{} {}]", "[{},]", "[,{}]", "[{}] more",
        "{\"a\":1 \"traceEvents\":[]}", "{\"traceEvents\":[]} []", "{,\"traceEvents\":[]}",
        "{\"traceEvents\":[] \"a\":1}", "{\"a\": {1: 2}, \"traceEvents\":[]}"}) {
    const TempTree tree{{"t", text}};
    auto scanner = TraceScanner::open(tree / "t");
    ASSERT_TRUE(scanner);
    Result<TraceScanner::Piece> piece = TraceScanner::Piece::kOther;
    while (piece && *piece != TraceScanner::Piece::kEnd) piece = scanner->next();
    ASSERT_FALSE(piece) << text;
    EXPECT_EQ(piece.error().code, Errc::kCorrupt);
  }
}

TEST(TraceScanner, AByteOrderMarkIsLeftOut) {
  const TempTree tree{{"t", "\xEF\xBB\xBF [{}]"}};
  auto scanner = TraceScanner::open(tree / "t");
  ASSERT_TRUE(scanner);
  std::string all;
  for (;;) {
    const auto piece = scanner->next();
    ASSERT_TRUE(piece) << piece.error().message;
    if (*piece == TraceScanner::Piece::kEnd) break;
    all += scanner->text();
  }
  EXPECT_EQ(all, " [{}]");
}

}  // namespace
}  // namespace jouleprof::importers
