// Boards keep the numbers that the program's runtime gives them, whatever a monitor leaves out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/sampling/sampling_fixture.h"
#include "session/windows/under_run_fixture.h"

namespace jouleprof::session {
namespace {

using model::DomainId;
using testing::ElementsAre;

std::optional<std::string> three_and_one(const std::string& name) {
  if (name == "CUDA_VISIBLE_DEVICES") return "3,1";
  return std::nullopt;
}

std::vector<std::string> board_names(const EnergySource& source) {
  std::vector<std::string> names;
  for (const auto& domain : source.domains()) {
    if (!domain.parent) names.push_back(domain.device);
  }
  return names;
}

TEST(VisibleBoardsTest, OfALiveMonitor) {
  for (const auto& words : {std::vector<std::string>{}, {"gpu3"}}) {
    LiveOptions options;
    options.devices.words = words;
    options.environment = three_and_one;
    Meters meters;
    for (int i = 0; i < 4; ++i) {
      meters.push_back(
          std::make_unique<FakeMeter>("gpu" + std::to_string(i), "GPU-" + std::to_string(i)));
    }
    const auto monitor = LiveMonitor::open(std::move(options), std::move(meters));
    ASSERT_TRUE(monitor) << monitor.error().message;
    // Each meter has a board and its memory.
    EXPECT_THAT((*monitor)->visible_boards(), ElementsAre(DomainId{6}, DomainId{2}));
    if (words.empty()) {
      EXPECT_THAT(board_names(**monitor), ElementsAre("gpu1", "gpu3"));
    } else {
      EXPECT_THAT(board_names(**monitor), ElementsAre("gpu3"));
    }
  }
}

TEST(VisibleBoardsTest, OfAMonitorUnderRun) {
  std::vector<meters::OfferedDomain> offered;
  for (unsigned i = 0; i < 4; ++i) {
    model::Domain d;
    d.id = DomainId{i};
    d.device = "gpu" + std::to_string(i);
    d.uuid = "GPU-" + std::to_string(i);
    offered.push_back({d, i != 2});
  }
  const auto server =
      HubServer::start(*HubSocket::in_session_folder(), {.records = true}, offered, {}, [] {});
  ASSERT_TRUE(server) << server.error().message;
  for (const auto& words : {std::vector<std::string>{}, {"gpu3"}}) {
    const auto monitor = open_under_run((*server)->path(), {.words = words}, three_and_one);
    ASSERT_TRUE(monitor) << monitor.error().message;
    EXPECT_THAT((*monitor)->visible_boards(), ElementsAre(DomainId{3}, DomainId{1}));
  }
}

}  // namespace
}  // namespace jouleprof::session
