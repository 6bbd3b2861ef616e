#include "report/redaction.h"

#include <algorithm>
#include <string>
#include <vector>

namespace jouleprof::report {
namespace {

constexpr std::string_view kRedacted = "(redacted)";

constexpr std::string_view kAfterPath = " \t)'\",;";

// A shorter word may be an ordinary one.
constexpr std::size_t kShortest = 3;

void replace_all(std::string& text, const std::string& what) {
  if (what.size() < kShortest) return;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos;) {
    std::size_t end = at + what.size();
    // What is in a folder goes with its name.
    if (end < text.size() && text[end] == '/') {
      end = std::min(text.find_first_of(kAfterPath, end), text.size());
    }
    text.replace(at, end - at, kRedacted);
    at += kRedacted.size();
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

// What may be named in a sentence, the longest first.
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
  std::sort(secrets.begin(), secrets.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  return secrets;
}

}  // namespace

model::Profile redacted(model::Profile profile) {
  const auto secrets = secrets_of(profile);
  const auto redact = [&](std::string& sentence) {
    for (const auto& secret : secrets) replace_all(sentence, secret);
    replace_paths(sentence);
  };
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

}  // namespace jouleprof::report
