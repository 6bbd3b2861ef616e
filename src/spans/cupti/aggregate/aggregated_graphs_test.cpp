// Launches of graphs that are received as one record.
#include <gtest/gtest.h>

#include "spans/cupti/aggregate/aggregate_fixture.h"

namespace jouleprof::cupti {
namespace {

Activity node(std::int64_t start, std::int64_t end, std::uint32_t kernel_class,
              std::uint32_t correlation, std::uint32_t graph = 7) {
  Activity a = kernel(start, end, kernel_class);
  a.graph = graph;
  a.correlation = correlation;
  return a;
}

Activity graph(std::int64_t start, std::int64_t end, std::uint32_t correlation,
               std::uint32_t id = 7) {
  Activity a = node(start, end, 99, correlation, id);
  a.whole_graph = true;
  return a;
}

// A launch of 400 ns, node by node: 150 of them of class 0, 200 of class 1.
void add_launch(ActivityAggregator& aggregator, std::int64_t at, std::uint32_t correlation) {
  aggregator.add(node(at, at + 100, 0, correlation));
  aggregator.add(node(at + 150, at + 350, 1, correlation));
  aggregator.add(node(at + 350, at + 400, 0, correlation));
}

TEST(ActivityAggregator, SpreadsAGraphOverItsNodes) {
  Aggregated a;
  a.aggregator.add(graph(-100, 700, 1));  // before its nodes were seen, and of double the duration
  add_launch(a.aggregator, 1000, 2);
  a.aggregator.add(graph(2000, 2400, 3));
  a.settle(true);
  EXPECT_EQ(a.aggregator.graph_launches(), 2U);
  EXPECT_EQ(a.aggregator.graph_expanded(), 2U);
  EXPECT_EQ(a.aggregator.unknown_graphs(), 1U);
  EXPECT_EQ(a.sink.of_class(0), (Sum{300 + 150 + 150, 6}));
  EXPECT_EQ(a.sink.of_class(1), (Sum{400 + 200 + 200, 3}));
  EXPECT_EQ(a.sink.of_class(99), Sum{});
}

TEST(ActivityAggregator, PlacesALaunchWithoutRecordBetweenItsNeighbours) {
  Aggregated a;
  a.aggregator.add(node(1000, 1100, 0, 2));
  a.aggregator.add(node(1150, 1400, 1, 2));
  a.aggregator.add(UnrecordedLaunch{kBegin + 1050, 5, 7, 3});  // called while launch 2 ran
  a.aggregator.add(graph(1800, 2200, 4));
  a.aggregator.add(UnrecordedLaunch{kBegin + 5000, 5, 7, 5});
  a.aggregator.add(graph(5300, 5700, 6));  // so close that 5 took 300 at most
  a.settle(true);
  EXPECT_EQ(a.aggregator.graph_launches(), 4U);
  EXPECT_EQ(a.aggregator.graph_expanded(), 4U);
  EXPECT_EQ(a.sink.of_class(0), (Sum{100 + 100 + 100 + 75 + 100, 5}));
}

// A graph's memsets and copies are recorded where its kernels are not: they are not its nodes.
TEST(ActivityAggregator, TheMemsetsOfALaunchWithoutRecordAreNoShapeOfItsGraph) {
  for (const bool known : {true, false}) {
    for (const bool late : {false, true}) {
      Aggregated a;
      if (known) add_launch(a.aggregator, 1000, 2);
      a.settle();
      a.settle();
      a.aggregator.add(UnrecordedLaunch{kBegin + 2000, 5, 7, 3});
      if (late) a.settle(true);
      a.aggregator.add(node(2010, 2011, 0, 3));
      a.aggregator.add(node(2390, 2391, 0, 3));
      a.settle();
      a.settle();
      a.aggregator.add(graph(5000, 5400, 4));
      if (!known) add_launch(a.aggregator, 6000, 5);
      a.settle(true);
      EXPECT_EQ(a.sink.of_class(0).launches, 6U) << known << late;
      EXPECT_EQ(a.sink.of_class(1).launches, 3U) << known << late;
      EXPECT_EQ(a.sink.of_class(1).busy, 600U) << known << late;
    }
  }
}

TEST(ActivityAggregator, ALaunchWithoutRecordAndNeighboursTakesItsTemplatesTime) {
  Aggregated a;
  a.aggregator.add(node(1000, 1100, 0, 2));
  a.aggregator.add(node(1150, 1400, 1, 2));
  a.settle(true);
  a.aggregator.add(UnrecordedLaunch{kBegin + 8000, 5, 7, 3});
  a.aggregator.add(kernel(9000, 9100, 3));
  a.settle(true);
  EXPECT_EQ(a.sink.of_class(0), (Sum{200, 2}));
  EXPECT_EQ(a.sink.of_class(1), (Sum{500, 2}));
  EXPECT_EQ(a.aggregator.unplaced(), 0U);
}

// As CUPTI hands over the last launch before launches are recorded whole again: the begin of its
// first node is its own, all else is of the launch from 9000 on.
void add_overwritten(ActivityAggregator& aggregator) {
  aggregator.add(node(2000, 9100, 0, 3));
  aggregator.add(node(9150, 9350, 1, 3));
  aggregator.add(node(9350, 9400, 0, 3));
  aggregator.add(graph(3000, 3400, 4));
  aggregator.add(graph(9000, 9400, 5));
}

TEST(ActivityAggregator, NodesThatALaterLaunchHasWrittenAreMended) {
  for (const bool another : {true, false}) {
    Aggregated a;
    if (another) {  // in another shape, which is what is taken
      a.aggregator.add(node(1000, 1200, 0, 2));
      a.aggregator.add(node(1200, 1300, 1, 2));
      a.aggregator.add(node(1300, 1400, 0, 2));
    }
    add_overwritten(a.aggregator);
    a.settle(true);
    EXPECT_EQ(a.aggregator.graph_launches(), 3U);
    EXPECT_EQ(a.aggregator.graph_expanded(), 3U);
    if (another) {
      EXPECT_EQ(a.sink.of_class(0), (Sum{4 * 300, 8}));
      EXPECT_EQ(a.sink.of_class(1), (Sum{4 * 100, 4}));
    } else {
      EXPECT_EQ(a.sink.of_class(0), (Sum{3 * 150, 6}));
      EXPECT_EQ(a.sink.of_class(1), (Sum{3 * 200, 3}));
    }
    for (const auto& chunk : a.sink.trace.chunks) {
      EXPECT_FALSE(model::is_overlapped_bins(chunk.kind));
    }
  }
}

// A graph that is launched rarely: nothing of it is recorded after the launch without a record.
TEST(ActivityAggregator, NodesThatALaunchWithoutRecordHasWrittenAreMended) {
  Aggregated a;
  a.aggregator.add(node(2000, 50'100, 0, 3));  // the begin is its own
  a.aggregator.add(node(50'100, 50'400, 1, 3));
  a.aggregator.add(node(50'400, 50'500, 0, 3));
  a.aggregator.add(UnrecordedLaunch{kBegin + 49'000, 5, 7, 9});
  a.aggregator.add(kernel(48'000, 50'000, 3));  // after which it began
  a.settle(true);
  EXPECT_EQ(a.aggregator.graph_expanded(), 2U);
  EXPECT_EQ(a.sink.of_class(0), (Sum{2 * 200, 4}));
  EXPECT_EQ(a.sink.of_class(1), (Sum{2 * 300, 2}));
  EXPECT_EQ(a.sink.of_class(3), (Sum{2000, 1}));
}

TEST(ActivityAggregator, ALaunchThatWasCalledWhileTheOneBeforeRanHasWrittenNothing) {
  Aggregated a;
  a.aggregator.add(node(2000, 2400, 0, 3));
  a.aggregator.add(node(2400, 3000, 1, 3));
  a.aggregator.add(UnrecordedLaunch{kBegin + 2100, 5, 7, 9});
  a.settle(true);
  EXPECT_EQ(a.sink.of_class(0), (Sum{2 * 400, 2}));
  EXPECT_EQ(a.sink.of_class(1), (Sum{2 * 600, 2}));
}

TEST(ActivityAggregator, NodesOfALaunchThatIsNotKnownShapeNoOther) {
  Aggregated a;
  a.aggregator.add(node(2000, 900'100, 0, 3));
  a.aggregator.add(node(900'150, 900'350, 1, 3));
  a.aggregator.add(graph(3000, 3400, 4));
  a.settle(true);
  EXPECT_EQ(a.aggregator.graph_expanded(), 0U);
  EXPECT_EQ(a.sink.of_class(99), (Sum{400 + 400, 2}));
}

// Begins of the launch at 2000, ends of the one at 9000: as a template, all three would run at
// once.
TEST(ActivityAggregator, NodesWithStampsOfTwoLaunchesShapeNoOther) {
  Aggregated a;
  a.aggregator.add(node(2000, 9100, 0, 3));
  a.aggregator.add(node(2150, 9350, 1, 3));
  a.aggregator.add(node(2350, 9400, 0, 3));
  a.aggregator.add(graph(3000, 3400, 4));
  a.aggregator.add(graph(9000, 9400, 5));
  a.settle();
  const auto asked = a.aggregator.unknown_graphs();
  a.aggregator.add(graph(10'000, 10'400, 6));
  EXPECT_GT(a.aggregator.unknown_graphs(), asked) << "nodes are wanted again";
  add_launch(a.aggregator, 11'000, 7);
  a.settle(true);
  EXPECT_EQ(a.sink.of_class(0), (Sum{5 * 150, 10}));
  EXPECT_EQ(a.sink.of_class(1), (Sum{5 * 200, 5}));
}

// The same where no other launch is recorded: nothing says whose stamps they are.
TEST(ActivityAggregator, NodesThatRunTogetherShapeAnotherLaunchOnceASecondOneHasThem) {
  for (const bool again : {false, true}) {
    Aggregated a;
    for (const std::int64_t at : {0, 10'000}) {
      if (at > 0 && !again) break;
      const auto correlation = static_cast<std::uint32_t>(3 + at);
      a.aggregator.add(node(at + 2000, at + 4200, 0, correlation));
      a.aggregator.add(node(at + 2200, at + 4400, 1, correlation));
      a.settle();
      a.settle();
      EXPECT_EQ(a.aggregator.unknown_graphs(), 1U);
    }
    a.aggregator.add(graph(50'000, 52'400, 20'000));
    a.settle(true);
    EXPECT_EQ(a.aggregator.graph_expanded(), again ? 1U : 0U);
  }
}

// What had come of the first launch ran one by one: that is no other launch, whose shape would
// hold.
TEST(ActivityAggregator, NodesThatRunTogetherAreOneLaunchAlsoWhereTheirRecordsComeInTwoParts) {
  Aggregated a;
  for (const std::int64_t at : {0, 10'000}) {
    const auto correlation = static_cast<std::uint32_t>(3 + at);
    a.aggregator.add(node(at + 2000, at + 2200, 0, correlation));
    a.settle();
    a.aggregator.add(node(at + 2100, at + 2300, 1, correlation));
    a.settle();
    a.settle();
  }
  a.aggregator.add(graph(50'000, 50'300, 20'000));
  a.settle(true);
  EXPECT_EQ(a.aggregator.graph_expanded(), 1U);
  EXPECT_EQ(a.sink.of_class(0).launches, 3U);
  EXPECT_EQ(a.sink.of_class(1).launches, 3U);
}

TEST(ActivityAggregator, NodesThatRunTogetherReplaceNoneThatRunOneByOne) {
  Aggregated a;
  a.aggregator.add(node(0, 100, 0, 1));
  a.aggregator.add(node(100, 200, 1, 1));
  a.settle();
  a.settle();
  a.aggregator.add(node(1000, 1800, 0, 2));
  a.aggregator.add(node(1600, 1900, 1, 2));  // 200 of 900 ns together
  a.settle();
  a.settle();
  a.aggregator.add(graph(5000, 5200, 4));
  a.settle(true);
  EXPECT_EQ(a.sink.of_class(0), (Sum{100 + 700 + 100, 3}));
  EXPECT_EQ(a.sink.of_class(1), (Sum{100 + 200 + 100, 3}));
  EXPECT_EQ(a.aggregator.graph_expanded(), 1U);
}

TEST(ActivityAggregator, NodesThatJustReachIntoTheNextLaunchAreTheirOwn) {
  Aggregated a;
  a.aggregator.add(node(1000, 1200, 0, 2));
  a.aggregator.add(node(1200, 1410, 1, 2));
  a.aggregator.add(graph(1400, 1800, 3));
  a.settle(true);
  EXPECT_EQ(a.aggregator.graph_launches(), 1U);
  EXPECT_EQ(a.sink.of_class(0).launches, 2U);
  EXPECT_EQ(a.sink.of_class(0).busy + a.sink.of_class(1).busy, 800U);
}

TEST(ActivityAggregator, AGraphNeverSeenStaysOne) {
  Aggregated a;
  a.aggregator.add(node(0, 100, 0, 1, 8));
  a.aggregator.add(graph(200, 300, 2, 9));
  a.aggregator.add(graph(400, 500, 3, 9));
  a.settle(true);
  EXPECT_EQ(a.aggregator.graph_launches(), 2U);
  EXPECT_EQ(a.aggregator.graph_expanded(), 0U);
  EXPECT_EQ(a.aggregator.unknown_graphs(), 1U);
  EXPECT_EQ(a.sink.of_class(99), (Sum{200, 2}));
}

TEST(ActivityAggregator, ALaterLookAtTheNodesReplacesAnEarlierOne) {
  Aggregated a;
  a.aggregator.add(node(0, 100, 0, 1));
  a.aggregator.add(node(100, 200, 1, 1));
  a.settle();
  a.settle();
  // Two nodes now of another shape, the first launch's only: the second is not mixed into it.
  a.aggregator.add(node(1000, 1300, 0, 2));
  a.aggregator.add(node(1300, 1400, 1, 2));
  a.aggregator.add(node(2000, 2100, 5, 3));
  a.settle();
  a.settle();
  a.aggregator.add(graph(5000, 5400, 4));
  a.settle(true);
  EXPECT_EQ(a.sink.of_class(0), (Sum{100 + 300 + 300, 3}));
  EXPECT_EQ(a.sink.of_class(5), (Sum{100, 1}));
}

TEST(ActivityAggregator, FewerNodesAfterDropsAreNotBelieved) {
  for (const bool dropped : {false, true}) {
    Aggregated a;
    a.aggregator.add(node(0, 100, 0, 1));
    a.aggregator.add(node(100, 200, 1, 1));
    a.settle();
    a.settle();
    a.aggregator.add(node(1000, 1100, 0, 2));
    a.aggregator.settle(false, dropped);
    a.aggregator.settle(false, dropped);
    a.aggregator.add(graph(5000, 5200, 4));
    a.settle(true);
    EXPECT_EQ(a.sink.of_class(1).launches, dropped ? 2U : 1U);
  }
}

TEST(ActivityAggregator, ExpandedNodesWaitAsOthersDo) {
  Aggregated a;
  a.aggregator.add(node(0, 100, 0, 1));
  a.aggregator.add(node(900, 1000, 1, 1));
  a.settle();
  // Two seconds: its second half lies in what may still change.
  a.aggregator.add(graph(1 * kSecond, 3 * kSecond, 2));
  a.settle();
  a.aggregator.add(kernel(2900 * kMs, 2950 * kMs, 2));
  a.settle(true);
  EXPECT_EQ(a.aggregator.late(), 0U);
  EXPECT_EQ(a.sink.of_class(1).busy + a.sink.of_class(2).busy, std::uint64_t{100 + 200 * kMs});
}

}  // namespace
}  // namespace jouleprof::cupti
