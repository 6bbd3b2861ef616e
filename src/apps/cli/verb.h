// The command line: its verbs, the user's configuration, and the whole as a function.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace jouleprof::cli {

class Verb {
 public:
  virtual ~Verb() = default;
  virtual std::string_view name() const = 0;
  // Declares the options; their values are members, filled by parsing.
  virtual void declare(CLI::App& app) = 0;
  // Whether a word that is no option begins the command. Others have files there, or need "--".
  virtual bool takes_command() const { return false; }
  // Does it. `command` is what followed "--" or began the command. Returns the exit status.
  virtual int run(const std::vector<std::string>& command) = 0;
};

// All verbs, in the order of docs/cli.md. The one place that lists them.
std::vector<std::unique_ptr<Verb>> make_verbs();

std::unique_ptr<Verb> make_doctor();
std::unique_ptr<Verb> make_run();
std::unique_ptr<Verb> make_replay();
std::unique_ptr<Verb> make_monitor();
std::unique_ptr<Verb> make_serve();
std::unique_ptr<Verb> make_report();
std::unique_ptr<Verb> make_merge();
std::unique_ptr<Verb> make_export();
std::unique_ptr<Verb> make_ledger();
std::unique_ptr<Verb> make_import();
std::unique_ptr<Verb> make_annotate();
std::unique_ptr<Verb> make_bench();
std::unique_ptr<Verb> make_compare();
std::unique_ptr<Verb> make_sweep();
std::unique_ptr<Verb> make_recommend();
std::unique_ptr<Verb> make_apply();

// How many of `arguments` are the verb's: what comes before "--", or before the first word of a
// command.
std::size_t count_of_options(Verb& verb, const std::vector<std::string>& arguments);

// Parses `arguments` into a verb's options: flags before environment before configuration file.
// Errors: invalid_argument, with the source of the value.
Result<void> parse(Verb& verb, std::vector<std::string> arguments);

// A line of the user's configuration file: `name = value` lines, # comments.
struct Setting {
  std::string name;
  std::string value;
  std::string source;  // "line 3", and in which file where it was read from one
};
using Settings = std::vector<Setting>;

// Errors: corrupt, with the line's number.
Result<Settings> parse_config(std::string_view text);

// Runs `jouleprof ARGUMENTS...` and returns its exit status.
int main(std::vector<std::string> arguments);

}  // namespace jouleprof::cli
