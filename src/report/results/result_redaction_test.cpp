#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/results/job.h"
#include "report/results/redaction.h"

namespace jouleprof::report {
namespace {

TEST(ResultRedaction, RunsHaveNumbers) {
  ComparisonReport report;
  report.before = "the secret command";
  report.after = "main";
  report.comparison.before = {"a", "b.jprof"};
  report.comparison.after = {"</script>.jprof"};
  report.comparison.conditions = {
      {"failed_run", "a ended with status 3: a failure", true},
      {"cut_off", "</script>.jprof was cut off", true},
      {"other", "see /home/erika/notes.txt of the secret command", false}};
  const auto redacted = report::redacted(report);
  EXPECT_EQ(redacted.before, "before");
  EXPECT_EQ(redacted.after, "after");
  EXPECT_EQ(redacted.comparison.before, (std::vector<std::string>{"run 1", "run 2"}));
  EXPECT_EQ(redacted.comparison.after, std::vector<std::string>{"run 3"});
  EXPECT_EQ(redacted.comparison.conditions[0].text, "run 1 ended with status 3: a failure");
  EXPECT_EQ(redacted.comparison.conditions[1].text, "run 3 was cut off");
  EXPECT_EQ(redacted.comparison.conditions[2].text, "see (redacted) of before");
}

TEST(ResultRedaction, HostsAndRecordingsHaveNumbersEverywhere) {
  analysis::Job job;
  for (const char* name : {"vm", "node-of-erika"}) {
    auto& host = job.hosts.emplace_back();
    host.host = name;
    host.boot_id = "boot";
    host.recordings = {std::string(name) + ".jprof"};
    auto& domain = host.domains.emplace_back();
    domain.identity = "GPU-1234";
    domain.reason = std::string(name) + ".jprof: no sensor in /sys/secret";
  }
  job.hosts[1].clock.emplace().reference = "vm";
  auto& rank = job.ranks.emplace_back();
  rank.host = "node-of-erika";
  rank.recording = "node-of-erika.jprof";
  rank.rank.job = "4711";
  job.windows.emplace_back().joules.most_in = "vm.jprof";
  job.warnings = {"clocks are not aligned: vm and node-of-erika had no collective; vmware stays"};
  const auto redacted = report::redacted(job);
  EXPECT_EQ(redacted.hosts[0].host, "host 1");
  EXPECT_EQ(redacted.hosts[1].host, "host 2");
  EXPECT_TRUE(redacted.hosts[0].boot_id.empty());
  EXPECT_EQ(redacted.hosts[1].recordings.front(), "recording 2");
  EXPECT_TRUE(redacted.hosts[0].domains[0].identity.empty());
  EXPECT_EQ(redacted.hosts[0].domains[0].reason, "recording 1: no sensor in (redacted)");
  EXPECT_EQ(redacted.hosts[1].clock->reference, "host 1");
  EXPECT_EQ(redacted.ranks[0].host, "host 2");
  EXPECT_EQ(redacted.ranks[0].recording, "recording 2");
  EXPECT_TRUE(redacted.ranks[0].rank.job.empty());
  EXPECT_EQ(redacted.windows[0].joules.most_in, "recording 1");
  EXPECT_EQ(redacted.warnings[0],
            "clocks are not aligned: host 1 and host 2 had no collective; vmware stays");
}

TEST(JobText, ADomainWithoutEnergyOfAPartOfTheTimeIsALowerBound) {
  analysis::Job job;
  auto& domain = job.hosts.emplace_back().domains.emplace_back();
  domain.label = "gpu1";
  domain.energy.emplace().energy = Energy::joules(100);
  domain.energy->error = Energy::joules(5);
  domain.reason = "a.jprof: lost";
  EXPECT_THAT(*job_to_text(job, {}), testing::Not(testing::HasSubstr("lost")));
  domain.lacks_time = true;
  EXPECT_THAT(*job_to_text(job, {}), testing::ContainsRegex("at least 100.0 J +-5.0 %.*a.jprof"));
  const auto document = nlohmann::json::parse(*job_to_json(job, {}))["hosts"][0]["domains"][0];
  EXPECT_EQ(document["interval_joules"], nlohmann::json({95, nullptr}));
  EXPECT_EQ(document["reason"], "a.jprof: lost");
}

TEST(JobText, TheRestOfRanksWhosePartIsUnknownIsNotOfNoRank) {
  analysis::Job job;
  job.total.emplace().energy = Energy::joules(100);
  job.ranks.resize(2);
  for (auto& rank : job.ranks) rank.energy = Energy::joules(20);
  JobOptions by_rank;
  by_rank.by = JobBy::kRank;
  EXPECT_THAT(*job_to_text(job, by_rank),
              testing::HasSubstr("60.00 J of the total are of no rank:"));
  job.ranks[1].energy.reset();
  EXPECT_THAT(
      *job_to_text(job, by_rank),
      testing::HasSubstr("80.00 J of the total are of ranks whose part is unknown, or of no\n"));
}

}  // namespace
}  // namespace jouleprof::report
