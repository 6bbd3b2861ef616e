#include "report/redaction.h"

#include <algorithm>
#include <string>
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

// What may be named in a sentence.
std::vector<std::string> secrets_of(const model::Profile& profile) {
  std::vector<std::string> secrets = profile.run.command;
  secrets.push_back(profile.run.host);
  secrets.push_back(profile.run.working_directory);
  secrets.push_back(profile.run.trace_folder);
  for (const auto& d : profile.domains) secrets.push_back(d.domain.uuid);
  for (const auto& p : profile.processes) {
    secrets.push_back(p.process.name);
    secrets.push_back(p.process.command_line);
  }
  return secrets;
}

}  // namespace

Redactor::Redactor(std::vector<std::pair<std::string, std::string>> replaced)
    : replaced_(std::move(replaced)) {
  std::stable_sort(replaced_.begin(), replaced_.end(),
                   [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
}

void Redactor::redact(std::string& sentence) const {
  for (const auto& [secret, by] : replaced_) replace_all(sentence, secret, by);
  replace_paths(sentence);
}

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

}  // namespace jouleprof::report
