#include "apps/cli/cli.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/cli/control/settings.h"
#include "apps/cli/control/settings_server.h"
#include "apps/cli/exit_status.h"
#include "apps/cli/help.h"
#include "apps/cli/verb.h"

namespace jouleprof::cli {
namespace {

int usage_error(const std::string& message) {
  return complain({Errc::kInvalidArgument, message}, kUsageError);
}

int run_verb(Verb& verb, std::vector<std::string> arguments) {
  // What follows "--" is the command's and not ours to understand.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> command;
  if (dashes != arguments.end()) command.assign(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());

  const auto is_help = [](const std::string& a) { return a == "-h" || a == "--help"; };
  if (std::any_of(arguments.begin(), arguments.end(), is_help)) {
    fmt::print("{}", help_block("jouleprof " + std::string(verb.name())));
    return kDone;
  }
  if (auto parsed = parse(verb, std::move(arguments)); !parsed) {
    // `run` has statuses of its own, apart from those of the commands that it runs.
    const bool has_status = verb.name() == "run" || verb.name() == "apply";
    return complain(parsed.error(), has_status ? kNotStarted : kUsageError);
  }
  return verb.run(command);
}

}  // namespace

int main(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    fmt::print(stderr, "{}", help_block("jouleprof"));
    return kUsageError;
  }
  const std::string word = arguments.front();
  if (word == "-h" || word == "--help" || word == "help") {
    fmt::print("{}", help_block("jouleprof"));
    return kDone;
  }
  if (word == "--version" || word == "version") {
    fmt::print("jouleprof {}\n", JOULEPROF_VERSION);
    return kDone;
  }
  arguments.erase(arguments.begin());
  if (word == kGuardWord) return guard_settings(arguments);
  if (word == kServerWord) return serve_settings(arguments);
  for (const auto& verb : make_verbs()) {
    if (verb->name() != word) continue;
    if (word != "restore") restore_settings();
    return run_verb(*verb, std::move(arguments));
  }
  return usage_error(fmt::format("there is no verb '{}'.\nTry 'jouleprof --help'.", word));
}

}  // namespace jouleprof::cli
