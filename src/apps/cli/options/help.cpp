#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "apps/cli/options/option_table.h"
#include "base/text.h"
#include "report/cells.h"

namespace jouleprof::cli {

VerbText doctor_text();
VerbText run_text();
VerbText replay_text();
VerbText monitor_text();
VerbText serve_text();
VerbText report_text();
VerbText merge_text();
VerbText export_text();
VerbText ledger_text();
VerbText import_text();
VerbText annotate_text();
VerbText bench_text();
VerbText compare_text();
VerbText sweep_text();
VerbText recommend_text();
VerbText apply_text();

const std::vector<VerbText>& verb_texts() {
  static const std::vector<VerbText> kTexts{
      doctor_text(),  run_text(),    replay_text(),    monitor_text(),
      serve_text(),   report_text(), merge_text(),     export_text(),
      ledger_text(),  import_text(), annotate_text(),  bench_text(),
      compare_text(), sweep_text(),  recommend_text(), apply_text()};
  return kTexts;
}

namespace {

const VerbText* find_verb(std::string_view name) {
  const auto& all = verb_texts();
  const auto found = std::ranges::find(all, name, &VerbText::name);
  return found == all.end() ? nullptr : &*found;
}

std::vector<OptionText> options_of(const VerbText& verb) {
  std::vector<OptionText> options = verb.common;
  options.insert(options.end(), verb.more.begin(), verb.more.end());
  options.push_back({"-h,--help", "", "print the common options"});
  options.push_back({"--help-all", "", "print all options"});
  return options;
}

std::string_view short_name(const OptionText& option) {
  return option.names.starts_with("--") ? std::string_view() : option.names.substr(0, 2);
}

// "--output FILE", "--replay[=TIME]"
std::string long_form(const OptionText& option) {
  if (option.value.empty()) return std::string(option.long_name());
  if (option.value.starts_with('=')) return fmt::format("{}[{}]", option.long_name(), option.value);
  return fmt::format("{} {}", option.long_name(), option.value);
}

constexpr std::size_t kTextColumn = 25;
constexpr std::size_t kShortLines = 25;  // of 80 columns: a terminal

// It describes; the rest is of --help-all.
std::string_view first_clause(std::string_view text) {
  std::size_t end = text.size();
  for (const auto sign : {"; ", ": ", ". ", " ("}) end = std::min(end, text.find(sign));
  return text.substr(0, end);
}

// Each line but the first begins at `indent`.
void wrap(std::string& out, std::string_view text, std::size_t indent, std::size_t width) {
  bool is_first = true;
  for (const auto& line : report::wrap(text, width - indent)) {
    out += (is_first ? "" : std::string(indent, ' ')) + line + '\n';
    is_first = false;
  }
}

void add_options(std::string& out, const std::vector<OptionText>& options, std::size_t width,
                 bool is_short = false) {
  for (const auto& option : options) {
    const auto brief = short_name(option);
    std::string head = brief.empty() ? std::string(6, ' ') : fmt::format("  {}, ", brief);
    head += long_form(option);
    if (head.size() + 1 > kTextColumn) {
      out += head + '\n';
      head.clear();
    }
    out += fmt::format("{:<{}}", head, kTextColumn);
    const bool cut = is_short && option.help.size() + kTextColumn > width;
    wrap(out, cut ? first_clause(option.help) : option.help, kTextColumn, width);
  }
}

void add_list(std::string& out, const std::vector<ListRow>& rows, std::size_t width) {
  std::size_t column = 0;
  for (const auto& row : rows) column = std::max(column, row.head.size() + 4);
  for (const auto& row : rows) {
    out += fmt::format("  {:<{}}", row.head, column - 2);
    wrap(out, row.help, column, width);
  }
}

std::string usage_of(const VerbText& verb) {
  std::string out;
  for (const auto usage : verb.usage) {
    out += fmt::format("{}{}\n", out.empty() ? "Usage: " : "       ", usage);
  }
  return out + '\n';
}

// One line an option, and as many examples as there is room for, two at least.
std::string short_help(const VerbText& verb, std::size_t width) {
  std::string out = usage_of(verb);
  const auto about = verb.about.substr(0, verb.about.find('\n'));
  const auto end = about.find(". ");
  wrap(out, end == about.npos ? about : about.substr(0, end + 1), 0, width);
  out += verb.more.empty() ? "\nOptions:\n" : "\nCommon options:\n";
  add_options(out, verb.common, width, true);
  const std::string help = fmt::format("print this text; --help-all: {} options, in full",
                                       verb.common.size() + verb.more.size());
  add_options(out, {{"-h,--help", "", help}}, width);
  if (!verb.list.empty()) {
    std::string names;
    for (const auto& row : verb.list) {
      names += (names.empty() ? "" : ", ") + row.head.substr(0, row.head.find("  "));
    }
    out += '\n';
    wrap(out,
         fmt::format("{}: {}", verb.list_title.substr(0, verb.list_title.find_first_of(",:")),
                     names),
         0, width);
  }
  out += "\nExamples:\n";
  const auto lines = static_cast<std::size_t>(std::ranges::count(out, '\n'));
  const std::size_t room = std::max<std::size_t>(2, kShortLines - std::min(kShortLines, lines));
  for (std::size_t i = 0; i < std::min(room, verb.examples.size()); ++i) {
    out += fmt::format("  {}\n", verb.examples[i]);
  }
  return out;
}

std::string full_help(const VerbText& verb, std::size_t width) {
  std::string out = usage_of(verb);
  for (const auto paragraph : split(verb.about, '\n')) {
    if (paragraph.starts_with(' ')) {
      out += std::string(paragraph) + '\n';
    } else {
      wrap(out, paragraph, 0, width);
    }
  }
  out += verb.more.empty() ? "\nOptions:\n" : "\nCommon options:\n";
  add_options(out, verb.common, width);
  if (!verb.more.empty()) {
    out += "\nMore options:\n";
    add_options(out, verb.more, width);
  }
  add_options(out, {{"-h,--help", "", "print the common options; --help-all: this text"}}, width);
  if (!verb.list.empty()) {
    out += fmt::format("\n{}\n", verb.list_title);
    add_list(out, verb.list, width);
  }
  out += "\nExamples:\n";
  for (const auto example : verb.examples) out += fmt::format("  {}\n", example);
  return out;
}

}  // namespace

const OptionText* find_text(const CLI::App& app, std::string_view name) {
  const VerbText* verb = find_verb(app.get_name());
  if (verb == nullptr) return nullptr;
  for (const auto* rows : {&verb->common, &verb->more}) {
    for (const auto& option : *rows) {
      if (option.long_name() == name) return &option;
    }
  }
  return nullptr;
}

std::string help_of_tool() {
  std::string out = "jouleprof - where did the energy go?\nUsage: jouleprof VERB [options]\n\n";
  for (const auto& verb : verb_texts()) out += fmt::format("  {:<10} {}\n", verb.name, verb.brief);
  out += R"(
  -h, --help        print this text; `jouleprof help VERB` describes a verb
  -V, --version     print the version; `jouleprof man`: the manual page
  completion SHELL  print the completions of options for bash, zsh or fish

Start with: jouleprof run -- python train.py
)";
  return out;
}

std::string help_of_verb(std::string_view name, bool all, std::size_t width) {
  const VerbText* verb = find_verb(name);
  if (verb == nullptr) return {};
  return all ? full_help(*verb, width) : short_help(*verb, width);
}

namespace {

std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c == '\\' ? 'e' : c;
  }
  // A control line begins so.
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

void add_lines(std::string& out, std::string_view lines) {
  out += ".PP\n.nf\n";
  for (const auto line : split(lines, '\n')) out += troff(line) + '\n';
  out += ".fi\n";
}

// Within single quotes of bash, zsh and fish, without characters that the place reads itself.
std::string plain(std::string_view text, std::string_view unwanted) {
  std::string out;
  for (const char c : first_clause(text)) {
    if (c == '\'') {
      out += R"('\'')";
    } else if (unwanted.find(c) == std::string_view::npos) {
      out += c;
    }
  }
  return out;
}

bool takes_file(const OptionText& option) {
  return option.value.find("FILE") != std::string_view::npos || option.value == "DIR" ||
         option.value == "PATH";
}

std::string verb_names() {
  std::string names;
  for (const auto& verb : verb_texts()) names += std::string(verb.name) + ' ';
  return names + "help completion man";
}

}  // namespace

std::string help_of_completion() {
  return R"(jouleprof completion - print the completions of options for a shell
Usage: jouleprof completion bash|zsh|fish

Examples:
  jouleprof completion bash > ~/.local/share/bash-completion/completions/jouleprof
  jouleprof completion zsh > ~/.zfunc/_jouleprof      # with ~/.zfunc in fpath, before compinit
  jouleprof completion fish > ~/.config/fish/completions/jouleprof.fish
)";
}

namespace {

std::string bash_completion() {
  std::string out = R"(# Completion of jouleprof for bash: source it.
_jouleprof() {
  local word=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} options=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ] || [ "$verb" = help ]; then
    COMPREPLY=($(compgen -W ')" +
                    verb_names() + R"( --help --version' -- "$word"))
    return
  fi
  case $verb in
)";
  for (const auto& verb : verb_texts()) {
    out += fmt::format("    {}) options='", verb.name);
    for (const auto& option : options_of(verb)) {
      out += fmt::format("{}{}", option.long_name(), option.value.starts_with('=') ? "= " : " ");
    }
    out += "' ;;\n";
  }
  return out + R"(    completion) COMPREPLY=($(compgen -W 'bash zsh fish' -- "$word")); return ;;
  esac
  # After "--" is a command with its own options. Files are readline's own, which quotes their names.
  case " ${COMP_WORDS[*]:0:COMP_CWORD} " in
    *' -- ') [[ $word == */* ]] || COMPREPLY=($(compgen -c -- "$word")) ;;
    *' -- '*) ;;
    *) [[ $word != -* ]] || COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
  esac
}
complete -o bashdefault -o default -F _jouleprof jouleprof
)";
}

std::string zsh_completion() {
  std::string out = R"(#compdef jouleprof
_jouleprof() {
  local -a verbs options
  verbs=(
)";
  for (const auto& verb : verb_texts()) {
    out += fmt::format("    '{}:{}'\n", verb.name, plain(verb.brief, ""));
  }
  out += R"(    'help:describe a verb'
    'completion:print the completions of a shell'
    'man:print the manual page'
  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  case $words[2] in
    help) _describe verb verbs; return ;;
    completion) compadd bash zsh fish; return ;;
)";
  for (const auto& verb : verb_texts()) {
    out += fmt::format("    {}) options=(\n", verb.name);
    for (const auto& option : options_of(verb)) {
      const std::string_view equals = option.value.empty()            ? ""
                                      : option.value.starts_with('=') ? "=-"
                                                                      : "=";
      const std::string value = option.value.empty()
                                    ? ""
                                    : fmt::format(":{}:{}", plain(option.value, "[]=:"),
                                                  takes_file(option) ? "_files" : " ");
      out += fmt::format("      '{}{}[{}]{}'\n", option.long_name(), equals,
                         plain(option.help, "[]"), value);
    }
    out += "    ) ;;\n";
  }
  return out + R"(  esac
  shift words
  (( CURRENT-- ))
  _arguments -s -S $options '*:file:_files'
}
_jouleprof "$@"
)";
}

std::string fish_completion() {
  std::string out = "# Completion of jouleprof for fish.\n";
  for (const auto& verb : verb_texts()) {
    out += fmt::format("complete -c jouleprof -n __fish_use_subcommand -f -a {} -d '{}'\n",
                       verb.name, plain(verb.brief, "\\"));
  }
  out += fmt::format(R"(complete -c jouleprof -n __fish_use_subcommand -f -a 'help completion man'
complete -c jouleprof -n '__fish_seen_subcommand_from help' -f -a '{}'
complete -c jouleprof -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'
complete -c jouleprof -n '__fish_seen_subcommand_from man' -f
)",
                     verb_names());
  for (const auto& verb : verb_texts()) {
    for (const auto& option : options_of(verb)) {
      const auto brief = short_name(option);
      const bool needs_value = !option.value.empty() && !option.value.starts_with('=');
      out += fmt::format(
          "complete -c jouleprof -n '__fish_seen_subcommand_from {}' {}-l {}{} -d '{}'\n",
          verb.name, brief.empty() ? "" : fmt::format("-s {} ", brief.substr(1)),
          option.long_name().substr(2),
          !needs_value         ? ""
          : takes_file(option) ? " -r -F"
                               : " -x",
          plain(option.help, "\\"));
    }
  }
  return out;
}

}  // namespace

std::string man_page(std::string_view version) {
  std::string out = fmt::format(
      ".TH JOULEPROF 1 \"\" \"jouleprof {}\"\n.SH NAME\njouleprof \\- where did the energy go?\n"
      ".SH SYNOPSIS\n.B jouleprof\n.I VERB\n[options]\n.SH DESCRIPTION\n"
      "Measures the energy of commands: per GPU, CPU and DRAM, per process, and inside GPUs per\n"
      "kernel, layer, range and phase.\n",
      version);
  for (const auto& verb : verb_texts()) {
    out += fmt::format(".SH \"jouleprof {}\"\n", verb.name);
    for (const auto usage : verb.usage) out += fmt::format(".B {}\n.br\n", troff(usage));
    for (const auto paragraph : split(verb.about, '\n')) {
      out += fmt::format("{}\n{}\n", paragraph.starts_with(' ') ? ".br" : ".PP", troff(paragraph));
    }
    for (const auto& option : options_of(verb)) {
      const auto brief = short_name(option);
      out += fmt::format(".TP\n.B {}{}\n{}\n", brief.empty() ? "" : troff(brief) + ", ",
                         troff(long_form(option)), troff(option.help));
      if (!option.variable.empty()) out += fmt::format("(environment: {})\n", option.variable);
    }
    if (!verb.list.empty()) out += fmt::format(".PP\n{}\n", troff(verb.list_title));
    for (const auto& row : verb.list) {
      out += fmt::format(".TP\n.B {}\n{}\n", troff(row.head), troff(row.help));
    }
    std::string examples = "Examples:";
    for (const auto example : verb.examples) examples += fmt::format("\n  {}", example);
    add_lines(out, examples);
  }
  return out;
}

std::optional<std::string> completion_of(std::string_view shell) {
  if (shell == "bash") return bash_completion();
  if (shell == "zsh") return zsh_completion();
  if (shell == "fish") return fish_completion();
  return std::nullopt;
}

}  // namespace jouleprof::cli
