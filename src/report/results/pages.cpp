#include "report/results/pages.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <utility>

#include "report/redaction.h"

namespace jouleprof::report {
namespace {

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Numbers in the order of the names' first appearance.
class Aliases {
 public:
  explicit Aliases(std::string word) : word_(std::move(word)) {}

  void rename(std::string& name) {
    if (name.empty()) return;
    const auto [at, is_new] = known_.try_emplace(name);
    if (is_new) at->second = fmt::format("{} {}", word_, known_.size());
    name = at->second;
  }

  void add_to(std::vector<std::pair<std::string, std::string>>& replaced) const {
    replaced.insert(replaced.end(), known_.begin(), known_.end());
  }

  // Names that are whole words, however short they are; a single letter at the begin only.
  void rename_words(std::string& sentence) const {
    for (const auto& [name, alias] : known_) {
      for (std::size_t at = 0; (at = sentence.find(name, at)) != std::string::npos;) {
        const std::size_t end = at + name.size();
        const bool whole = (at == 0 || !is_of_name(sentence[at - 1])) &&
                           (end == sentence.size() || !is_of_name(sentence[end]));
        if (!whole || (name.size() == 1 && at > 0)) {
          ++at;
          continue;
        }
        sentence.replace(at, name.size(), alias);
        at += alias.size();
      }
    }
  }

  const std::string* find(const std::string& name) const {
    const auto found = known_.find(name);
    return found == known_.end() ? nullptr : &found->second;
  }

 private:
  std::string word_;
  std::map<std::string, std::string> known_;
};

}  // namespace

ComparisonReport redacted(ComparisonReport report) {
  Aliases runs("run");
  auto& c = report.comparison;
  for (auto& name : c.before) runs.rename(name);
  for (auto& name : c.after) runs.rename(name);
  std::vector<std::pair<std::string, std::string>> replaced{{report.before, "before"},
                                                            {report.after, "after"}};
  runs.add_to(replaced);
  const Redactor redactor(std::move(replaced));
  report.before = "before";
  report.after = "after";
  for (auto& condition : c.conditions) {
    runs.rename_words(condition.text);
    redactor.redact(condition.text);
  }
  for (auto& row : c.unmatched) redactor.redact(row.row.energy.reason);
  return report;
}

analysis::Job redacted(analysis::Job job) {
  Aliases hosts("host");
  Aliases recordings("recording");
  Aliases jobs("job");
  for (auto& host : job.hosts) {
    hosts.rename(host.host);
    host.boot_id.clear();
    for (auto& name : host.recordings) recordings.rename(name);
  }
  for (auto& rank : job.ranks) {
    hosts.rename(rank.host);
    recordings.rename(rank.recording);
    rank.rank.job.clear();
    rank.rank.step.clear();
  }
  for (auto& share : job.shares) jobs.rename(share.job);
  std::vector<std::pair<std::string, std::string>> replaced;
  hosts.add_to(replaced);
  recordings.add_to(replaced);
  const Redactor redactor(std::move(replaced));
  const auto redact = [&](std::string& sentence) {
    recordings.rename_words(sentence);  // first: they may contain a host's name
    hosts.rename_words(sentence);
    redactor.redact(sentence);
  };
  for (auto& host : job.hosts) {
    for (auto& domain : host.domains) {
      domain.identity.clear();
      redact(domain.reason);
    }
    if (host.clock) hosts.rename(host.clock->reference);
  }
  const auto rename_most = [&](analysis::Spread& spread) {
    if (const auto* alias = recordings.find(spread.most_in)) spread.most_in = *alias;
  };
  for (auto& window : job.windows) {
    rename_most(window.joules);
    rename_most(window.seconds);
  }
  for (auto& layer : job.layers) {
    rename_most(layer.joules);
    rename_most(layer.seconds);
  }
  for (auto& group : job.rank_groups) {
    group.job.clear();
    group.step.clear();
  }
  for (auto& warning : job.warnings) {
    jobs.rename_words(warning);
    redact(warning);
  }
  return job;
}

std::string without_paths(std::string sentence) {
  Redactor({}).redact(sentence);
  return sentence;
}

}  // namespace jouleprof::report
