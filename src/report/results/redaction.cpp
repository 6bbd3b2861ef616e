#include "report/results/redaction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace jouleprof::report {
namespace {

constexpr std::string_view kRedacted = "(redacted)";

constexpr std::string_view kAfterPath = " \t)'\",;";

// A shorter word may be an ordinary one.
constexpr std::size_t kShortest = 3;

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  if (what.size() < kShortest) return;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
    std::size_t end = at + what.size();
    // What is in a folder goes with its name.
    if (end < text.size() && text[end] == '/') {
      end = std::min(text.find_first_of(kAfterPath, end), text.size());
    }
    text.replace(at, end - at, by);
    at += by.size();
  }
}

// Absolute paths, from a slash that begins a word to the word's end.
void replace_paths(std::string& text) {
  constexpr std::string_view kBefore = " \t('\"=:,";
  for (std::size_t at = 0; (at = text.find('/', at)) != std::string::npos;) {
    const bool begins = at == 0 || kBefore.find(text[at - 1]) != std::string_view::npos;
    const std::size_t end = std::min(text.find_first_of(kAfterPath, at), text.size());
    if (!begins || end - at < kShortest) {
      ++at;
      continue;
    }
    text.replace(at, end - at, kRedacted);
    at += kRedacted.size();
  }
}

// Replaces words in sentences, and absolute paths by "(redacted)".
class Redactor {
 public:
  // What each secret becomes, the longest first. Secrets of less than three bytes are left: they
  // may be ordinary words.
  explicit Redactor(std::vector<std::pair<std::string, std::string>> replaced);

  void redact(std::string& sentence) const;

 private:
  std::vector<std::pair<std::string, std::string>> replaced_;
};

Redactor::Redactor(std::vector<std::pair<std::string, std::string>> replaced)
    : replaced_(std::move(replaced)) {
  std::ranges::stable_sort(
      replaced_, [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

void Redactor::redact(std::string& sentence) const {
  for (const auto& [secret, by] : replaced_) replace_all(sentence, secret, by);
  replace_paths(sentence);
}

// Where a meter or a service is asked: the host in "https://node-bmc:443/redfish", "10.0.0.7:80".
std::string host_of(std::string_view address) {
  if (const auto at = address.find("://"); at != address.npos) address.remove_prefix(at + 3);
  address = address.substr(0, address.find_first_of("/ \t)'\",;"));
  if (const auto at = address.find('@'); at != address.npos) address.remove_prefix(at + 1);
  if (address.starts_with('[')) return std::string(address.substr(1, address.find(']') - 1));
  return std::string(address.substr(0, address.find(':')));
}

// The names of a meter at the wall: meters/wall/wall_source.h.
constexpr std::string_view kWallNames[] = {"wall:", "Wall meter ("};

// Where the meter named so is: "10.0.0.7:80" of "wall:shelly:10.0.0.7:80"; empty: nowhere.
std::string_view wall_address(std::string_view name) {
  for (const auto prefix : kWallNames) {
    if (!name.starts_with(prefix)) continue;
    const auto colon = name.find(':', prefix.size());
    if (colon == name.npos) return {};
    name.remove_prefix(colon + 1);
    if (prefix.ends_with('(') && name.ends_with(')')) name.remove_suffix(1);
    return name;
  }
  return {};
}

void redact_wall(std::string& name) {
  const auto address = wall_address(name);
  if (address.empty()) return;
  name.replace(static_cast<std::size_t>(address.data() - name.data()), address.size(), kRedacted);
}

void redact_wall(std::optional<model::Measurement>& energy) {
  if (energy) redact_wall(energy->sensor);
}

// The file that an importer's sentence begins with, "day 1.csv: 2 rows left out"; empty: none.
std::string file_of(const std::string& warning, const model::Profile& profile) {
  const std::string name = warning.substr(0, warning.find(": "));
  if (name.size() == warning.size()) return {};
  for (const auto& d : profile.domains) {
    if (name == d.domain.device) return {};
  }
  const auto dot = name.rfind('.');
  const bool has_suffix = dot != name.npos && name.find(' ', dot) == name.npos;
  return has_suffix || name.find(' ') == name.npos ? name : std::string();
}

// What may be named in a sentence.
std::vector<std::string> secrets_of(const model::Profile& profile) {
  std::vector<std::string> secrets = profile.run.command;
  secrets.push_back(profile.run.host);
  secrets.push_back(profile.run.working_directory);
  secrets.push_back(profile.run.trace_folder);
  const auto add_addresses = [&secrets](const std::string& sentence) {
    for (std::size_t at = 0; (at = sentence.find("://", at)) != std::string::npos; at += 3) {
      secrets.push_back(host_of(std::string_view(sentence).substr(at)));
      const std::size_t end = std::min(sentence.find_first_of(kAfterPath, at), sentence.size());
      secrets.push_back(sentence.substr(at + 1, end - at - 1));  // before the host in it
    }
  };
  for (const auto& d : profile.domains) {
    secrets.push_back(d.domain.uuid);
    secrets.push_back(host_of(wall_address(d.domain.name)));
    add_addresses(d.reason);
  }
  for (const auto& warning : profile.warnings) {
    if (profile.run.source.starts_with("import:")) secrets.push_back(file_of(warning, profile));
    add_addresses(warning);
  }
  for (const auto& p : profile.processes) {
    secrets.push_back(p.process.name);
    secrets.push_back(p.process.command_line);
  }
  return secrets;
}

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

model::Profile redacted(model::Profile profile) {
  std::vector<std::pair<std::string, std::string>> secrets;
  for (auto& secret : secrets_of(profile)) secrets.emplace_back(std::move(secret), kRedacted);
  const Redactor redactor(std::move(secrets));
  const auto redact = [&](std::string& sentence) { redactor.redact(sentence); };
  for (auto& warning : profile.warnings) redact(warning);
  for (auto& finding : profile.findings) {
    redact(finding.text);
    redact(finding.next_step);
  }
  for (auto& d : profile.domains) {
    redact(d.reason);
    d.domain.uuid.clear();
    redact_wall(d.domain.name);
    redact_wall(d.energy);
  }
  for (auto& group : profile.windows) {
    for (auto& window : group.energies) {
      redact(window.reason);
      redact_wall(window.energy);
      redact_wall(window.singles);
    }
  }
  for (auto& p : profile.processes) {
    p.process.name.clear();
    p.process.command_line.clear();
  }
  profile.run.command.clear();
  profile.run.host.clear();
  profile.run.working_directory.clear();
  profile.run.trace_folder.clear();
  profile.run.boot_id.clear();
  profile.run.user.clear();
  profile.run.node_list.clear();
  profile.run.rank.job.clear();
  profile.run.rank.step.clear();
  return profile;
}

std::vector<model::ActivityProfile> redacted(std::vector<model::ActivityProfile> profiles,
                                             const model::Recording& recording) {
  std::vector<std::pair<std::string, std::string>> programs;
  for (const auto& trace : recording.traces) programs.emplace_back(trace.program, kRedacted);
  const Redactor redactor(programs);
  for (auto& profile : profiles) {
    for (auto& warning : profile.warnings) redactor.redact(warning);
    for (auto& row : profile.by_layer) {
      if (row.parent != model::kNone) continue;
      for (const auto& trace : recording.traces) {
        const std::string pid = "pid " + std::to_string(trace.pid);
        const std::string name = pid + " (" + trace.program + ")";
        if (row.name.ends_with(name)) row.name.resize(row.name.size() - name.size() + pid.size());
      }
    }
  }
  return profiles;
}

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
