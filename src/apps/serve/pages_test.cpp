#include "apps/serve/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

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
    state.now = HostTime{std::chrono::minutes{1}};
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
  // A tick up to `at`, in which a process of the job used 3 J.
  void tick(HostTime at, const char* job) {
    ++state.ticks;
    state.now = at;
    analysis::Worker worker{1, 41, "train", {}};
    worker.owner.job = job;
    const double weights[] = {1};
    accounts.begin_tick(at, {worker});
    accounts.charge({0, Energy::joules(3), std::chrono::seconds{5}, {}, weights, 0});
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
  EXPECT_TRUE(accepts_open_metrics("Application/OpenMetrics-Text; Version=1.0.0"));
  // Prometheus 3, and one whose scrape_protocols have the text format first.
  EXPECT_TRUE(accepts_open_metrics(
      "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
      "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,"
      "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"));
  EXPECT_FALSE(accepts_open_metrics(
      "text/plain;version=0.0.4;q=0.6,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.2"));
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
  EXPECT_TRUE(accepts_gzip("GZIP"));
  EXPECT_FALSE(accepts_gzip("gzip; Q=0.0"));
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

TEST(Pages, ATickThatIsNotKeptYetIsOnlyNoted) {
  Machine machine;
  Pages pages({}, machine.source());
  pages.update(machine.state, machine.accounts, false);
  const auto before = pages.respond({"/metrics", "", ""});
  ++machine.state.ticks;
  pages.note(machine.state);
  EXPECT_EQ(pages.respond({"/metrics", "", ""}).body, before.body);
  EXPECT_EQ(pages.respond({"/api/v1/snapshot", "", ""}).status, 503u);
  pages.update(machine.state, machine.accounts, false);
  EXPECT_NE(pages.respond({"/metrics", "", ""}).body, before.body);
  EXPECT_EQ(pages.respond({"/api/v1/snapshot", "", ""}).status, 200u);
  const auto history = *pages.respond({"/api/v1/history", "", ""}).body;
  const auto times = history.substr(history.find('['), history.find(']') - history.find('['));
  EXPECT_EQ(std::count(times.begin(), times.end(), ','), 1) << times;  // of two ticks, each once
}

// When sensors appear, another service goes on with the counters. Until its first tick it has no
// gauges and no CPU time, which is a counter.
TEST(Pages, AServiceThatContinuesIsShownFromItsFirstTickOn) {
  Machine machine;
  machine.tick(HostTime{std::chrono::hours{1}}, "7");
  machine.state.cost.cpu_time = std::chrono::seconds{2};
  Pages pages({}, machine.source());
  pages.update(machine.state, machine.accounts, false);
  machine.state.cost = {};
  machine.state.now = {};
  auto early = pages.respond({"/metrics", "", ""});
  EXPECT_EQ(early.status, 503u);
  EXPECT_FALSE(early.is_final);  // the request waits
  machine.tick(HostTime{std::chrono::hours{2}}, "7");
  machine.state.cost.cpu_time = std::chrono::seconds{3};
  pages.update(machine.state, machine.accounts, false);
  EXPECT_THAT(*pages.respond({"/metrics", "", ""}).body, HasSubstr("process_cpu_seconds_total 3"));
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

TEST(Pages, HaveTheNamesOfTheEcosystem) {
  Machine machine;
  PageOptions options;
  options.metrics_path = "/energy";
  Pages pages(options, machine.source());
  pages.update(machine.state, machine.accounts, false);
  EXPECT_EQ(*pages.respond({"/-/healthy", "", ""}).body, "ok\n");
  EXPECT_EQ(*pages.respond({"/-/ready", "", ""}).body, *pages.respond({"/readyz", "", ""}).body);
  EXPECT_THAT(*pages.respond({"/energy", "", ""}).body, HasSubstr("jouleprof_ticks_total"));
  EXPECT_EQ(pages.respond({"/metrics", "", ""}).status, 404u);
  EXPECT_TRUE(is_free_path("/metrics") && is_free_path("/energy/metrics"));
  for (const char* path : {"", "metrics", "/", "/readyz", "/-/ready", "/api/v1/snapshot", "/a?b"}) {
    EXPECT_FALSE(is_free_path(path)) << path;
  }
}

TEST(Pages, AreRenderedOncePerTick) {
  Machine machine;
  Pages pages({}, machine.source());
  EXPECT_EQ(pages.update(machine.state, machine.accounts, false), nullptr);
  const auto first = pages.respond({"/metrics", "", ""}).body;
  EXPECT_EQ(pages.respond({"/metrics", "", ""}).body, first);
  EXPECT_EQ(machine.reads, 1);

  machine.state.ticks = 2;
  // It is known, and not shown yet: its counters may not be on the disk.
  EXPECT_EQ(pages.respond({"/metrics", "", ""}).body, first);
  pages.update(machine.state, machine.accounts, false);
  EXPECT_THAT(*pages.respond({"/metrics", "", ""}).body, HasSubstr("\njouleprof_ticks_total 2\n"));
  machine.state.ticks = 3;
  const auto open = pages.respond({"/metrics", "", "application/openmetrics-text"});
  EXPECT_FALSE(open.is_final);  // there is no page of the second tick to show
}

TEST(Pages, FiguresThatAreTooOldWaitForATick) {
  Machine machine;
  std::vector<HostTime> asked;
  PageOptions options;
  options.ask = [&](HostTime t) { asked.push_back(t); };
  Pages pages(options, machine.source());
  const HostTime now = HostClock::now();
  machine.state.now = now - std::chrono::seconds{9};
  pages.update(machine.state, machine.accounts, false);
  HttpRequest request{"/metrics", "", ""};
  request.received = now;
  EXPECT_FALSE(pages.respond(request).is_final);
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0], now - kFreshFigures);
  request.path = "/healthz";
  EXPECT_TRUE(pages.respond(request).is_final);
  for (const char* path : {"/metrics", "/api/v1/snapshot"}) {
    request.path = path;
    machine.state.now = asked[0];
    pages.update(machine.state, machine.accounts, false);
    EXPECT_TRUE(pages.respond(request).is_final);
  }
  EXPECT_EQ(asked.size(), 1u);
  // Where no tick ends, a late answer is better than none.
  request.received = now - std::chrono::seconds{5};
  machine.state.now = request.received - std::chrono::seconds{9};
  pages.update(machine.state, machine.accounts, false);
  EXPECT_EQ(pages.respond(request).status, 200u);
}

// Two readers, and a job that uses energy from the second tick on.
struct SeriesOfAJob {
  std::set<std::uint64_t> connections;
  Machine machine;
  Pages pages{{}, machine.source()};

  SeriesOfAJob() {
    machine.state.now = HostTime{std::chrono::hours{1}};
    pages.update(machine.state, machine.accounts, false);
  }
  // `connection`: the one that it keeps.
  std::string energy(const char* peer, const char* scrape_timeout = "10",
                     std::uint64_t connection = 0) {
    HttpRequest request{"/metrics", "", ""};
    request.connection = connection;
    request.is_repeated = connection != 0 && !connections.insert(connection).second;
    request.peer = peer;
    request.agent = "Prometheus/2.42";
    request.scrape_timeout = scrape_timeout;
    const auto page = *pages.respond(request).body;
    const std::string name = "\njouleprof_job_energy_joules_total{hpc_job=\"7\"";
    const auto at = page.find(name);
    if (at == std::string::npos) return std::string("absent");
    const auto value = page.find("} ", at) + 2;
    return page.substr(value, page.find('\n', value) - value);
  }
  void tick() {
    ++machine.state.ticks;
    machine.state.now += std::chrono::seconds{5};
    analysis::Worker worker{1, 41, "train", {}};
    worker.owner.job = "7";
    const double weights[] = {1};
    machine.accounts.begin_tick(machine.state.now, {worker});
    machine.accounts.charge({0, Energy::joules(3), std::chrono::seconds{5}, {}, weights, 0});
    pages.update(machine.state, machine.accounts, false);
  }
};

TEST(Pages, ASeriesIsZeroUntilEachReaderHasSeenIt) {
  SeriesOfAJob job;
  EXPECT_EQ(job.energy("a"), "absent");
  EXPECT_EQ(job.energy("b"), "absent");
  job.tick();
  EXPECT_EQ(job.energy("a"), "0.000000");
  job.tick();
  EXPECT_EQ(job.energy("a"), "0.000000");  // b has not seen it
  EXPECT_EQ(job.energy("b"), "0.000000");
  job.tick();
  EXPECT_EQ(job.energy("a"), "9.000000");
  EXPECT_EQ(job.energy("b"), "9.000000");
  EXPECT_EQ(job.energy("c"), "9.000000");
}

// A fast and a slow job of one Prometheus.
TEST(Pages, ReadersOfOneAddressAreDistinguishedByWhatTheySay) {
  SeriesOfAJob job;
  EXPECT_EQ(job.energy("a", "10"), "absent");
  EXPECT_EQ(job.energy("a", "5"), "absent");
  job.tick();
  EXPECT_EQ(job.energy("a", "5"), "0.000000");
  job.tick();
  EXPECT_EQ(job.energy("a", "5"), "0.000000");
  EXPECT_EQ(job.energy("a", "10"), "0.000000");
}

// Two jobs of one Prometheus with one timeout.
TEST(Pages, ReadersThatKeepTheirConnectionsAreDistinguished) {
  SeriesOfAJob job;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(job.energy("a", "10", 1), "absent");
    EXPECT_EQ(job.energy("a", "10", 2), "absent");
  }
  job.tick();
  EXPECT_EQ(job.energy("a", "10", 1), "0.000000");
  job.tick();
  EXPECT_EQ(job.energy("a", "10", 1), "0.000000");
  EXPECT_EQ(job.energy("a", "10", 2), "0.000000");
  job.tick();
  EXPECT_EQ(job.energy("a", "10", 2), "9.000000");
}

TEST(Pages, AReaderThatLookedOnceIsNotWaitedFor) {
  SeriesOfAJob job;
  EXPECT_EQ(job.energy("a"), "absent");
  EXPECT_EQ(job.energy("a", ""), "absent");  // a person
  job.tick();
  EXPECT_EQ(job.energy("a"), "0.000000");
  job.tick();
  EXPECT_EQ(job.energy("a"), "6.000000");
}

TEST(Pages, AReaderWithoutAScrapeTimeoutIsWaitedForFromItsSecondReadingOn) {
  SeriesOfAJob job;
  EXPECT_EQ(job.energy("a"), "absent");
  EXPECT_EQ(job.energy("b", ""), "absent");
  EXPECT_EQ(job.energy("b", ""), "absent");
  job.tick();
  EXPECT_EQ(job.energy("a"), "0.000000");
  job.tick();
  EXPECT_EQ(job.energy("a"), "0.000000");
  EXPECT_EQ(job.energy("b", ""), "0.000000");
}

TEST(Pages, WhatBeganSinceARestartIsZeroAtTheFirstScrape) {
  Machine machine;
  Pages pages({}, machine.source());
  machine.state.started.host = HostTime{std::chrono::hours{1}};
  machine.state.continued_from = RealTime{std::chrono::hours{9}};
  machine.tick(machine.state.started.host - std::chrono::seconds{60}, "old");  // as restored
  machine.tick(machine.state.started.host + std::chrono::seconds{5}, "new");
  pages.update(machine.state, machine.accounts, false);
  const auto first = *pages.respond({"/metrics", "", ""}).body;
  EXPECT_THAT(first,
              testing::ContainsRegex("_job_energy_joules_total.hpc_job=\"old\".*} 3.000000"));
  EXPECT_THAT(first,
              testing::ContainsRegex("_job_energy_joules_total.hpc_job=\"new\".*} 0.000000"));
  machine.tick(machine.state.started.host + std::chrono::seconds{10}, "new");
  pages.update(machine.state, machine.accounts, false);
  EXPECT_THAT(*pages.respond({"/metrics", "", ""}).body,
              testing::ContainsRegex("_job_energy_joules_total.hpc_job=\"new\".*} 6.000000"));
}

// Of three, the slowest has not seen the job that began just before the restart.
TEST(Pages, WhatEachReaderSawIsKnownAfterARestart) {
  Machine machine;
  Pages pages({}, machine.source());
  const HostTime start{std::chrono::hours{1}};
  machine.state.started.host = start;
  machine.state.continued_from = RealTime{std::chrono::hours{9}};
  machine.state.readers = {2, start - std::chrono::seconds{20}};
  machine.tick(start - std::chrono::seconds{60}, "old");  // as restored, and the next
  machine.tick(start - std::chrono::seconds{10}, "late");
  const auto read = [&](const char* agent) {
    machine.tick(machine.state.now + std::chrono::seconds{15}, "late");
    pages.update(machine.state, machine.accounts, false);
    HttpRequest request{"/metrics", "", ""};
    request.agent = agent;
    request.scrape_timeout = "4";
    return *pages.respond(request).body;
  };
  const auto late = [](const char* joules) {
    return testing::ContainsRegex(std::string("_job_energy_joules_total.hpc_job=\"late\".*} ") +
                                  joules);
  };
  const auto readers = [&] { return pages.readers(machine.state.now); };
  EXPECT_FALSE(readers());
  const auto first = read("fast");
  EXPECT_THAT(first, testing::ContainsRegex("hpc_job=\"old\".*} 3.000000"));
  EXPECT_THAT(first, late("0.000000"));
  EXPECT_THAT(read("fast"), late("0.000000"));
  EXPECT_EQ(readers()->count, 2u);
  EXPECT_EQ(readers()->seen, start - std::chrono::seconds{20});
  EXPECT_THAT(read("slow"), late("0.000000"));
  EXPECT_THAT(read("fast"), late("15.000000"));
  EXPECT_EQ(readers()->count, 2u);
}

// What is kept with a tick says what its page shows: else a counter would fall at a restart.
TEST(Pages, ShowsNoMoreThanItsReadersHadSeenWhenTheTickWasKept) {
  Machine machine;
  Pages pages({}, machine.source());
  HttpRequest request{"/metrics", "", ""};
  request.scrape_timeout = "4";
  const auto tick = [&] { machine.tick(machine.state.now + std::chrono::seconds{5}, "7"); };
  const auto shows = [&] { return *pages.respond(request).body; };
  machine.state.now = HostTime{std::chrono::hours{1}};
  pages.update(machine.state, machine.accounts, false);
  shows();
  tick();
  pages.update(machine.state, machine.accounts, false);
  const auto kept = pages.readers(machine.state.now + std::chrono::seconds{5});
  ASSERT_TRUE(kept);
  EXPECT_LT(kept->seen, machine.state.now);
  shows();  // while the tick is being kept
  tick();
  pages.update(machine.state, machine.accounts, false);
  EXPECT_THAT(shows(), testing::ContainsRegex("hpc_job=\"7\".*} 0.000000"));
  tick();
  pages.update(machine.state, machine.accounts, false);
  EXPECT_THAT(shows(), testing::ContainsRegex("hpc_job=\"7\".*} 9.000000"));
}

TEST(Pages, WithoutReadersNothingIsHeldBack) {
  Machine machine;
  Pages pages({}, machine.source());
  machine.state.now = HostTime{std::chrono::hours{1}};
  analysis::Worker worker{1, 41, "train", {}};
  worker.owner.job = "7";
  const double weights[] = {1};
  machine.accounts.begin_tick(machine.state.now, {worker});
  machine.accounts.charge({0, Energy::joules(3), std::chrono::seconds{5}, {}, weights, 0});
  pages.update(machine.state, machine.accounts, false);
  EXPECT_THAT(*pages.respond({"/metrics", "", ""}).body, HasSubstr("} 3.000000\n"));
}

TEST(Pages, ReadyWhileSomethingIsMeasured) {
  Machine machine;
  Pages pages({}, machine.source());
  auto& domain = machine.state.domains[0];
  const auto body = [&] {
    ++machine.state.ticks;
    pages.update(machine.state, machine.accounts, false);
    const auto out = pages.respond({"/readyz", "", ""});
    EXPECT_EQ(out.status, *out.body == "ok\n" ? 200u : 503u);
    return *out.body;
  };
  EXPECT_EQ(body(), "ok\n");
  domain.counted = false;
  machine.state.snapshot.domains[0].domain.unavailable_reason = "the driver is not loaded";
  EXPECT_THAT(body(), HasSubstr("jouleprof doctor"));
  EXPECT_THAT(body(), HasSubstr("gpu0: the driver is not loaded\n"));
  machine.state.snapshot.domains[0].domain.unavailable_reason.clear();
  domain.counted = true;
  domain.provenance = model::Provenance::kEstimated;
  EXPECT_THAT(body(), HasSubstr("an estimate"));
  domain.provenance = model::Provenance::kSimulated;
  EXPECT_EQ(body(), "ok\n");
  domain.reported = false;  // the board is lost
  EXPECT_NE(body(), "ok\n");
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
