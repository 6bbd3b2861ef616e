#include "apps/cli/cli.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "apps/cli/control/settings.h"
#include "apps/cli/options/checks.h"
#include "apps/cli/terminal/exit_status.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/say.h"

namespace jouleprof::cli {
namespace {

int usage_error(const std::string& message) {
  return complain({Errc::kInvalidArgument, message}, kUsageError);
}

int print(std::string_view text) {
  const auto written = write_output(Output{}, std::string(text));
  return written ? kDone : complain(written.error(), kCannotWrite);
}

// `run` and `apply` have statuses of their own, apart from those of the commands that they run.
int status_before_start(std::string_view verb) {
  return verb == "run" || verb == "apply" ? kNotStarted : kUsageError;
}

std::string_view help_of(std::string_view verb) {
  return help_block("jouleprof " + std::string(verb));
}

int unknown_verb(const std::string& word) {
  std::vector<std::string> names{"help", "version"};
  for (const auto& verb : make_verbs()) names.emplace_back(verb->name());
  const std::string close = nearest(word, names);
  const std::string hint = close.empty() ? "" : fmt::format("; did you mean '{}'?", close);
  const bool is_option = word.starts_with('-');
  return usage_error(fmt::format("there is no {} '{}'{}\nTry 'jouleprof --help'.",
                                 is_option ? "option" : "verb", word, hint));
}

int run_verb(Verb& verb, std::vector<std::string> arguments) {
  // What follows is the command's and not ours to understand.
  auto end = arguments.begin() + static_cast<std::ptrdiff_t>(count_of_options(verb, arguments));
  const bool has_dashes = end != arguments.end() && *end == "--";
  std::vector<std::string> command(end + (has_dashes ? 1 : 0), arguments.end());
  arguments.erase(end, arguments.end());

  const auto is_help = [](const std::string& a) { return a == "-h" || a == "--help"; };
  if (std::any_of(arguments.begin(), arguments.end(), is_help)) {
    return print(help_of(verb.name()));
  }
  if (auto parsed = parse(verb, std::move(arguments)); !parsed) {
    return complain(parsed.error(), status_before_start(verb.name()));
  }
  return verb.run(command);
}

int run_words(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    say("{}", help_block("jouleprof"));
    return kUsageError;
  }
  const std::string word = arguments.front();
  const bool names_verb = word == "help" && arguments.size() > 1;
  if (word == "-h" || word == "--help" || (word == "help" && !names_verb)) {
    return print(help_block("jouleprof"));
  }
  if (names_verb) {
    const auto help = help_of(arguments[1]);
    return help.empty() ? unknown_verb(arguments[1]) : print(help);
  }
  if (word == "--version" || word == "-V" || word == "version") {
    return print(fmt::format("jouleprof {}\n", JOULEPROF_VERSION));
  }
  arguments.erase(arguments.begin());
  if (word == kGuardWord) return guard_settings(arguments);
  if (word == kServerWord) return serve_settings(arguments);
  for (const auto& verb : make_verbs()) {
    if (verb->name() != word) continue;
    if (word != "restore") restore_settings();
    return run_verb(*verb, std::move(arguments));
  }
  return unknown_verb(word);
}

}  // namespace

int main(std::vector<std::string> arguments) {
  const std::string word = arguments.empty() ? "" : arguments.front();
  try {
    return run_words(std::move(arguments));
  } catch (const std::bad_alloc&) {
    say("jouleprof: out of memory\n");
  } catch (const std::exception& e) {
    say("jouleprof: internal error: {}\n", e.what());
  }
  const bool has_status = status_before_start(word) == kNotStarted;
  return has_status ? kNotStarted : kInternalError;
}

std::string_view help_block(std::string_view title, std::string_view page) {
  constexpr std::string_view kOpen = "```text\n";
  const auto heading = page.find("\n## " + std::string(title) + "\n");
  if (heading == std::string_view::npos) return {};
  const auto next_heading = page.find("\n## ", heading + 1);
  const auto open = page.find(kOpen, heading);
  if (open >= next_heading) return {};
  const auto begin = open + kOpen.size();
  const auto end = page.find("```", begin);
  return end < next_heading ? page.substr(begin, end - begin) : std::string_view{};
}

}  // namespace jouleprof::cli
