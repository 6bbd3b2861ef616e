#include "apps/serve/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jouleprof::serve {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

struct Machine {
  analysis::MachineState state;
  analysis::EnergyAccounts accounts{1, {}};

  Machine() {
    model::DomainSnapshot domain;
    domain.domain.device = "gpu0";
    state.snapshot.domains.push_back(domain);
    state.domains.push_back({model::Provenance::kMeasured, true, true, true, 0});
  }
};

TEST(Pages, AreAsTheHeaderAcceptAsks) {
  const Machine machine;
  Pages pages({});
  pages.update(machine.state, machine.accounts);
  const auto text = pages.respond({"/metrics", "", "*/*"});
  EXPECT_EQ(text.status, 200u);
  EXPECT_EQ(text.type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(*text.body, Not(HasSubstr("# EOF")));
  const auto open = pages.respond(
      {"/metrics", "", "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;q=0.5"});
  EXPECT_EQ(open.type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_THAT(*open.body, EndsWith("# EOF\n"));
}

TEST(Pages, OpenMetricsIsForThoseThatKnowIt) {
  EXPECT_TRUE(accepts_open_metrics("application/openmetrics-text"));
  EXPECT_TRUE(accepts_open_metrics("text/html, application/openmetrics-text; version=0.0.1"));
  EXPECT_FALSE(accepts_open_metrics("application/openmetrics-text; version=2.0.0"));
  EXPECT_FALSE(accepts_open_metrics("application/openmetrics-text;q=0"));
  EXPECT_FALSE(accepts_open_metrics("text/plain;version=0.0.4"));
  EXPECT_FALSE(accepts_open_metrics(""));
  EXPECT_FALSE(accepts_open_metrics(",;,"));
}

TEST(Pages, BeforeTheFirstTickItIsAliveAndNotReady) {
  Pages pages({});
  EXPECT_EQ(pages.respond({"/healthz", "", ""}).status, 200u);
  EXPECT_EQ(pages.respond({"/readyz", "", ""}).status, 503u);
  EXPECT_EQ(pages.respond({"/metrics", "", ""}).status, 503u);
  EXPECT_EQ(pages.respond({"/api/v1/snapshot", "", ""}).status, 503u);
}

TEST(Pages, TheLivePageLoadsNothingFromElsewhere) {
  const auto page = Pages({}).respond({"/", "", ""});
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_THAT(page.policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(*page.body, testing::StartsWith("<!doctype html>"));
  for (const char* word : {"src=", "@import", "url(", "innerHTML", "https://"}) {
    EXPECT_THAT(*page.body, Not(HasSubstr(word)));
  }
}

TEST(Pages, EventsAreTheSnapshotOnOneLine) {
  const Machine machine;
  PageOptions options;
  options.host = "node7";
  Pages pages(options);
  const auto event = pages.update(machine.state, machine.accounts);
  const auto snapshot = pages.respond({"/api/v1/snapshot", "", ""});
  EXPECT_EQ(snapshot.type, "application/json");
  EXPECT_EQ(*event, "data: " + *snapshot.body + "\n");
  const auto stream = pages.respond({"/api/v1/events", "", ""});
  EXPECT_TRUE(stream.stream);
  EXPECT_EQ(stream.body, event);
  EXPECT_THAT(*snapshot.body, HasSubstr("\"host\": \"node7\""));
}

TEST(Pages, ReadyOnceSomethingIsMeasured) {
  Machine machine;
  Pages pages({});
  machine.state.domains[0].counted = false;
  pages.update(machine.state, machine.accounts);
  const auto without = pages.respond({"/readyz", "", ""});
  EXPECT_EQ(without.status, 503u);
  EXPECT_THAT(*without.body, HasSubstr("jouleprof doctor"));
  machine.state.domains[0].counted = true;
  pages.update(machine.state, machine.accounts);
  EXPECT_EQ(pages.respond({"/readyz", "", ""}).status, 200u);
}

TEST(Pages, OthersDoNotExist) {
  const Pages pages({});
  EXPECT_EQ(pages.respond({"/", "", ""}).status, 200u);
  for (const char* path : {"", "/metric", "/metrics/", "/../etc/passwd", "metrics"}) {
    EXPECT_EQ(pages.respond({path, "", ""}).status, 404u) << path;
  }
}

}  // namespace
}  // namespace jouleprof::serve
