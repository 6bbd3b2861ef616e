// The command line as one table: CLI11's options, --help, the man page, the completions of shells
// and the blocks of docs/cli.md are made from it.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "jouleprof/units.h"

namespace jouleprof::cli {

struct OptionText {
  std::string_view names;          // "-o,--output", the long one last
  std::string_view value;          // "FILE"; "=TIME": may be left out; empty: a flag
  std::string_view help;           // its first clause says what it does: --help has only that
  std::string_view variable = {};  // of the environment, which sets it too

  std::string_view long_name() const { return names.substr(names.find("--")); }
};

struct ListRow {
  std::string head;  // such as a format's name
  std::string help;
};

struct VerbText {
  std::string_view name;
  std::string_view brief;
  std::vector<std::string_view> usage;
  std::string_view about;          // a line is a paragraph; one that begins with blanks stays
  std::vector<OptionText> common;  // of --help, which has at most 25 lines
  std::vector<OptionText> more;    // of --help-all
  std::string_view list_title = {};
  std::vector<ListRow> list = {};  // after the options
  std::vector<std::string_view> examples;
};

// In the order of docs/cli.md.
const std::vector<VerbText>& verb_texts();

// What `report` writes and `export` does not: its option, such as " --json"; else nullptr.
const char* report_option(std::string_view format);

// By its long name, of the verb that `app` is called after; else nullptr.
const OptionText* find_text(const CLI::App& app, std::string_view name);

// --- Checks of options' values, in words for people ---

CLI::Validator above_zero();                           // a number
CLI::Validator not_negative();                         // a number
CLI::Validator within(double lowest, double highest);  // a number; both are allowed
CLI::Validator one_of(std::vector<std::string> words);

// What `parse` takes, with its message.
template <typename Parse>
CLI::Validator parsed_by(Parse parse) {
  return {[parse](const std::string& text) {
            const auto value = parse(text);
            return value ? std::string() : value.error().message;
          },
          ""};
}

// --- Options ---

// Declares an option that the table has, whose value is what `parse` makes of its text.
template <typename T, typename Parse>
CLI::Option* add_parsed(CLI::App& app, std::string_view name, T& variable, Parse parse) {
  const OptionText& text = *find_text(app, name);
  const auto take = [&variable, parse](const std::string& word) { variable = *parse(word); };
  return app
      .add_option_function<std::string>(std::string(text.names), take, std::string(text.help))
      ->check(parsed_by(parse));
}

// Declares an option that the table has, or an argument: an upper-case word, which the usage names.
// A duration has its unit.
template <typename T>
CLI::Option* add(CLI::App& app, std::string_view name, T& variable) {
  const OptionText* text = find_text(app, name);
  if (text == nullptr) return app.add_option(std::string(name), variable, "");
  CLI::Option* option = nullptr;
  if constexpr (std::is_same_v<T, bool>) {
    option = app.add_flag(std::string(text->names), variable, std::string(text->help));
  } else if constexpr (std::is_same_v<T, Duration> || std::is_same_v<T, std::optional<Duration>>) {
    option = add_parsed(app, name, variable, parse_duration);
  } else {
    option = app.add_option(std::string(text->names), variable, std::string(text->help));
  }
  return text->variable.empty() ? option : option->envname(std::string(text->variable));
}

// A bare number is seconds.
Result<Duration> parse_duration_or_seconds(const std::string& text);

// The candidate that a mistyped `word` most likely stands for; empty where none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// A regular expression with one group, for a number in what a command prints.
// Errors: invalid_argument, with `example`.
Result<void> check_number_expression(std::string_view option, const std::string& expression,
                                     std::string_view example);

// What every option of a verb takes: something, and no sign before a count.
void check_all_options(CLI::App& app);

// --- Texts made from the table ---

// The tool's own help, and that of a verb with its common options or with all; empty for an unknown
// verb. Lines have at most `width` columns, but for usages and examples; of 80, there are at most
// 25 without `all`.
std::string help_of_tool();
std::string help_of_completion();
std::string help_of_verb(std::string_view verb, bool all, std::size_t width);

std::string man_page(std::string_view version);

// For bash, zsh or fish; absent for another shell.
std::optional<std::string> completion_of(std::string_view shell);

}  // namespace jouleprof::cli
