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
    state.ticks = 1;
    model::DomainSnapshot domain;
    domain.domain.device = "gpu0";
    state.snapshot.domains.push_back(domain);
    state.domains.push_back({model::Provenance::kMeasured, true, true, true, 0});
  }
  Pages::Source source() {
    return [this](const Pages::Reader& reader) {
      ++reads;
      reader(state, accounts);
    };
  }
  int reads = 0;
};

Pages empty_pages() {
  return Pages({}, [](const Pages::Reader&) { ADD_FAILURE() << "there is no tick yet"; });
}

TEST(Pages, AreAsTheHeaderAcceptAsks) {
  Machine machine;
  Pages pages({}, machine.source());
  pages.update(machine.state, machine.accounts, false);
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

TEST(Pages, MetricsAreCompressedForThoseThatAskForIt) {
  Machine machine;
  Pages pages({}, machine.source());
  pages.update(machine.state, machine.accounts, false);
  HttpRequest request{"/metrics", "", "application/openmetrics-text"};
  request.accept_encoding = "deflate, gzip;q=0.5";
  const auto compressed = pages.respond(request);
  EXPECT_EQ(compressed.encoding, "gzip");
  EXPECT_EQ(compressed.type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
  EXPECT_EQ(compressed.body->substr(0, 2), "\x1f\x8b");
  request.accept_encoding = "gzip;q=0";
  const auto plain = pages.respond(request);
  EXPECT_EQ(plain.encoding, "");
  EXPECT_THAT(*plain.body, EndsWith("# EOF\n"));
  EXPECT_LT(compressed.body->size(), plain.body->size());
  EXPECT_TRUE(accepts_gzip("gzip"));
  EXPECT_TRUE(accepts_gzip("br , gzip ; q=1.0"));
  EXPECT_FALSE(accepts_gzip(""));
  EXPECT_FALSE(accepts_gzip("identity, x-gzip"));
}

TEST(Pages, BeforeTheFirstTickItIsAliveAndNotReady) {
  auto pages = empty_pages();
  EXPECT_EQ(pages.respond({"/healthz", "", ""}).status, 200u);
  EXPECT_EQ(pages.respond({"/readyz", "", ""}).status, 503u);
  EXPECT_EQ(pages.respond({"/metrics", "", ""}).status, 503u);
  EXPECT_EQ(pages.respond({"/api/v1/snapshot", "", ""}).status, 503u);
}

TEST(Pages, TheLivePageLoadsNothingFromElsewhere) {
  const auto page = empty_pages().respond({"/", "", ""});
  EXPECT_EQ(page.type, "text/html; charset=utf-8");
  EXPECT_THAT(page.policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(*page.body, testing::StartsWith("<!doctype html>"));
  for (const char* word : {"src=", "@import", "url(", "innerHTML", "https://"}) {
    EXPECT_THAT(*page.body, Not(HasSubstr(word)));
  }
}

TEST(Pages, EventsAreTheSnapshotOnOneLine) {
  Machine machine;
  PageOptions options;
  options.host = "node7";
  Pages pages(options, machine.source());
  const auto event = pages.update(machine.state, machine.accounts, true);
  const auto snapshot = pages.respond({"/api/v1/snapshot", "", ""});
  EXPECT_EQ(snapshot.type, "application/json");
  EXPECT_EQ(*event, "data: " + *snapshot.body + "\n");
  const auto stream = pages.respond({"/api/v1/events", "", ""});
  EXPECT_TRUE(stream.stream);
  EXPECT_EQ(stream.body, event);
  EXPECT_THAT(*snapshot.body, HasSubstr("\"host\": \"node7\""));
}

TEST(Pages, AreRenderedOncePerTickAndInAdvanceWhileInDemand) {
  Machine machine;
  Pages pages({}, machine.source());
  EXPECT_EQ(pages.update(machine.state, machine.accounts, false), nullptr);
  const auto first = pages.respond({"/metrics", "", ""}).body;
  EXPECT_EQ(pages.respond({"/metrics", "", ""}).body, first);
  EXPECT_EQ(machine.reads, 1);  // at the first request

  machine.state.ticks = 2;
  pages.update(machine.state, machine.accounts, false);
  const auto second = pages.respond({"/metrics", "", ""}).body;
  EXPECT_THAT(*second, HasSubstr("\njouleprof_ticks_total 2\n"));
  EXPECT_EQ(machine.reads, 1);
  const auto open = pages.respond({"/metrics", "", "application/openmetrics-text"}).body;
  EXPECT_THAT(*open, HasSubstr("\njouleprof_ticks_total 2\n"));
  EXPECT_EQ(machine.reads, 2);  // no one had requested this one
}

TEST(Pages, ReadyOnceSomethingIsMeasured) {
  Machine machine;
  Pages pages({}, machine.source());
  machine.state.domains[0].counted = false;
  pages.update(machine.state, machine.accounts, false);
  const auto without = pages.respond({"/readyz", "", ""});
  EXPECT_EQ(without.status, 503u);
  EXPECT_THAT(*without.body, HasSubstr("jouleprof doctor"));
  machine.state.domains[0].counted = true;
  pages.update(machine.state, machine.accounts, false);
  EXPECT_EQ(pages.respond({"/readyz", "", ""}).status, 200u);
}

TEST(Pages, OthersDoNotExist) {
  auto pages = empty_pages();
  EXPECT_EQ(pages.respond({"/", "", ""}).status, 200u);
  for (const char* path : {"", "/metric", "/metrics/", "/../etc/passwd", "metrics"}) {
    EXPECT_EQ(pages.respond({path, "", ""}).status, 404u) << path;
  }
}

}  // namespace
}  // namespace jouleprof::serve
