#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "apps/cli/options/option_table.h"
#include "apps/cli/verb.h"
#include "base/text.h"
#include "report/format/format.h"

namespace jouleprof::cli {
namespace {

using ::testing::HasSubstr;

TEST(OptionTable, EachRowIsAnOptionThatItsVerbHas) {
  const auto verbs = make_verbs();
  ASSERT_EQ(verbs.size(), verb_texts().size());
  for (std::size_t i = 0; i < verbs.size(); ++i) {
    const VerbText& text = verb_texts()[i];
    ASSERT_EQ(verbs[i]->name(), text.name);
    CLI::App app("", std::string(text.name));
    app.set_help_flag();
    verbs[i]->declare(app);
    std::set<std::string> declared;
    for (const CLI::Option* option : app.get_options()) {
      for (const auto& name : option->get_lnames()) declared.insert("--" + name);
    }
    std::set<std::string> listed;
    for (const auto* rows : {&text.common, &text.more}) {
      for (const auto& row : *rows) {
        EXPECT_TRUE(listed.insert(std::string(row.long_name())).second) << row.names;
      }
    }
    EXPECT_EQ(listed, declared) << text.name;
  }
}

// 80 columns, 25 lines: a terminal.
void expect_fits(std::string_view name, std::string_view help) {
  ASSERT_TRUE(help.ends_with('\n')) << name;
  const auto lines = split(help.substr(0, help.size() - 1), '\n');
  EXPECT_LE(lines.size(), 25U) << help;
  for (const auto line : lines) EXPECT_LE(line.size(), 80U) << name << ": " << line;
}

TEST(Help, FitsATerminalAndHasTheCommonOptionsAndExamples) {
  expect_fits("jouleprof", help_of_tool());
  for (const VerbText& verb : verb_texts()) {
    const std::string help = help_of_verb(verb.name, false, 80);
    expect_fits(verb.name, help);
    for (const auto& option : verb.common) EXPECT_THAT(help, HasSubstr(option.long_name()));
    const std::size_t wanted = std::min<std::size_t>(2, verb.examples.size());
    for (std::size_t i = 0; i < wanted; ++i) EXPECT_THAT(help, HasSubstr(verb.examples[i]));
  }
}

TEST(Help, OfAllOptionsNamesEachAndOfTheToolEachVerb) {
  for (const VerbText& verb : verb_texts()) {
    const std::string help = help_of_verb(verb.name, true, 80);
    for (const auto* rows : {&verb.common, &verb.more}) {
      for (const auto& row : *rows) EXPECT_THAT(help, HasSubstr(row.long_name()));
    }
    EXPECT_THAT(help_of_tool(), HasSubstr(fmt::format("\n  {:<10} ", verb.name)));
  }
}

TEST(Help, OfExportListsTheFormatsThatAreNotOfReport) {
  const std::string help = help_of_verb("export", true, 80);
  for (const report::Format* format : report::formats()) {
    EXPECT_EQ(help.find(fmt::format("  {:<12}  {}", format->name, format->extension)) == help.npos,
              report_option(format->name) != nullptr)
        << format->name;
  }
}

TEST(Help, IsEmptyForAnUnknownVerb) { EXPECT_EQ(help_of_verb("fly", true, 80), ""); }

TEST(ManPage, HasEachVerbAndNoLineThatBeginsWithAPlainDot) {
  const std::string page = man_page("1.2");
  for (const VerbText& verb : verb_texts()) {
    EXPECT_THAT(page, HasSubstr(fmt::format(".SH \"jouleprof {}\"", verb.name)));
  }
  static const std::set<std::string_view> kMacros{".TH", ".SH", ".TP", ".B", ".I",
                                                  ".br", ".PP", ".nf", ".fi"};
  for (const auto line : split(page, '\n')) {
    if (!line.starts_with('.')) continue;
    EXPECT_TRUE(kMacros.contains(line.substr(0, line.find(' ')))) << line;
  }
}

TEST(Completion, IsOfThreeShells) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto text = completion_of(shell);
    ASSERT_TRUE(text) << shell;
    EXPECT_THAT(*text, HasSubstr("per-regex"));
  }
  EXPECT_FALSE(completion_of("cmd"));
}

}  // namespace
}  // namespace jouleprof::cli
