#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "apps/cli/control/settings.h"
#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "apps/cli/verb.h"
#include "base/say.h"

namespace jouleprof::cli {
namespace {

int print(std::string_view text) {
  const auto written = write_output(Output{}, std::string(text));
  return written ? kDone : complain(written.error(), kCannotWrite);
}

// `run` and `apply` have statuses of their own, apart from those of the commands that they run.
int status_before_start(std::string_view verb) {
  return verb == "run" || verb == "apply" ? kNotStarted : kUsageError;
}

std::string help_of(std::string_view verb, bool all = false) {
  constexpr std::size_t kWidest = 100;
  return help_of_verb(
      verb, all, std::min(kWidest, static_cast<std::size_t>(text_options(STDOUT_FILENO).width)));
}

int unknown_verb(const std::string& word) {
  if (word == "restore") {
    return complain_of_usage("restore is now an option: jouleprof apply --restore");
  }
  const bool is_option = word.starts_with('-');
  std::vector<std::string> names{"help", "version", "completion", "man"};
  for (const auto& verb : make_verbs()) names.emplace_back(verb->name());
  if (is_option) names = {"-V", "--version", "-h", "--help"};
  const std::string close = nearest(word, names);
  const std::string hint = close.empty() ? "" : fmt::format("; did you mean '{}'?", close);
  return complain_of_usage(fmt::format("there is no {} '{}'{}\nTry 'jouleprof --help'.",
                                       is_option ? "option" : "verb", word, hint));
}

int run_verb(Verb& verb, std::vector<std::string> arguments) {
  // What follows is the command's and not ours to understand.
  auto end = arguments.begin() + static_cast<std::ptrdiff_t>(count_of_options(verb, arguments));
  const bool has_dashes = end != arguments.end() && *end == "--";
  std::vector<std::string> command(end + (has_dashes ? 1 : 0), arguments.end());
  arguments.erase(end, arguments.end());

  for (const auto& argument : arguments) {
    const bool all = argument == "--help-all";
    if (all || argument == "-h" || argument == "--help") return print(help_of(verb.name(), all));
  }
  if (auto parsed = parse(verb, std::move(arguments)); !parsed) {
    return complain(parsed.error(), status_before_start(verb.name()));
  }
  return verb.run(command);
}

int run_words(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    say("{}", help_of_tool());
    return kUsageError;
  }
  constexpr std::string_view kOwn[] = {"help", "version", "completion", "man", "-h", "--help"};
  const auto is_own = [&](const std::string& text) {
    return std::ranges::find(kOwn, text) != std::end(kOwn);
  };
  if (arguments.size() > 1 && is_own(arguments[0]) &&
      (arguments[1] == "-h" || arguments[1] == "--help")) {
    arguments = {"help", arguments[0]};
  }
  const std::string word = arguments.front();
  const bool names_verb = word == "help" && arguments.size() > 1 && !is_own(arguments[1]);
  if (word == "-h" || word == "--help" || word == "--help-all" || (word == "help" && !names_verb)) {
    if (arguments.size() > 1 && arguments[1] == "completion") return print(help_of_completion());
    return print(help_of_tool());
  }
  if (names_verb) {
    const auto help = help_of(arguments[1]);
    return help.empty() ? unknown_verb(arguments[1]) : print(help);
  }
  if (word == "--version" || word == "-V" || word == "version") {
    return print(fmt::format("jouleprof {}\n", JOULEPROF_VERSION));
  }
  if (word == "man") return print(man_page(JOULEPROF_VERSION));
  if (word == "completion") {
    const auto text = completion_of(arguments.size() > 1 ? arguments[1] : "");
    return text ? print(*text)
                : complain_of_usage("name the shell: jouleprof completion bash, zsh or fish");
  }
  arguments.erase(arguments.begin());
  if (word == kGuardWord) return guard_settings(arguments);
  if (word == kServerWord) return serve_settings(arguments);
  for (const auto& verb : make_verbs()) {
    if (verb->name() != word) continue;
    if (word != "apply") restore_settings();
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

}  // namespace jouleprof::cli
