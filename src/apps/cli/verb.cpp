#include "apps/cli/verb.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "apps/cli/options/option_table.h"
#include "apps/cli/terminal/output.h"
#include "base/file.h"
#include "base/say.h"
#include "base/text.h"

namespace jouleprof::cli {
namespace {

std::vector<std::string> options_of_all_verbs() {
  std::vector<std::string> names;
  for (const auto& verb : make_verbs()) {
    CLI::App app("", std::string(verb->name()));
    verb->declare(app);
    for (const CLI::Option* option : app.get_options()) {
      names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
    }
  }
  return names;
}

// Names nothing that a line of the configuration file may set.
void warn_of_unknown(const Setting& setting) {
  const auto names = options_of_all_verbs();
  if (std::ranges::find(names, setting.name) != names.end()) return;
  const std::string close = nearest(setting.name, names);
  say("jouleprof: {} sets '{}', which no verb has as an option{}\n", setting.source, setting.name,
      close.empty() ? "; see jouleprof --help" : fmt::format("; did you mean '{}'?", close));
}

struct Variable {
  CLI::Option* option;
  std::string name;
};

// Takes the variables away from CLI11, which counts them as given: an option that needs or excludes
// another would then be refused because of the environment.
std::vector<Variable> take_variables(CLI::App& app) {
  std::vector<Variable> variables;
  for (CLI::Option* option : app.get_options()) {
    if (option->get_envname().empty()) continue;
    variables.push_back({option, option->get_envname()});
    option->envname("");
  }
  return variables;
}

// An option that was not given.
Result<void> set_from(const std::string& source, CLI::Option& option, const std::string& value) {
  remember_source({option.get_name(), value, source});
  try {
    option.add_result(value);
    option.run_callback();
  } catch (const CLI::Error& e) {
    return fail(Errc::kInvalidArgument, fmt::format("{}: {}", source, e.what()));
  }
  return {};
}

// Options of earlier versions.
struct Removed {
  std::string_view verb;
  std::string_view option;
  std::string_view instead;
};
constexpr std::string_view kTableOfReport = "jouleprof report FILE --by WHAT --csv";
constexpr Removed kRemoved[] = {
    {"compare", "--markdown", "--format markdown=FILE"},
    {"compare", "--junit", "--format junit=FILE"},
    {"compare", "--benchmark", "--format benchmark=FILE"},
    {"compare", "--github", "--format github"},
    {"apply", "--until-exit", "leave it out; a setting lasts until the command ends"},
    {"export", "--by", kTableOfReport},
    {"export", "--sort", kTableOfReport},
    {"export", "--top", kTableOfReport},
    {"export", "--depth", kTableOfReport},
    {"export", "--fold", kTableOfReport},
};

std::string unknown_word_text(const CLI::App& app, const std::string& word) {
  if (!word.starts_with('-')) return fmt::format("'{}' is not expected here", word);
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  const std::string given = word.substr(0, word.find('='));
  for (const auto& [verb, option, instead] : kRemoved) {
    if (app.get_name() == verb && given == option) {
      return fmt::format("{} is no longer an option of {}: {}", given, verb, instead);
    }
  }
  const std::string close = nearest(given, names);
  return fmt::format("there is no option {}{}", given,
                     close.empty() ? "" : fmt::format("; did you mean {}?", close));
}

// CLI11's words for what is missing name neither the value nor the usage.
std::string missing_text(const CLI::App& app, const CLI::Error& error) {
  const std::string text = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = text.substr(0, text.find(':'));
    if (text.find("At Most") != std::string::npos) {
      return fmt::format("{} is given more than once", name);
    }
    const OptionText* option = find_text(app, name);
    if (option != nullptr && !option->value.empty()) {
      return fmt::format("{} needs a value: {} {}", name, name, option->value);
    }
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    const auto begin = text.find("--");
    const auto end = text.find(" = ");
    if (begin < end && end != std::string::npos) {
      const std::string name = text.substr(begin, end - begin);
      const std::string value = text.substr(end + 3);
      const OptionText* option = find_text(app, name);
      if (option != nullptr && option->value.empty()) {
        return fmt::format("{} takes no value; leave out '={}'", name, value);
      }
      return fmt::format("{}: '{}' is out of range", name, value);
    }
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    const auto& verbs = verb_texts();
    const auto verb = std::ranges::find(verbs, app.get_name(), &VerbText::name);
    if (verb != verbs.end()) return fmt::format("{}: {}", text, verb->usage.front());
  }
  return text;
}

constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kPatienceMilliseconds = 2000;

// Waits for a pipe, such as the shell's <(...), but not for ever.
Result<std::string> read_settings(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return read_file(path, kMostBytes);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return system_failure("cannot open " + path, errno);
  std::string text;
  std::array<char, 4096> chunk{};
  pollfd writer{fd, POLLIN, 0};
  ssize_t n = 0;
  bool ready = false;
  do {
    ready = ::poll(&writer, 1, kPatienceMilliseconds) == 1;
    n = ready ? ::read(fd, chunk.data(), chunk.size()) : 0;
    if (n > 0) text.append(chunk.data(), static_cast<std::size_t>(n));
  } while (n > 0 && text.size() < kMostBytes);
  ::close(fd);
  if (ready && n == 0) return text;
  return fail(Errc::kTimeout,
              path + " is a pipe into which nothing is written; put the settings into a file");
}

// Reads $JOULEPROF_CONFIG, else $XDG_CONFIG_HOME/jouleprof/config, else ~/.config/jouleprof/config.
// A default file that does not exist is empty settings, and so is, with a warning, one that cannot
// be read. One named by $JOULEPROF_CONFIG is then an error.
Result<Settings> read_config_file() {
  std::string path = environment("JOULEPROF_CONFIG");
  const bool named = !path.empty();
  if (!named) {
    const auto folder = user_folder("XDG_CONFIG_HOME", ".config");
    if (folder.empty()) return Settings{};
    path = folder / "jouleprof/config";
  }
  const auto text = read_settings(path);
  if (!text) {
    if (named) return tl::unexpected(text.error());
    // It is read without being asked for, and must not keep a command from running.
    if (text.error().code != Errc::kNotFound) {
      say("jouleprof: {}; going on without it\n", text.error().message);
    }
    return Settings{};
  }
  auto settings = parse_config(*text);
  if (!settings) {
    settings.error().message = path + ": " + settings.error().message;
    return settings;
  }
  for (Setting& setting : *settings) setting.source += " of " + path;
  return settings;
}

}  // namespace

std::vector<std::unique_ptr<Verb>> make_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  for (const auto make : {make_doctor, make_run, make_replay, make_monitor, make_serve, make_report,
                          make_merge, make_export, make_ledger, make_import, make_annotate,
                          make_bench, make_compare, make_sweep, make_recommend, make_apply}) {
    verbs.push_back(make());
  }
  return verbs;
}

std::size_t count_of_options(Verb& verb, const std::vector<std::string>& arguments) {
  const auto dashes =
      static_cast<std::size_t>(std::ranges::find(arguments, "--") - arguments.begin());
  if (!verb.takes_command()) return dashes;
  CLI::App app("", std::string(verb.name()));
  verb.declare(app);
  std::size_t i = 0;
  while (i < arguments.size() && arguments[i].size() > 1 && arguments[i].front() == '-') {
    const std::string& word = arguments[i];
    if (word == "--") break;
    ++i;
    const bool is_long = word.starts_with("--");
    // A value may be part of the word: --output=FILE, -oFILE.
    const CLI::Option* option = app.get_option_no_throw(is_long ? word : word.substr(0, 2));
    if (option == nullptr || (!is_long && word.size() > 2) || i == arguments.size()) continue;
    const bool may_be_missing = option->get_expected_min() == 0;
    const char first = arguments[i].empty() ? '0' : arguments[i].front();
    // What may be missing is a figure, and a command does not begin with a digit.
    if (option->get_items_expected_max() > 0 &&
        (!may_be_missing || (first >= '0' && first <= '9'))) {
      ++i;
    }
  }
  return i;
}

Result<void> parse(Verb& verb, std::vector<std::string> arguments) {
  CLI::App app("", std::string(verb.name()));
  app.set_help_flag();
  verb.declare(app);
  check_all_options(app);

  const auto settings = read_config_file();
  if (!settings) return tl::unexpected(settings.error());
  const auto variables = take_variables(app);
  const auto usage = [&](const std::string& message) {
    return fail(Errc::kInvalidArgument,
                fmt::format("{}\nTry 'jouleprof {} --help'.", message, verb.name()));
  };
  try {
    std::ranges::reverse(arguments);  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::Error& e) {
    // A mistyped option comes before what is missing, which may be its own.
    const auto extra = app.remaining();
    const auto option =
        std::ranges::find_if(extra, [](const std::string& word) { return word.starts_with('-'); });
    if (option != extra.end()) return usage(unknown_word_text(app, *option));
    const bool has_extra = dynamic_cast<const CLI::ExtrasError*>(&e) != nullptr && !extra.empty();
    return usage(has_extra ? unknown_word_text(app, extra.front()) : missing_text(app, e));
  }
  for (const auto& [option, name] : variables) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0' || option->count() > 0) continue;
    if (auto set = set_from("the environment variable " + name, *option, value); !set) return set;
  }
  for (const auto& [name, value, source] : *settings) {
    CLI::Option* option = app.get_option_no_throw("--" + name);
    if (option == nullptr) warn_of_unknown({name, value, source});
    if (option == nullptr || option->count() > 0) continue;
    if (auto set = set_from(source, *option, value); !set) return set;
  }
  return {};
}

Result<Settings> parse_config(std::string_view text) {
  Settings settings;
  int number = 0;
  for (const std::string_view raw : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(raw.substr(0, raw.find('#')));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || trim(line.substr(0, equals)).empty()) {
      return fail(Errc::kCorrupt, fmt::format("line {}: '{}' is not name = value", number, line));
    }
    settings.push_back({std::string(trim(line.substr(0, equals))),
                        std::string(trim(line.substr(equals + 1))),
                        fmt::format("line {}", number)});
  }
  return settings;
}

}  // namespace jouleprof::cli
